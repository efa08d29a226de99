// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// A decision on a Placement: the verdict, the PlacementDecisions, each cluster with the reason, and the predicates.

import {element, failure, field, muted, plural, table} from "./dom.js";

const shownAtOnce = 200;
const selectedOf = (report) => new Set((report.aggregatedScores ?? []).filter((c) => c.selected).map((c) => c.clusterName));

// placementReport returns the parts of a report. decideWithout(index) returns a promise of the report without a predicate. If
// decideWithout is missing, the page has no buttons to leave out a predicate.
export function placementReport(report, {decideWithout, level = 2}) {
  const heading = (text) => element(`h${level}`, {}, text);
  return [verdict(report), decisions(report, heading), clusters(report, heading), predicates(report, heading, decideWithout)];
}

function verdict(report) {
  const chosen = selectedOf(report).size, status = report.status ?? {};
  const bad = (text) => element("p", {class: "refused"}, text);
  // The condition PlacementSatisfied is good if it is true, and the other conditions are mistakes if they are true.
  const isBad = (c) => (c.status === "True") !== (c.type === "PlacementSatisfied");
  const sets = report.available?.eligibleClusterSets ?? [];
  return element("div", {class: `verdict ${chosen ? "good" : "bad"}`},
    element("p", {class: "summary", id: "verdict"}, `${chosen} of ${plural(report.available?.clusters ?? 0, "cluster")} selected`),
    report.error && element("p", {class: "error"}, report.error),
    !report.responsible && element("p", {}, "celset does not decide this Placement: the annotation celset.dev/placement is missing, or another annotation disables the Placement."),
    report.formerDecisionStands && bad(`No decision is possible now. The previous decision stays in effect, with ${plural(status.numberOfSelectedClusters ?? 0, "cluster")}.`),
    report.undecided && bad("No decision is possible, and there is no previous decision: no cluster is selected."),
    (report.misconfigurations ?? []).map((m) => bad(`${m.field}: ${m.message}`)),
    (report.warnings ?? []).map((w) => bad(`Warning: ${w.reason}: ${w.message}`)),
    (status.conditions ?? []).map((c) => element("p", {class: isBad(c) ? "refused" : "muted"}, `${c.type} ${c.status}: ${c.message}`)),
    report.requeueTime && muted(`The next decision is at ${report.requeueTime}.`),
    muted(`Cluster sets: ${sets.join(", ") || "none"}. ${(report.filteredPipelineResults ?? []).map((f) => `${f.name} removed ${f.removedClusters}.`).join(" ")}`));
}

function decisions(report, heading) {
  const rows = (report.decisionGroups ?? []).flatMap((group) => (group.placementDecisions ?? []).map((d) => element("tr", {},
    element("td", {}, group.decisionGroupName || String(group.decisionGroupIndex)), element("th", {scope: "row"}, d.name),
    element("td", {}, (d.decisions ?? []).map((c) => c.clusterName).join(", ")))));
  return rows.length > 0 && [heading("PlacementDecisions"), table("PlacementDecisions", [["Group"], ["Name"], ["Clusters"]], rows)];
}

// clustersOf lists the clusters with their states: selected clusters first, then the other candidates, then removed clusters.
function clustersOf(report) {
  const candidates = (report.aggregatedScores ?? []).map((c) => ({
    name: c.clusterName, state: c.selected ? "selected" : "not selected", score: c.score,
    why: c.reason || (c.selected && c.predicate !== undefined ? `matches predicate ${c.predicate}` : ""),
  }));
  const removed = (report.filteredPipelineResults ?? []).flatMap((filter) => (filter.removed ?? []).map((r) => ({name: r.clusterName, state: `removed by ${filter.name}`, why: r.reason})));
  return [...candidates.filter((c) => c.state === "selected"), ...candidates.filter((c) => c.state !== "selected"), ...removed];
}

const clusterRow = (c) => element("tr", {"data-cluster": c.name},
  element("th", {scope: "row"}, c.name),
  element("td", {class: `short ${c.state === "selected" ? "selected" : c.score === undefined ? "refused" : "muted"}`}, c.state),
  element("td", {class: "number"}, c.score === undefined ? "" : String(c.score)), element("td", {}, c.why));

function clusters(report, heading) {
  const all = clustersOf(report), body = element("div", {id: "clusters"});
  const search = element("input", {type: "search", id: "search", spellcheck: "false"});
  const show = () => {
    const text = search.value.trim(), matching = all.filter((c) => c.name.includes(text));
    if (matching.length === 0) {
      const sets = report.available?.eligibleClusterSets ?? [];
      body.replaceChildren(muted(text === "" ? "There is no cluster to select." :
        `No cluster has "${text}" in its name, or the cluster is in no cluster set of the Placement: ${sets.join(", ") || "none"}.`));
      return;
    }
    body.replaceChildren(table("Clusters", [["Cluster"], ["State"], ["Score", "number"], ["Reason"]], matching.slice(0, shownAtOnce).map(clusterRow)));
    if (matching.length > shownAtOnce) body.prepend(muted(`${shownAtOnce} of ${plural(matching.length, "cluster")}. Search to see the others.`));
  };
  search.addEventListener("input", show);
  show();
  return [heading("Why this cluster, or why not?"), field("Search clusters", search), body];
}

// withoutEmpty leaves out the selectors that a predicate does not have.
const withoutEmpty = (key, value) => (value && typeof value === "object" && Object.keys(value).length === 0 && key.endsWith("Selector") ? undefined : value);

function predicates(report, heading, decideWithout) {
  const all = report.placement?.spec?.predicates ?? [];
  if (all.length === 0) return [heading("Predicates"), muted("The Placement has no predicates: each cluster that passes the other filters is a candidate.")];
  return [heading("Predicates"), all.map((predicate, i) => {
    const outcome = element("div", {id: `without-${i}`, role: "status"});
    const decide = async () => {
      outcome.replaceChildren(muted("Deciding…"));
      try {
        outcome.replaceChildren(...changes(report, await decideWithout(i)));
      } catch (error) {
        outcome.replaceChildren(failure(error));
      }
    };
    return element("div", {class: "predicate"}, element("pre", {tabindex: 0}, JSON.stringify(predicate, withoutEmpty, 2)),
      decideWithout && element("button", {type: "button", id: `try-${i}`, onclick: decide}, `Decide without predicate ${i}`), outcome);
  })];
}

function changes(before, after) {
  const had = selectedOf(before), has = selectedOf(after);
  const gained = [...has].filter((c) => !had.has(c)), lost = [...had].filter((c) => !has.has(c));
  const names = (list) => list.slice(0, shownAtOnce).join(", ") + (list.length > shownAtOnce ? ` and ${list.length - shownAtOnce} more` : "");
  return [
    element("p", {}, gained.length + lost.length === 0 ? `The same ${plural(has.size, "cluster")} would be selected.` : `${has.size} instead of ${plural(had.size, "cluster")} would be selected.`),
    gained.length > 0 && element("p", {class: "selected"}, `Added: ${names(gained)}`),
    lost.length > 0 && element("p", {class: "refused"}, `Removed: ${names(lost)}`),
    after.error && element("p", {class: "error"}, after.error),
  ].filter(Boolean);
}
