// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Builds elements. Every text of a cluster becomes a text node, so that it can't become markup.

// visible replaces characters that reorder or hide text by their escape sequences, as the command line does. For example, U+202E shows
// the rest of a line from right to left.
export const visible = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => {
  const code = c.codePointAt(0), hex = code.toString(16);
  if (c === "\n" || c === "\t") return c;
  return code < 0x80 ? `\\x${hex.padStart(2, "0")}` : code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
});

// element makes an element. Attributes that start with "on" are event listeners. An attribute that is undefined, null or false is
// left out, and so is a child.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : key === "aria-label" ? visible(value) : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false).map((child) => (typeof child === "string" ? visible(child) : child)));
  return made;
}

// plural returns the number with the noun: "1 device", "5,000 devices".
export const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

// badge says in words and with a sign whether an answer is positive, so that the colour carries no information of its own.
export const badge = (good, text, sign = good ? "✓" : "✕") => element("span", {class: `badge ${good ? "good" : "bad"}`}, element("span", {"aria-hidden": "true"}, `${sign} `), text);

export const muted = (...text) => element("p", {class: "muted"}, ...text);

export const failure = (error) => element("p", {class: "error", role: "alert"}, error.message || String(error));

export const empty = (title, text) => element("div", {class: "empty"}, element("p", {class: "title"}, title), text && element("p", {}, text));

// table returns a table in a box that scrolls sideways if the window is narrow. heads are texts or pairs of a text and a class.
export function table(caption, heads, rows) {
  return element("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption}, element("table", {},
    element("caption", {class: "hidden"}, caption),
    element("thead", {}, element("tr", {}, heads.map((head) => element("th", {scope: "col", class: head[1]}, head[0])))),
    element("tbody", {}, rows)));
}

// field returns a labelled control.
export const field = (label, control) => element("label", {class: "field"}, element("span", {}, label), control);

// newest returns a function that runs only the newest of several calls: a call ends the former one by its signal. done(result) and
// failed(error) are called for the newest call only. Its method cancel ends the call.
export function newest(run, done, failed) {
  let current = null;
  const next = async (...args) => {
    next.cancel();
    const mine = current = new AbortController();
    try {
      const result = await run(mine.signal, ...args);
      if (mine === current) done(result, ...args);
    } catch (error) {
      if (mine === current) failed(error, ...args);
    }
  };
  next.cancel = () => {
    const former = current;
    current = null;
    former?.abort();
  };
  return next;
}
