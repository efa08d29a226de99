// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// The list of mistakes below the editor.

import {element, plural} from "./dom.js";

const shownAtOnce = 50;

// createProblems makes the list. goTo(line, column) is called if the user chooses a mistake with a position.
export function createProblems(goTo) {
  const list = element("ul", {class: "problems", tabindex: 0, "aria-label": "Problems"});
  const status = element("p", {class: "hidden", role: "status"});
  return {
    element: element("div", {}, status, list),
    set(problems) {
      const text = problems.length ? plural(problems.length, "problem") : "";
      if (status.textContent !== text) status.textContent = text;
      list.hidden = problems.length === 0;
      list.replaceChildren(...problems.slice(0, shownAtOnce).map((problem) => {
        const kind = problem.severity === "warning" ? "warning" : "error";
        const [first, ...rest] = problem.message.split("\n");
        const where = problem.line > 0 && element("button", {type: "button", class: "position", onclick: () => goTo(problem.line, problem.column)}, `Line ${problem.line}`);
        return element("li", {class: kind}, element("strong", {}, kind === "error" ? "Error" : "Warning"), " ", where, " ", first, rest.length > 0 && element("pre", {tabindex: 0}, rest.join("\n")));
      }), ...problems.length > shownAtOnce ? [element("li", {class: "muted"}, `${problems.length - shownAtOnce} more`)] : []);
    },
  };
}
