// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// The view of Placements: a list of the Placements of the source or, in celset-placement, a form that names one.

import {createDetails} from "./details.js";
import {badge, element, empty, field, muted} from "./dom.js";
import {createBrowser, createList} from "./list.js";
import {placementReport} from "./placement-report.js";

export const title = "Placements";
export const create = (app) => (app.backend.setToken ? createForm(app) : createOverview(app));

const name = (p) => `${p.namespace}/${p.name}`;

const timeInput = (more) => element("input", {id: "at", placeholder: "2026-08-01T22:00:00Z", spellcheck: "false", autocomplete: "off", ...more});

// createDecision returns a function that shows the decision for {namespace, name, now} in output. controls(question) returns the
// parts between the heading and the decision.
const createDecision = (app, output, controls = () => []) => createDetails(output, (question) => app.ask("placement", question), (report, question) => [
  element("h2", {}, `${question.namespace}/${question.name}`), controls(question),
  placementReport(report, {decideWithout: (without) => app.ask("placement", {...question, without}), level: 3}),
]);

function createForm(app) {
  const input = (id, more) => element("input", {id, spellcheck: "false", autocomplete: "off", ...more});
  const namespace = input("namespace", {required: true}), placement = input("name", {required: true});
  const at = timeInput(), token = input("token", {type: "password", required: true});
  const answer = element("section", {id: "answer", "aria-label": "Decision", tabindex: -1});
  const decide = createDecision(app, answer);
  const form = element("form", {
    id: "ask", class: "controls", onsubmit: (event) => {
      event.preventDefault();
      app.backend.setToken(token.value.trim());
      const chosen = {namespace: namespace.value.trim(), name: placement.value.trim()}, now = at.value.trim();
      app.go(chosen, {quiet: true});
      decide({...chosen, ...now ? {now} : {}});
    },
  }, field("Namespace", namespace), field("Placement", placement), field("Time, if not now", at), field("Bearer token", token),
  element("button", {type: "submit", class: "primary"}, "Decide"));
  return {
    element: element("div", {class: "page"}, element("h1", {}, "Why these clusters?"),
      muted("Decides a Placement as the controller would, and writes nothing."), form,
      muted("Enter the token of a user or service account that may get the Placement. If you close the page, the token is gone."), answer),
    show(state) {
      namespace.value = state.namespace ?? "";
      placement.value = state.name ?? "";
    },
  };
}

function createOverview(app) {
  const list = createList({
    label: title, noun: "Placement", key: name, words: name, choose: (p) => app.go({namespace: p.namespace, name: p.name, now: undefined}),
    row: (p) => [
      element("span", {class: "line"}, element("span", {class: "name"}, name(p)), badge(p.satisfied === "True", p.satisfied === "True" ? "satisfied" : p.satisfied ? "not satisfied" : "undecided")),
      element("span", {class: "second muted"}, `${p.selected} selected${p.message ? `. ${p.message}` : ""}`),
    ],
  });
  const view = createBrowser(title, list, {
    none: empty("No Placements", "The objects contain no Placements of a hub."), hint: "Choose a Placement to see why it selects its clusters.",
  });
  const decide = createDecision(app, view.details, ({now}) => element("div", {class: "controls"},
    field("Time, if not now", timeInput({value: now ?? "", onchange: (event) => app.go({now: event.target.value.trim()})}))));
  return {
    element: view.element,
    update: (overview) => view.set(overview.placements ?? []),
    show({namespace, name: placement, now}) {
      list.choose(placement ? `${namespace}/${placement}` : null);
      if (placement) return decide({namespace, name: placement, ...now ? {now} : {}});
      view.hint();
    },
  };
}
