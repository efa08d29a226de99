// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs the WebAssembly program. The program calls the global function celsetReady with its function answer(name, json), which
// returns a promise of {answer} or {error}.

import "../wasm_exec.js";

let answer;
globalThis.celsetReady = (function_) => {
  answer = function_;
  postMessage({ready: true});
};

onmessage = async ({data: {id, name, json}}) => {
  try {
    postMessage({id, ...await answer(name, json)});
  } catch (error) {
    postMessage({id, error: String(error?.message ?? error)});
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

try {
  const response = await fetch(new URL("../celset.wasm.gz", import.meta.url));
  if (!response.ok) throw new Error(`celset.wasm.gz: status ${response.status}`);
  // A server may have the file unpacked already, with a header for its encoding.
  const unpacked = response.headers.get("Content-Encoding") === "gzip" ? response.body : counted(response).pipeThrough(new DecompressionStream("gzip"));
  const go = new globalThis.Go();
  const {instance} = await WebAssembly.instantiateStreaming(new Response(unpacked, {headers: {"Content-Type": "application/wasm"}}), go.importObject);
  await go.run(instance);
  throw new Error("the program has ended; load the page again");
} catch (error) {
  postMessage({ended: `The playground does not run: ${error.message}`});
}
