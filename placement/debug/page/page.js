"use strict";

// Everything is text: nothing that a cluster or a Placement says becomes a part of the page's structure.
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "onclick") made.addEventListener("click", value);
    else if (key === "class") made.className = value;
    else made.setAttribute(key, value);
  }
  for (const child of children.flat()) made.append(child);
  return made;
}

const byId = (id) => document.getElementById(id);
const base = location.pathname.replace(/\/+$/, "");
const shownAtOnce = 200;

// ask decides the Placement that the form names, as it is or without one of its predicates, now or at the
// time that the form has.
async function ask(without) {
  const path = `${base}/${encodeURIComponent(byId("namespace").value.trim())}/${encodeURIComponent(byId("name").value.trim())}`;
  const query = new URLSearchParams();
  if (without !== undefined) query.set("without", without);
  if (byId("at").value.trim() !== "") query.set("now", byId("at").value.trim());
  const answer = await fetch(query.size ? `${path}?${query}` : path, {
    headers: { Authorization: `Bearer ${byId("token").value.trim()}` },
    cache: "no-store", credentials: "omit", redirect: "error",
  });
  const body = await answer.json();
  if (body.kind === "Status") throw new Error(body.message);
  return body;
}

// clustersOf tells of each cluster what became of it, those that are selected first.
function clustersOf(report) {
  const clusters = [];
  for (const c of report.aggregatedScores) {
    clusters.push({
      name: c.clusterName, state: c.selected ? "selected" : "not selected", score: c.score, why: c.reason ||
        (c.selected && c.predicate !== undefined ? `matches predicate ${c.predicate}` : "") || "",
    });
  }
  for (const filter of report.filteredPipelineResults) {
    for (const r of filter.removed) clusters.push({ name: r.clusterName, state: `removed by ${filter.name}`, why: r.reason });
  }
  const rank = (c) => (c.state === "selected" ? 0 : c.score !== undefined ? 1 : 2);
  return clusters.map((c, i) => [c, i]).sort(([a, i], [b, j]) => rank(a) - rank(b) || i - j).map(([c]) => c);
}

function table(heads, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, heads.map(([text, kind]) => element("th", { scope: "col", class: kind || "" }, text)))),
    element("tbody", {}, rows));
}

function clusterRows(clusters) {
  return clusters.slice(0, shownAtOnce).map((c) => element("tr", { "data-cluster": c.name },
    element("td", {}, c.name),
    element("td", { class: `short ${c.state === "selected" ? "selected" : c.score === undefined ? "refused" : "muted"}` }, c.state),
    element("td", { class: "short number" }, c.score === undefined ? "" : String(c.score)),
    element("td", {}, c.why)));
}

// found lists the clusters whose name has a text in it, and says of one that is named and not there why.
function found(report, clusters) {
  const body = element("div", { id: "clusters" });
  const search = element("input", { id: "search", type: "search", spellcheck: "false" });
  const show = () => {
    const text = search.value.trim();
    const matching = clusters.filter((c) => c.name.includes(text));
    const note = [];
    if (matching.length === 0) {
      note.push(element("p", { class: "refused" }, text === "" ? "There is no cluster to choose from." :
        `No cluster to choose from has "${text}" in its name: it is in none of the cluster sets ${report.available.eligibleClusterSets.join(", ") || "(there are none)"}, or does not exist.`));
    } else if (matching.length > shownAtOnce) {
      note.push(element("p", { class: "muted" }, `${shownAtOnce} of ${matching.length} clusters; name one to see it.`));
    }
    body.replaceChildren(...note, ...(matching.length ? [table([["Cluster"], ["State"], ["Score", "number"], ["Why"]], clusterRows(matching))] : []));
  };
  search.addEventListener("input", show);
  show();
  return [element("h2", {}, "Why not this one?"), element("label", {}, "Cluster", search), body];
}

const selectedOf = (report) => new Set(report.aggregatedScores.filter((c) => c.selected).map((c) => c.clusterName));

// predicates shows each, and what would be selected if it went.
function predicates(report) {
  const all = report.placement.spec.predicates || [];
  const parts = [element("h2", {}, "What if this predicate went?")];
  if (all.length === 0) return [...parts, element("p", { class: "muted" }, "There are no predicates: every cluster that passes the other filters will do.")];
  all.forEach((predicate, i) => {
    const outcome = element("div", { id: `without-${i}` });
    const button = element("button", {
      type: "button", id: `try-${i}`, onclick: async () => {
        outcome.replaceChildren(element("p", { class: "muted" }, "deciding …"));
        try {
          outcome.replaceChildren(...changes(report, await ask(i)));
        } catch (error) {
          outcome.replaceChildren(element("p", { class: "error" }, error.message));
        }
      },
    }, `Decide without predicate ${i}`);
    parts.push(element("pre", {}, JSON.stringify(predicate, unlessEmpty, 2)), button, outcome);
  });
  return parts;
}

// unlessEmpty leaves out the selectors that a predicate does not have.
const unlessEmpty = (key, value) => (value && typeof value === "object" && Object.keys(value).length === 0 && key.endsWith("Selector") ? undefined : value);

function changes(before, after) {
  const [had, has] = [selectedOf(before), selectedOf(after)];
  const gained = [...has].filter((c) => !had.has(c)), lost = [...had].filter((c) => !has.has(c));
  const names = (list) => list.slice(0, shownAtOnce).join(", ") + (list.length > shownAtOnce ? ` and ${list.length - shownAtOnce} more` : "");
  const same = gained.length + lost.length === 0;
  const lines = [element("p", {}, same ? `The same ${has.size} clusters would be selected.` : `${has.size} instead of ${had.size} clusters would be selected.`)];
  if (gained.length) lines.push(element("p", { class: "selected" }, `Added: ${names(gained)}`));
  if (lost.length) lines.push(element("p", { class: "refused" }, `Gone: ${names(lost)}`));
  if (after.error) lines.push(element("p", { class: "error" }, after.error));
  return lines;
}

// isBad tells which conditions need somebody: PlacementSatisfied if it is not true, the others if they are.
const isBad = (condition) => (condition.status === "True") !== (condition.type === "PlacementSatisfied");

function verdict(report) {
  const chosen = selectedOf(report).size;
  const parts = [element("p", { class: chosen === 0 ? "big refused" : "big", id: "verdict" }, `${chosen} of ${report.available.clusters} clusters selected`)];
  if (report.error) parts.push(element("p", { class: "error" }, report.error));
  if (!report.responsible) parts.push(element("p", {}, "celset does not decide this Placement: it has no annotation celset.dev/placement, or another one disables it."));
  if (report.formerDecisionStands) parts.push(element("p", { class: "refused" }, `No decision can be made: the previous decision stays in effect, with ${report.status.numberOfSelectedClusters} clusters.`));
  if (report.undecided) parts.push(element("p", { class: "refused" }, "No decision can be made, and no previous decision exists: no cluster is selected."));
  for (const m of report.misconfigurations || []) parts.push(element("p", { class: "refused lines" }, `${m.field}: ${m.message}`));
  for (const w of report.warnings || []) parts.push(element("p", { class: "refused" }, `Warning: ${w.reason}: ${w.message}`));
  for (const c of report.status.conditions || []) parts.push(element("p", { class: `${isBad(c) ? "refused" : "muted"} lines` }, `${c.type} ${c.status}: ${c.message}`));
  if (report.requeueTime) parts.push(element("p", { class: "muted" }, `It is decided anew at ${report.requeueTime}.`));
  parts.push(element("p", { class: "muted" }, `Cluster sets: ${report.available.eligibleClusterSets.join(", ") || "none"}. ` +
    report.filteredPipelineResults.map((f) => `${f.name} removed ${f.removedClusters}.`).join(" ")));
  return element("div", { class: "panel" }, parts);
}

function decisions(report) {
  const rows = report.decisionGroups.flatMap((group) => (group.placementDecisions || []).map((d) => element("tr", {},
    element("td", {}, group.decisionGroupName || String(group.decisionGroupIndex)), element("td", { class: "short" }, d.name),
    element("td", {}, (d.decisions || []).map((c) => c.clusterName).join(", ")))));
  return rows.length ? [element("h2", {}, "PlacementDecisions"), table([["Group"], ["Name"], ["Clusters"]], rows)] : [];
}

byId("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = byId("answer");
  answer.replaceChildren(element("p", { class: "muted" }, "deciding …"));
  try {
    const report = await ask();
    location.hash = `${byId("namespace").value.trim()}/${byId("name").value.trim()}`;
    answer.replaceChildren(element("h2", {}, `${report.placement.metadata.namespace}/${report.placement.metadata.name}`),
      verdict(report), ...decisions(report), ...found(report, clustersOf(report)), ...predicates(report));
  } catch (error) {
    answer.replaceChildren(element("p", { class: "error", id: "error" }, error.message));
  }
});

// A link names the Placement, and never the token.
const [namespace, name] = decodeURIComponent(location.hash.slice(1)).split("/");
byId("namespace").value = namespace || "";
byId("name").value = name || "";
