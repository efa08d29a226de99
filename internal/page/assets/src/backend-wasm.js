// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Asks the questions of a WebAssembly program in a worker, so that the page stays responsive while the program computes.

export async function create(progress) {
  const worker = new Worker(new URL("worker.js", import.meta.url), {type: "module"});
  const pending = new Map();
  let count = 0, ended = "";
  const end = (text) => {
    ended = text;
    for (const {reject} of pending.values()) reject(new Error(text));
    pending.clear();
  };
  await new Promise((resolve, reject) => {
    worker.onmessage = ({data}) => {
      if (data.ready) return resolve();
      if (data.progress) return progress(data.progress);
      if (data.ended) {
        end(data.ended);
        return reject(new Error(data.ended));
      }
      const question = pending.get(data.id);
      pending.delete(data.id);
      if (data.error !== undefined) question?.reject(new Error(data.error));
      else question?.resolve(JSON.parse(data.answer));
    };
    worker.onerror = (event) => {
      end("The program has ended. Load the page again.");
      reject(new Error(event.message || "The worker does not start."));
    };
  });
  const ask = (name, question) => new Promise((resolve, reject) => {
    if (ended) return reject(new Error(ended));
    pending.set(++count, {resolve, reject});
    worker.postMessage({id: count, name, json: JSON.stringify(question)});
  });
  return {views: ["try", "nodes"], ask, examples: () => fetch("examples.json").then((response) => (response.ok ? response.json() : []))};
}
