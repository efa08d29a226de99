// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// The views of waiting pods and claims, and of groups. Each view is a list. The question "explain" explains the chosen item.

import {element, empty} from "./dom.js";
import {createDetails} from "./details.js";
import {explanation} from "./explanation.js";
import {createBrowser, createList} from "./list.js";

// createExplained makes a view of items. subject(item) returns the subject of the question, and row(item) the contents of a row.
function createExplained(app, title, {noun, none, hint, items, subject, row, words}) {
  const key = (item) => `${item.namespace}/${subject(item)}`;
  const list = createList({
    label: title, noun, key, words: (item) => `${key(item)} ${words(item)}`, row,
    choose: (item) => app.go({subject: subject(item), namespace: item.namespace, node: undefined}),
  });
  const view = createBrowser(title, list, {none, hint});
  const details = createDetails(view.details, (question) => app.ask("explain", question), (answer) => [
    element("h2", {}, answer.subject), explanation(answer, {draw: (node) => app.go({node})}),
  ]);
  return {
    element: view.element,
    update: (overview) => view.set(items(overview) ?? []),
    show({subject: chosen, namespace = "", node}) {
      list.choose(chosen ? `${namespace}/${chosen}` : null);
      if (chosen) return details({subject: chosen, namespace, ...node ? {node} : {}});
      view.hint();
    },
  };
}

// age returns the time since a moment, for example "3 h".
function age(since) {
  const minutes = Math.floor((Date.now() - Date.parse(since)) / 60000);
  if (!(minutes >= 0)) return "";
  return minutes < 60 ? `${minutes} min` : minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} d`;
}

export const waiting = {
  title: "Waiting",
  number: (overview) => overview.waiting?.length,
  create: (app) => createExplained(app, "Waiting", {
    noun: "object", items: (overview) => overview.waiting, subject: (w) => w.subject, words: (w) => `${w.message ?? ""} ${w.group ?? ""}`,
    none: empty("Nothing waits", "Each pod has a node, and each claim that a pod uses has devices."),
    hint: "Choose a pod or a claim to see why it waits.",
    row: (w) => [
      element("span", {class: "line"}, element("span", {class: "name"}, w.subject), element("span", {class: "muted small"}, [w.namespace, age(w.since)].filter(Boolean).join(" · "))),
      element("span", {class: "second muted"}, [w.group && `group ${w.group}`, w.message].filter(Boolean).join(": ") || "no message yet"),
    ],
  }),
};

export const gangs = {
  title: "Gangs",
  number: (overview) => overview.groups?.length,
  create: (app) => createExplained(app, "Gangs", {
    noun: "group", items: (overview) => overview.groups, subject: (g) => `podgroup/${g.name}`, words: (g) => `${g.constraint ?? ""} ${g.message ?? ""}`,
    none: empty("No groups", "The objects contain no PodGroups."),
    hint: "Choose a group to see its nodes, or the reason why it gets no nodes.",
    row: (g) => [
      element("span", {class: "line"}, element("span", {class: "name"}, g.name), element("span", {class: "muted small"}, g.namespace)),
      element("span", {class: "second muted"}, [
        `${g.running} running, ${g.waiting} waiting`, g.constraint ? `constraint ${g.constraint}` : "no constraint", g.message,
      ].filter(Boolean).join(" · ")),
    ],
  }),
};
