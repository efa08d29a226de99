// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs the WebAssembly program, and passes it questions.
//   node ask.js wasm_exec.js celset.wasm < questions > answers
// A question is a line [name, json]. An answer is a line {answer, error, milliseconds}.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const [support, program] = process.argv.slice(2);
require(path.resolve(support));
const questions = fs.readFileSync(0, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const began = performance.now();
globalThis.celsetReady = async (answer) => {
  process.stderr.write(`ready after ${Math.round(performance.now() - began)} ms\n`);
  for (const [name, json] of questions) {
    const from = performance.now();
    const result = await answer(name, json);
    process.stdout.write(JSON.stringify({...result, milliseconds: Math.round(performance.now() - from)}) + "\n");
  }
  process.exitCode = 0;
  // The program waits for further questions for ever.
  process.stdout.write("", () => process.exit());
};
const go = new globalThis.Go();
WebAssembly.instantiate(fs.readFileSync(program), go.importObject).then(({instance}) => go.run(instance));
