// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Asks the questions of a WebAssembly program in a worker, so that the page stays responsive while the program computes.

// abortedPatience is the time for a question whose answer is not needed any more. To start the program again takes some seconds, too.
const abortedPatience = 5000;

// start starts a program, and returns a function that asks it a question. Nothing interrupts a program in WebAssembly, and its own
// time limits have no effect while it computes. So the program is ended if a question takes more milliseconds than patience, and
// late is called.
async function start(progress, patience, late) {
  const worker = new Worker(new URL("worker.js", import.meta.url), {type: "module"});
  const pending = new Map();
  let count = 0, ended = "", timer;
  const end = (text) => {
    ended = text;
    clearTimeout(timer);
    worker.terminate();
    for (const {reject} of pending.values()) reject(new Error(text));
    pending.clear();
  };
  // The program answers one question at a time, in their order.
  const watch = (time = patience) => {
    clearTimeout(timer);
    if (pending.size > 0) timer = setTimeout(() => {
      end(`The answer takes more than ${time / 1000} seconds. Ask about fewer nodes or devices, or simplify the expression.`);
      late();
    }, time);
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
      watch();
      if (data.error !== undefined) question?.reject(new Error(data.error));
      else question?.resolve(JSON.parse(data.answer));
    };
    worker.onerror = (event) => {
      end("The program has ended. Load the page again.");
      reject(new Error(event.message || "The worker does not start."));
    };
  });
  return (name, question, signal) => new Promise((resolve, reject) => {
    if (ended) return reject(new Error(ended));
    if (signal?.aborted) return reject(signal.reason);
    const id = ++count;
    pending.set(id, {resolve, reject});
    if (pending.size === 1) watch();
    worker.postMessage({id, name, json: JSON.stringify(question)});
    signal?.addEventListener("abort", () => pending.has(id) && watch(Math.min(patience, abortedPatience)));
  });
}

export async function create(progress, patience = 30000) {
  const again = () => {
    program = start(() => {}, patience, again);
    program.catch(() => {}); // the next question gets the error
  };
  let program = start(progress, patience, again);
  await program;
  const ask = async (name, question, signal) => (await program)(name, question, signal);
  return {views: ["try", "nodes"], ask, examples: () => fetch("examples.json").then((response) => (response.ok ? response.json() : []))};
}
