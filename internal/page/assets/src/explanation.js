// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// An answer about a pod, a claim, a group or a Placement: the summary, the steps of the search, the nodes and a picture.

import {badge, element, muted, plural} from "./dom.js";
import {deviceTable, drawing} from "./drawing.js";
import {placementReport} from "./placement-report.js";

// Longer lists are in an element that the user opens.
const atOnce = 8;

// explanation returns the parts of an answer. draw(node) is called if the user chooses a node to draw. level is the level of the
// headings.
export function explanation(answer, {draw, level = 3}) {
  const heading = (text) => element(`h${level}`, {}, text);
  if (answer.placement) return [placementReport(answer.placement, {level})];
  return [
    verdict(answer),
    answer.steps?.length && [heading("How the search narrows the devices"), steps(answer.steps)],
    drawing(answer.picture), devices(answer.picture),
    answer.nodes?.length && [heading("Nodes"), nodes(answer, draw)],
    answer.text && element("details", {class: "full"}, element("summary", {}, "Full explanation"), element("pre", {tabindex: 0}, answer.text)),
  ];
}

const verdicts = {Fits: "Fits", DoesNotFit: "Does not fit", Unknown: "Unknown", Error: "Error"}, signs = {Unknown: "?", Error: "!"};

// verdictBadge returns the verdict on a subject as a badge.
export const verdictBadge = ({fits, verdict, placement}) => (placement ? badge(fits, fits ? "Selects clusters" : "Selects no clusters") : badge(fits, verdicts[verdict], signs[verdict]));

function verdict(answer) {
  const {fits, summary, more} = answer;
  return element("div", {class: `verdict ${fits ? "good" : "bad"}`},
    element("p", {class: "summary"}, verdictBadge(answer), " ", summary),
    fits && more && muted(more.count === 0 && !more.atLeast ? "No more copies fit." :
      `${more.atLeast ? "At least " : ""}${more.count.toLocaleString("en")} more ${more.count === 1 && !more.atLeast ? "copy fits" : "copies fit"}.`));
}

// The table of devices stays open if the user has opened it.
let tableOpen = false;

function devices(picture) {
  if (!picture?.devices?.length) return null;
  return element("details", {class: "table", open: tableOpen, ontoggle: (event) => { tableOpen = event.target.open; }},
    element("summary", {}, `Table of the ${plural(picture.devices.length, "device")}`), deviceTable(picture.node, picture.devices));
}

// textOf returns the text of a step, with the expression after a position as code.
function textOf({text}) {
  const [, where, code] = text.match(/^(.*, line \d+, column \d+: )(.*)$/s) ?? [];
  return where ? [where, element("code", {}, code)] : text;
}

// steps lists the steps with a bar for the number of devices that remain.
function steps(all) {
  const most = Math.max(...all.map((step) => step.left), 1);
  return element("ol", {class: "steps"}, all.map((step) => {
    const bar = element("span", {class: "bar", "aria-hidden": "true"});
    bar.style.width = `${100 * Math.max(step.left, 0) / most}%`;
    return element("li", {class: step.failed && "failed"},
      element("span", {class: "text"}, step.failed && element("strong", {}, "✕ Fails here: "), textOf(step)),
      step.left >= 0 && element("span", {class: "left"}, plural(step.left, "device")),
      step.left >= 0 && element("span", {class: "track", "aria-hidden": "true"}, bar));
  }));
}

// devicesOf lists devices, with the common part of their names once: "gpu.example.com/node-1: gpu-0, gpu-1".
function devicesOf(devices = []) {
  const pools = Map.groupBy(devices, (name) => name.slice(0, name.lastIndexOf("/") + 1));
  return [...pools].map(([pool, members]) => (pool ? `${pool.slice(0, -1)}: ` : "") + members.map((name) => name.slice(pool.length)).join(", ")).join("; ");
}

function nodes({nodes: all, omitted, picture}, draw) {
  const good = all.filter((node) => node.fits), reasons = new Map();
  for (const node of all) if (!node.fits) reasons.set(node.reason ?? "", [...reasons.get(node.reason ?? "") ?? [], node]);
  const button = (node) => element("button", {
    type: "button", class: "node", "aria-pressed": String(node.name === picture?.node), "data-node": node.name, onclick: () => draw(node.name),
  }, node.name);
  const group = (title, lines) => element("li", {}, title,
    element("ul", {class: "members"}, lines.slice(0, atOnce)),
    lines.length > atOnce && element("details", {}, element("summary", {}, `${(lines.length - atOnce).toLocaleString("en")} more`), element("ul", {class: "members"}, lines.slice(atOnce))));
  return [
    element("ul", {class: "nodes"},
      good.length > 0 && group(element("p", {}, badge(true, plural(good.length, "node"))), good.map((node) => (node.devices?.length ?
        element("li", {class: "wide"}, button(node), element("span", {class: "devices"}, devicesOf(node.devices))) : element("li", {}, button(node))))),
      [...reasons].map(([reason, group_]) => group(element("p", {}, badge(false, plural(group_.length, "node")), " ", reason), group_.map((node) => element("li", {}, button(node)))))),
    omitted > 0 && muted(`${plural(omitted, "more node")} not listed.`),
  ];
}
