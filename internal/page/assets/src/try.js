// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// The view that tries documents: an editor, the machines, and the answer, which follows the text.

import {createEditor} from "../editor.js";
import {element, empty, failure, field, muted, newest, plural} from "./dom.js";
import {explanation, verdictBadge} from "./explanation.js";
import {createProblems} from "./problems.js";

export const title = "Try";

const pause = 400, slow = 300, subjectsAtOnce = 20;

// maxNodes is the limit of the question.
const maxNodes = 200, maxInUse = 1000;

// The first text without examples. It names the parts that a user replaces.
const start = `# Paste a ResourceClaim, a ResourceClaimTemplate, a Pod, a PodGroup or a Placement here.
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: example
spec:
  devices:
    requests:
    - name: devices
      exactly:
        deviceClassName: example.com
        count: 4
`;

export function create(app) {
  const question = {documents: "", machine: "", nodes: 1, inUse: 0, node: undefined};
  const opened = new Map();
  let timer, slowTimer, examples = [], isStale = false;

  const place = element("div", {class: "editor", id: "editor"});
  const editor = createEditor(place, {
    text: "", label: "Documents in YAML", onChange: changed, onSubmit: () => { store(); submit(); },
    complete: (documents, offset) => app.ask("complete", {documents, offset, ...question.machine ? {machine: question.machine} : {}}),
  });
  const problems = createProblems((line, column) => editor.goTo(line, column));
  const answer = element("section", {id: "answer", "aria-label": "Answer", tabindex: -1});
  const cancel = element("button", {type: "button", id: "cancel", onclick: () => { ask.cancel(); idle(); answer.replaceChildren(empty("No answer", "You canceled the question. Change the documents, or press Ctrl-Enter in the editor.")); }}, "Cancel");
  const progress = element("p", {class: "progress", role: "status"}), outcome = element("p", {class: "hidden", role: "status"});
  const note = element("p", {class: "muted note", role: "status"});

  const example = element("select", {id: "example", onchange: () => choose(examples[Number(example.value)])});
  const machine = element("select", {id: "machine", onchange: () => set({machine: machine.value, node: undefined})});
  const number = (id, min, max, key) => element("input", {
    id, type: "number", min, max, value: question[key], oninput: (event) => event.target.checkValidity() && event.target.value !== "" && set({[key]: Number(event.target.value)}),
  });
  const nodes = number("nodes", 1, maxNodes, "nodes"), inUse = number("in-use", 0, maxInUse, "inUse");
  const fields = {example: field("Example", example), nodes: field("Nodes", nodes), inUse: field("Devices in use on each node", inUse)};
  const about = element("p", {class: "muted about", id: "about"});

  const ask = newest((signal, asked) => app.ask("try", asked, signal), show, (error) => {
    idle();
    answer.replaceChildren(failure(error));
    again();
  });
  // A change of the objects does not abort a question: with changes in each second, there would never be an answer.
  const again = () => isStale && submit();

  // idle shows that no question is open.
  function idle() {
    clearTimeout(slowTimer);
    answer.removeAttribute("aria-busy");
    progress.replaceChildren();
  }

  function submit() {
    clearTimeout(timer);
    isStale = false;
    const {documents, machine: name, node} = question;
    if (documents.trim() === "") {
      ask.cancel();
      idle();
      problems.set([]);
      editor.setProblems([]);
      answer.replaceChildren(empty("Nothing to try yet", examples.length ? "Choose an example, or write a claim." : "Write a claim, a pod or a group, or paste one."));
      return;
    }
    answer.setAttribute("aria-busy", "true");
    clearTimeout(slowTimer);
    if (!progress.childElementCount) slowTimer = setTimeout(() => progress.replaceChildren(element("span", {}, "Working… "), cancel), slow);
    ask({documents, ...name ? {machine: name, nodes: question.nodes, inUse: question.inUse} : {}, ...node ? {node} : {}});
  }

  function show(result) {
    shown(result);
    again();
  }

  function shown(result) {
    idle();
    const found = result.problems ?? [], subjects = result.subjects ?? [];
    outcome.textContent = subjects.slice(0, 3).map((s) => `${s.subject}: ${s.verdict === "DoesNotFit" ? "does not fit" : s.verdict.toLowerCase()}`).join(". ");
    problems.set(found);
    editor.setProblems(found);
    if (subjects.length === 0) {
      answer.replaceChildren(found.some((p) => p.severity !== "warning") ? empty("The documents have mistakes", "Correct the problems below the editor to get an answer.") :
        empty("Nothing to answer", "The documents contain no claim, template, pod, group or Placement."));
      return;
    }
    answer.replaceChildren(...subjects.slice(0, subjectsAtOnce).map((subject, i) => article(subject, i === 0)));
    if (subjects.length > subjectsAtOnce) answer.append(muted(`${plural(subjects.length - subjectsAtOnce, "more answer")} not shown.`));
  }

  // article shows the answer about a subject. Only the first answer is open, or the answers that the user has opened.
  function article(subject, first) {
    const {subject: name} = subject;
    return element("details", {
      class: "answer", open: opened.get(name) ?? first, ontoggle: (event) => opened.set(name, event.target.open),
    }, element("summary", {}, element("h2", {}, name), " ", verdictBadge(subject)), explanation(subject, {draw: (node) => set({node})}).flat(Infinity).filter(Boolean));
  }

  function changed(text) {
    question.documents = text;
    example.value = "";
    clearTimeout(timer);
    timer = setTimeout(() => { store(); submit(); }, pause);
  }

  function set(changes) {
    Object.assign(question, changes);
    enable();
    store();
    submit();
  }

  async function store() {
    const {documents, machine: name, node} = question;
    const fits = await app.go({documents, machine: name, nodes: name ? question.nodes : undefined, inUse: name && question.inUse || undefined, node}, {replace: true, quiet: true});
    note.textContent = fits ? "" : "The documents are too long for a link. A link to this page does not contain them.";
  }

  // enable shows the numbers only if they have an effect.
  function enable() {
    fields.nodes.hidden = fields.inUse.hidden = !question.machine;
    nodes.value = question.nodes;
    inUse.value = question.inUse;
    machine.value = question.machine;
  }

  function choose(chosen) {
    if (!chosen) return;
    Object.assign(question, {documents: chosen.documents, machine: chosen.machine ?? "", nodes: chosen.nodes ?? 1, inUse: chosen.inUse ?? 0, node: undefined});
    editor.setText(question.documents);
    example.value = examples.indexOf(chosen);
    set({});
  }

  function setExamples(all) {
    examples = all;
    const groups = Map.groupBy(all.map((e, index) => [e, index]), ([e]) => e.group ?? "Examples");
    example.replaceChildren(element("option", {value: ""}, "Choose an example"), ...[...groups].map(([group, members]) => element("optgroup", {label: group},
      members.map(([e, index]) => element("option", {value: index}, e.title)))));
  }

  async function share() {
    await store();
    try {
      await navigator.clipboard.writeText(location.href);
      note.textContent ||= "The link is copied.";
    } catch {
      note.textContent = "The browser does not allow this page to copy. Copy the link from the address bar.";
    }
  }

  return {
    element: element("div", {class: "page"},
      element("h1", {}, app.playground ? "Try celset" : title), about,
      element("div", {class: "controls"}, fields.example, field("Machine", machine), fields.nodes, fields.inUse, element("button", {type: "button", id: "share", onclick: share}, "Copy link")), note,
      element("div", {class: "try"},
        element("section", {"aria-label": "Documents", class: "documents"}, place, element("p", {class: "muted small"}, "The answer is updated while you type. Press Ctrl-Space for completions, or Ctrl-Enter for an answer at once."), problems.element),
        element("div", {}, progress, outcome, answer))),
    update(overview) {
      // An open list of options must not change without a reason.
      const identity = JSON.stringify([overview.machines, overview.live]);
      if (machine.dataset.shown === identity) return;
      machine.dataset.shown = identity;
      machine.replaceChildren(element("option", {value: ""}, app.playground ? "Nodes in the documents" : overview.live ? "Nodes of the cluster" : "Nodes in the files"), ...(overview.machines ?? []).map((m) => element("option", {value: m.name}, m.title || m.name)));
      if (app.playground && question.documents === "") question.machine = overview.machines?.[0]?.name ?? "";
      enable();
    },
    async show(state, {live}) {
      if (live) {
        if (question.machine) return;
        isStale = answer.hasAttribute("aria-busy");
        if (!isStale) submit();
        return;
      }
      setExamples(await app.examples());
      fields.example.hidden = examples.length === 0;
      about.replaceChildren(...app.playground ?
        ["With celset, a pod asks for a set of devices with one CEL expression. Change the claim, and see which devices it gets. Everything runs in your browser. ", element("a", {href: "https://github.com/celset/celset#readme"}, "What is celset?")] :
        ["Try documents on the nodes that this page shows, or on nodes of another machine. Nothing is written."]);
      if (state.damaged) note.textContent = "The link is damaged: its documents can't be read.";
      // Without documents in the URL, the former ones remain.
      if (state.documents === undefined && question.documents) return set({});
      if (state.documents === undefined && examples.length) return choose(examples[0]);
      Object.assign(question, {
        // A link to documents with their own nodes names no machine.
        documents: state.documents ?? start, machine: state.machine ?? (state.documents === undefined ? question.machine : ""), node: state.node,
        nodes: clamp(state.nodes, 1, maxNodes), inUse: clamp(state.inUse, 0, maxInUse),
      });
      if (editor.text() !== question.documents) editor.setText(question.documents);
      enable();
      if (state.documents === undefined) answer.replaceChildren(empty("Nothing to try yet", "Change the claim, or paste another one."));
      else submit();
    },
  };
}

const clamp = (text, least, most) => Math.min(Math.max(Number.parseInt(text ?? "", 10) || least, least), most);
