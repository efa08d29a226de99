// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Starts the page: chooses the back end, shows the view that the URL names, and follows changes.

import {element, failure, muted, plural, visible} from "./dom.js";
import * as nodes from "./nodes.js";
import * as placements from "./placements.js";
import {read, takeToken, write} from "./state.js";
import {gangs, waiting} from "./waiting.js";

const views = {nodes, waiting, gangs, placements: {...placements, number: (overview) => overview.placements?.length}};
const main = document.getElementById("main"), connection = document.getElementById("connection");
let backend, state = {}, overview = null, current = null;
const made = new Map();

// The parts of the page that views use.
const app = {
  ask: (name, question, signal) => backend.ask(name, question, signal),
  examples: () => backend.examples?.().catch(() => []) ?? Promise.resolve([]),
  // go changes the state. With quiet, the view has changed already. It returns whether the documents fit into a link.
  async go(changes, {replace, quiet} = {}) {
    state = {...state, ...changes, damaged: undefined};
    const fits = await write(state, {replace});
    if (!quiet) await show();
    return fits;
  },
};

// The view of the editor is loaded when it is needed, because the editor is half a megabyte.
const load = async (name) => (name === "try" ? import("./try.js") : views[name]);

// navigation updates the links to the views. It keeps the elements, so that the focus remains.
function navigation() {
  const list = document.getElementById("views"), titles = {try: "Try"};
  list.parentElement.hidden = backend.views.length < 2;
  if (!list.childElementCount) {
    list.replaceChildren(...backend.views.map((name) => element("li", {}, element("a", {
      href: `#view=${name}`, id: `view-${name}`, onclick: (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        open(name);
      },
    }, views[name]?.title ?? titles[name], " ", element("span", {class: "count"})))));
  }
  for (const name of backend.views) {
    const link = document.getElementById(`view-${name}`), count = overview && views[name]?.number?.(overview);
    if (name === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    link.querySelector(".count").textContent = count > 0 ? count.toLocaleString("en") : "";
  }
}

// open shows another view, without the choices of the former view.
async function open(name) {
  if (name !== state.view) await app.go({...Object.fromEntries(Object.keys(state).map((key) => [key, undefined])), view: name});
  main.focus({preventScroll: true});
}

// show shows the view that the state names. With live, objects have changed and the state has not.
async function show({live = false} = {}) {
  if (!backend.views.includes(state.view)) state.view = backend.views[0];
  const name = state.view;
  const {title, create} = await load(name);
  if (name !== state.view) return;
  navigation();
  document.title = app.playground ? "celset playground" : `${title} – celset`;
  if (!made.has(name)) made.set(name, create(app));
  const view = made.get(name);
  if (overview && view.updated !== overview) {
    view.updated = overview;
    view.update?.(overview);
  }
  if (current !== view) {
    current = view;
    main.replaceChildren(view.element);
  }
  await view.show(state, {live});
}

// refresh asks for the overview again.
async function refresh() {
  overview = await backend.ask("overview", {});
  if (!app.playground) document.getElementById("origin").textContent = visible(overview.origin ?? "");
  const warnings = (overview.warnings ?? []).slice(0, 100), identity = JSON.stringify(warnings);
  const box = document.getElementById("warnings");
  if (box.dataset.shown === identity) return;
  box.dataset.shown = identity;
  box.hidden = warnings.length === 0;
  box.replaceChildren(element("summary", {}, plural(warnings.length, "warning")), element("ul", {}, warnings.map((w) => element("li", {}, w))));
}

// followChanges refreshes after events, at most once a second.
function followChanges() {
  let timer = null, busy = false, again = false;
  const notify = (text) => {
    if (connection.textContent !== text) connection.textContent = text;
  };
  const run = async () => {
    timer = null;
    if (busy) return void (again = true);
    busy = true;
    try {
      await refresh();
      await show({live: true});
      notify("");
    } catch (error) {
      notify(error.message);
    } finally {
      busy = false;
      if (again) {
        again = false;
        changed();
      }
    }
  };
  const changed = () => { timer ??= setTimeout(run, 1000); };
  backend.follow((revision) => revision !== overview.revision && changed(), notify);
}

async function start() {
  takeToken();
  const {backend: kind} = await (await fetch("configuration.json")).json();
  if (!["http", "wasm", "placements"].includes(kind)) throw new Error(`configuration.json: unknown back end ${kind}`);
  app.playground = kind === "wasm";
  const {create} = await import(`./backend-${kind}.js`);
  backend = app.backend = await create((percent) => main.replaceChildren(muted(`Loading the playground: ${percent} %`)));
  if (kind !== "placements") await refresh();
  if (app.playground && !overview.nodes?.length) backend.views = ["try"];
  state = await read();
  await show();
  if (backend.follow && overview.live) followChanges();
  window.addEventListener("popstate", async () => {
    // The address of a server that was started again has another token.
    if (takeToken()) return location.reload();
    state = await read();
    await show();
  });
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

start().catch((error) => main.replaceChildren(failure(error)));
