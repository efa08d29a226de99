// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// The editor for YAML, as one module without dependencies. The content security policy of the page forbids style elements, so
// the editor is in a shadow root: there, CodeMirror adds its rules as constructed style sheets. Colours are the custom
// properties of the page, which a shadow root inherits.

import {autocompletion, completionKeymap} from "@codemirror/autocomplete";
import {defaultKeymap, history, historyKeymap} from "@codemirror/commands";
import {yaml} from "@codemirror/lang-yaml";
import {HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting} from "@codemirror/language";
import {lintGutter, lintKeymap, setDiagnostics} from "@codemirror/lint";
import {highlightSelectionMatches, searchKeymap} from "@codemirror/search";
import {EditorState, Transaction} from "@codemirror/state";
import {
  EditorView, drawSelection, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers,
} from "@codemirror/view";
import {tags} from "@lezer/highlight";

const colors = HighlightStyle.define([
  {tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)"},
  {tag: [tags.string, tags.content, tags.attributeValue], color: "var(--text)"},
  {tag: [tags.comment, tags.lineComment], color: "var(--muted)"},
  {tag: [tags.meta, tags.documentMeta, tags.separator, tags.punctuation, tags.bracket, tags.brace, tags.squareBracket], color: "var(--muted)"},
  {tag: [tags.keyword, tags.typeName, tags.labelName], color: "var(--code-tag)"},
]);

const theme = EditorView.theme({
  "&": {color: "var(--text)", backgroundColor: "var(--field)", fontSize: "13.5px", height: "100%"},
  "&.cm-focused": {outline: "none"},
  ".cm-scroller": {fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", lineHeight: "1.55"},
  ".cm-content": {caretColor: "var(--text)", padding: "8px 0"},
  ".cm-cursor": {borderLeftColor: "var(--text)"},
  ".cm-gutters": {backgroundColor: "var(--field)", color: "var(--muted)", border: "none"},
  ".cm-activeLine": {backgroundColor: "var(--line-faint)"},
  ".cm-activeLineGutter": {backgroundColor: "var(--line-faint)", color: "var(--text)"},
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {backgroundColor: "var(--selection)"},
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": {backgroundColor: "var(--selection)", outline: "none"},
  ".cm-selectionMatch": {backgroundColor: "var(--selection)"},
  ".cm-tooltip": {
    color: "var(--text)", backgroundColor: "var(--raised)", border: "1px solid var(--line)", borderRadius: "6px",
    boxShadow: "0 4px 16px #0003", maxWidth: "min(32rem, 90vw)", fontFamily: "system-ui, sans-serif",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": {fontFamily: "ui-monospace, monospace", maxHeight: "14em"},
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": {padding: "3px 8px", lineHeight: "1.4"},
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {backgroundColor: "var(--accent)", color: "var(--on-accent)"},
  ".cm-tooltip.cm-completionInfo": {padding: "6px 10px", maxWidth: "20rem"},
  ".cm-completionDetail": {fontStyle: "normal", opacity: "1"},
  ".cm-completionMatchedText": {textDecoration: "none", fontWeight: "700"},
  ".cm-diagnostic": {padding: "6px 10px", whiteSpace: "pre-wrap", overflowWrap: "anywhere"},
  ".cm-diagnostic-error": {borderLeft: "4px solid var(--bad)"},
  ".cm-diagnostic-warning": {borderLeft: "4px solid var(--warn)"},
  ".cm-panels": {color: "var(--text)", backgroundColor: "var(--panel)", borderColor: "var(--line)"},
  ".cm-textfield": {color: "var(--text)", backgroundColor: "var(--field)", border: "1px solid var(--line)"},
  ".cm-button": {color: "var(--text)", backgroundColor: "var(--raised)", backgroundImage: "none", border: "1px solid var(--line)"},
});

// createEditor adds an editor to the element parent.
//
// options.text is the first text, and options.label the accessible name. onChange(text) is called after each change by the user.
// onSubmit() is called for Ctrl-Enter. complete(text, offset) returns a promise of a CompleteAnswer.
export function createEditor(parent, options) {
  const root = parent.attachShadow({mode: "open"});
  const source = async (context) => {
    if (!context.explicit && !context.matchBefore(/[\w."'[(]$/)) return null;
    const answer = await options.complete(context.state.doc.toString(), context.pos).catch(() => null);
    if (!answer?.options?.length || context.aborted) return null;
    return {
      from: Math.min(Math.max(answer.from, 0), context.pos), validFor: /^[\w-]*$/,
      options: answer.options.map(({label, detail, info, apply}) => ({label, detail, info: info || undefined, apply: apply || undefined})),
    };
  };
  const extensions = [
    lineNumbers(), lintGutter(), history(), drawSelection(), highlightSpecialChars(), highlightActiveLine(), highlightSelectionMatches(),
    indentOnInput(), bracketMatching(), yaml(), syntaxHighlighting(colors), theme, EditorState.tabSize.of(2),
    autocompletion({override: [source], icons: false}),
    EditorView.contentAttributes.of({"aria-label": options.label, tabindex: "0"}),
    // If the user types over highlighted text, Chromium keeps its colour by a style attribute, which the policy forbids.
    EditorView.domEventHandlers({
      beforeinput(event, view) {
        if (event.inputType !== "insertText" || event.data === null || view.composing || view.state.selection.main.empty) return false;
        view.dispatch(view.state.replaceSelection(event.data), {userEvent: "input.type", scrollIntoView: true});
        return true;
      },
    }),
    // The Tab key is not bound, so that it leaves the editor.
    keymap.of([
      {key: "Mod-Enter", run: () => { options.onSubmit(); return true; }},
      ...completionKeymap, ...lintKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap,
    ]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged && !update.transactions.every((t) => t.annotation(Transaction.remote))) options.onChange(update.state.doc.toString());
    }),
  ];
  const view = new EditorView({parent: root, root, state: EditorState.create({doc: options.text, extensions})});

  // positionOf returns the offset of a line and column that count from 1. A position outside of the text becomes the nearest one.
  const positionOf = (line, column) => {
    const found = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
    return Math.min(found.from + Math.max(column - 1, 0), found.to);
  };
  return {
    text: () => view.state.doc.toString(),
    focus: () => view.focus(),
    setText(text) {
      view.dispatch({changes: {from: 0, to: view.state.doc.length, insert: text}, annotations: Transaction.remote.of(true), scrollIntoView: true, selection: {anchor: 0}});
    },
    // setProblems marks problems in the text. A mark goes from the position to the end of the line.
    setProblems(problems) {
      view.dispatch(setDiagnostics(view.state, problems.filter((p) => p.line > 0).map((p) => {
        const from = positionOf(p.line, p.column || 1 + view.state.doc.line(Math.min(p.line, view.state.doc.lines)).text.search(/\S|$/));
        return {from, to: Math.max(from, view.state.doc.lineAt(from).to), severity: p.severity === "warning" ? "warning" : "error", message: p.message};
      })));
    },
    goTo(line, column) {
      view.dispatch({selection: {anchor: positionOf(line, column || 1)}, effects: EditorView.scrollIntoView(positionOf(line, column || 1), {y: "center"})});
      view.focus();
    },
  };
}
