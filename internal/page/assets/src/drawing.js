// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Pictures of devices, and the same facts as a table.

import {element, muted, plural, table, visible} from "./dom.js";

// A picture with another element or attribute is not shown: these can neither run a script nor load a file.
const elements = new Set(["svg", "g", "title", "rect", "line", "text", "tspan", "circle", "path"]);
const attributes = new Set([
  "xmlns", "viewBox", "width", "height", "class", "role", "font-family", "x", "y", "x1", "y1", "x2", "y2", "rx", "ry", "cx", "cy", "r", "d",
  "aria-label", "aria-hidden",
]);
const svg = "http://www.w3.org/2000/svg";

// parse returns the svg element of a text, or null if it is not a picture as the program draws them.
function parse(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (parsed.localName !== "svg") return null;
  for (const part of [parsed, ...parsed.querySelectorAll("*")]) {
    if (part.namespaceURI !== svg || !elements.has(part.localName)) return null;
    for (const {name} of part.attributes) if (!attributes.has(name)) return null;
  }
  const texts = parsed.ownerDocument.createNodeIterator(parsed, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) if (visible(text.data) !== text.data) text.data = visible(text.data);
  return document.importNode(parsed, true);
}

// drawing returns a figure with a picture and its caption. A wide picture scrolls in its own box.
export function drawing(picture) {
  if (!picture?.svg) return null;
  const made = parse(picture.svg);
  if (!made) return muted("The picture is not shown, because it has unexpected parts.");
  // A picture shrinks to 70 % of its size, so that its labels stay readable, and then scrolls.
  made.style.minWidth = `${0.7 * (Number(made.getAttribute("width")) || 0)}px`;
  const caption = [picture.node && `Node ${picture.node}`, picture.caption].filter(Boolean).join(": ");
  return element("figure", {}, element("div", {class: "board", tabindex: 0, role: "region", "aria-label": `Picture. ${caption}`}, made),
    element("figcaption", {}, caption));
}

// stateOf returns the state of a device in one word.
function stateOf(device) {
  const holders = device.holders ?? [];
  if (holders.some((h) => h.shared)) return "shared";
  if (holders.some((h) => !h.adminAccess)) return "allocated";
  return device.taints?.length ? "unusable" : "free";
}

const holderOf = (holder) => element("div", {},
  element("span", {class: "name"}, holder.claim), holder.request && element("span", {class: "muted"}, ` request ${holder.request}`),
  holder.shared && element("span", {class: "tag"}, "share"), holder.adminAccess && element("span", {class: "tag"}, "admin access"));

function attributesOf(device) {
  const all = Object.entries(device.attributes ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  if (all.length === 0) return null;
  return element("details", {}, element("summary", {}, plural(all.length, "attribute")),
    element("dl", {}, all.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])));
}

// lines returns an element for each text.
const lines = (texts) => texts.map((text) => element("div", {}, text));

// The columns of a table of devices. A column that is empty for all devices is left out.
const columns = [
  ["State", (device) => element("span", {class: `state ${stateOf(device)}`}, stateOf(device)), () => true],
  ["Claim", (device) => device.holders?.map(holderOf), (device) => device.holders?.length],
  ["Reserved for", (device) => device.holders?.map((h) => lines(h.reservedFor ?? [])), (device) => device.holders?.some((h) => h.reservedFor?.length)],
  ["Taints", (device) => lines(device.taints ?? []), (device) => device.taints?.length],
  ["Attributes", attributesOf, (device) => Object.keys(device.attributes ?? {}).length],
];

// deviceTable lists the devices of a node, with the claims that have them and the pods that may use them.
export function deviceTable(node, devices) {
  if (!devices?.length) return muted("The node has no devices.");
  const used = columns.filter(([, , has]) => devices.some(has));
  return table(`Devices of node ${node}`, ["Device", ...used.map(([title]) => title)].map((title) => [title]), devices.map((device) => element("tr", {},
    element("th", {scope: "row"}, element("span", {class: "name"}, device.name), element("div", {class: "muted small"}, device.driver), element("div", {class: "muted small"}, `pool ${device.pool}`)),
    used.map(([, cell]) => element("td", {}, cell(device))))));
}
