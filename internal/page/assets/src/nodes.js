// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// The view of nodes: how many devices of each node are free, and the claims that have the devices of a node.

import {element, empty, plural} from "./dom.js";
import {createDetails} from "./details.js";
import {deviceTable, drawing} from "./drawing.js";
import {createBrowser, createList} from "./list.js";

export const title = "Nodes";
export const number = (overview) => overview.nodes?.length;

// bar draws the shares of allocated, unusable and free devices. The text beside the bar says the same.
function bar({devices, allocated, unusable = 0}) {
  const part = (kind, count) => {
    const made = element("span", {class: kind});
    made.style.flexGrow = count;
    return count > 0 && made;
  };
  return element("span", {class: "shares", "aria-hidden": "true"}, part("allocated", allocated), part("unusable", unusable), part("free", Math.max(devices - allocated - unusable, 0)));
}

const counts = ({devices, allocated, unusable = 0}) => [
  `${Math.max(devices - allocated - unusable, 0)} of ${devices} free`, allocated > 0 && `${allocated} allocated`, unusable > 0 && `${unusable} unusable`,
].filter(Boolean).join(", ");

export function create(app) {
  const list = createList({
    label: title, noun: "node", key: (n) => n.name, words: (n) => `${n.name} ${(n.drivers ?? []).join(" ")}`, choose: (n) => app.go({node: n.name}),
    row: (n) => [
      element("span", {class: "line"}, element("span", {class: "name"}, n.name), element("span", {class: "muted small"}, (n.drivers ?? []).join(", "))),
      element("span", {class: "line"}, bar(n), element("span", {class: "second muted"}, n.devices ? counts(n) : "no devices")),
    ],
  });
  const view = createBrowser(title, list, {
    none: empty("No nodes with devices", "No ResourceSlice names a node."), hint: "Choose a node to see its devices and the claims that have them.",
  });
  const details = createDetails(view.details, (question) => app.ask("node", question), (answer, {name}) => [
    element("h2", {}, name), element("p", {class: "muted"}, plural(answer.devices?.length ?? 0, "device")), drawing(answer), deviceTable(name, answer.devices),
  ]);
  return {
    element: view.element,
    update: (overview) => view.set(overview.nodes ?? []),
    show({node, claim}) {
      list.choose(node ?? null);
      if (node) return details({name: node, ...claim ? {claim} : {}});
      view.hint();
    },
  };
}
