// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// A list box for thousands of items. Only the visible rows are in the document. Each row has the same height. For assistive
// technology, each row has attributes with its position among all rows.

import {element, plural} from "./dom.js";

const rowHeight = 60, spare = 6;
let lists = 0;

// createList makes a list of items. options:
//   label   accessible name of the list
//   noun    name of an item, for the number of items
//   key     function that returns the identity of an item, as text
//   words   function that returns the text that the search field searches
//   row     function that returns the contents of a row
//   choose  function that is called with the item that the user chooses
export function createList({label, noun, key, words, row, choose}) {
  const prefix = `list-${++lists}`;
  let items = [], shown = [], active = 0, chosen = null;

  const search = element("input", {type: "search", spellcheck: "false", autocomplete: "off", placeholder: "Search", "aria-label": `Search: ${label}`});
  const count = element("p", {class: "muted count", role: "status"});
  const rows = element("div", {class: "rows", role: "presentation"});
  const box = element("div", {class: "listbox", role: "listbox", tabindex: 0, "aria-label": label}, rows);

  function draw() {
    const first = Math.max(Math.floor(box.scrollTop / rowHeight) - spare, 0);
    const last = Math.min(Math.ceil((box.scrollTop + (box.clientHeight || 600)) / rowHeight) + spare, shown.length);
    rows.style.height = `${shown.length * rowHeight}px`;
    rows.replaceChildren(...shown.slice(first, last).map((item, offset) => {
      const position = first + offset;
      const made = element("div", {
        id: `${prefix}-${position}`, role: "option", class: position === active ? "row active" : "row", "data-key": key(item),
        "aria-selected": String(key(item) === chosen), "aria-setsize": shown.length, "aria-posinset": position + 1,
        onclick: () => { activate(position); pick(); },
      }, row(item));
      made.style.top = `${position * rowHeight}px`;
      return made;
    }));
    if (active >= first && active < last) box.setAttribute("aria-activedescendant", `${prefix}-${active}`);
    else box.removeAttribute("aria-activedescendant");
  }

  function filter() {
    const parts = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const former = shown[active] && key(shown[active]);
    shown = parts.length ? items.filter((item) => parts.every((part) => words(item).toLowerCase().includes(part))) : items;
    active = Math.max(shown.findIndex((item) => key(item) === former), 0);
    count.textContent = parts.length ? `${shown.length.toLocaleString("en")} of ${plural(items.length, noun)}` : plural(items.length, noun);
    box.hidden = shown.length === 0;
    draw();
  }

  function activate(position) {
    active = Math.min(Math.max(position, 0), shown.length - 1);
    const top = active * rowHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight - box.clientHeight;
    draw();
  }

  function pick() {
    if (!shown[active]) return;
    chosen = key(shown[active]);
    draw();
    choose(shown[active]);
  }

  const page = () => Math.max(Math.floor(box.clientHeight / rowHeight) - 1, 1);
  const moves = {
    ArrowDown: () => active + 1, ArrowUp: () => active - 1, Home: () => 0, End: () => shown.length - 1,
    PageDown: () => active + page(), PageUp: () => active - page(),
  };
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (moves[event.key]) activate(moves[event.key]());
    else if (event.key === "Enter" || event.key === " ") pick();
    else return;
    event.preventDefault();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      box.focus();
    } else if (event.key === "Enter") pick();
  });
  search.addEventListener("input", () => { box.scrollTop = 0; filter(); });
  box.addEventListener("scroll", draw, {passive: true});
  new ResizeObserver(draw).observe(box);

  return {
    element: element("div", {class: "list"}, element("div", {class: "search"}, search, count), box),
    // set replaces the items. The search, the scroll position and the choice remain.
    set(all) {
      items = all;
      filter();
    },
    // choose marks an item as chosen, and scrolls to it if it was not chosen before.
    choose(identity) {
      if (identity === chosen) return;
      chosen = identity;
      const position = shown.findIndex((item) => key(item) === identity);
      if (position >= 0) activate(position);
      else draw();
    },
  };
}

// createBrowser makes a list with the details of the chosen item beside it.
export function createBrowser(title, list, {none, hint}) {
  const details = element("section", {class: "details", "aria-label": `${title}: details`, tabindex: -1}, element("p", {class: "muted hint"}, hint));
  const body = element("div", {class: "browser"}, list.element, details);
  const nothing = element("div", {hidden: true}, none);
  return {
    element: element("div", {}, element("h1", {}, title), nothing, body),
    details,
    set(items) {
      nothing.hidden = items.length > 0;
      body.hidden = items.length === 0;
      list.set(items);
    },
    hint: () => details.replaceChildren(element("p", {class: "muted hint"}, hint)),
  };
}
