// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs the WebAssembly program, and answers one question after another. The program calls the global function celsetReady with its function answer(name, json), which
// returns a promise of {answer} or {error}.

import "../wasm_exec.js";

let answer;
globalThis.celsetReady = (function_) => {
  answer = function_;
  postMessage({ready: true});
};

onmessage = async ({data: {start, name, json}}) => {
  if (start !== undefined) return run(start);
  try {
    postMessage(await answer(name, json));
  } catch (error) {
    postMessage({error: String(error?.message ?? error)});
  }
};

// counted reports the progress of a download, at most once for each percent.
function counted(response) {
  const total = Number(response.headers.get("Content-Length"));
  let received = 0, percent = 0;
  return response.body.pipeThrough(new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      received += chunk.length;
      const now = total ? Math.min(Math.floor(100 * received / total), 100) : 0;
      if (now > percent) postMessage({progress: percent = now});
    },
  }));
}

// compile loads and compiles the program, and sends it to the page for other workers.
async function compile() {
  const response = await fetch(new URL("../celset.wasm.gz", import.meta.url));
  if (!response.ok) throw new Error(`celset.wasm.gz: status ${response.status}`);
  // A server may have the file unpacked already, with a header for its encoding.
  const unpacked = response.headers.get("Content-Encoding") === "gzip" ? response.body : counted(response).pipeThrough(new DecompressionStream("gzip"));
  const module = await WebAssembly.compileStreaming(new Response(unpacked, {headers: {"Content-Type": "application/wasm"}}));
  postMessage({module});
  return module;
}

// run runs the program. module is null, or the compiled program.
async function run(module) {
  try {
    const go = new globalThis.Go();
    await go.run(await WebAssembly.instantiate(module ?? await compile(), go.importObject));
    throw new Error("the program has ended, perhaps because it had too little memory.");
  } catch (error) {
    postMessage({ended: `The playground does not run: ${error.message}`});
  }
}
