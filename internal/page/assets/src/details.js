// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Shows the answer to a question about the chosen item.

import {failure, muted} from "./dom.js";

// createDetails returns a function that asks a question and shows the answer in output. render(answer, question) returns the parts
// to show. An answer that is equal to the shown one changes nothing, so that the focus and opened parts remain.
export function createDetails(output, ask, render) {
  let asked = "", shown = "", count = 0;
  return async function show(question) {
    const mine = ++count, identity = JSON.stringify(question);
    if (identity !== asked || output.querySelector(".hint")) {
      asked = identity;
      shown = "";
      if (!output.childElementCount || output.querySelector(".hint, .error")) output.replaceChildren(muted("Loading…"));
      output.setAttribute("aria-busy", "true");
      // On a narrow screen, the details are below the list.
      if (matchMedia("(max-width: 56rem)").matches) output.scrollIntoView();
    }
    let text, parts;
    try {
      const answer = await ask(question);
      // The time of a decision differs in each answer.
      text = JSON.stringify(answer, (key, value) => (key === "time" ? undefined : value));
      if (mine === count && text !== shown) parts = render(answer, question);
    } catch (error) {
      text = error.message;
      parts = [failure(error)];
    }
    if (mine !== count) return;
    output.removeAttribute("aria-busy");
    if (text === shown) return;
    shown = text;
    const hadFocus = output.contains(document.activeElement);
    output.replaceChildren(...parts.flat(Infinity).filter(Boolean));
    if (hadFocus && !output.contains(document.activeElement)) output.focus({preventScroll: true});
  };
}
