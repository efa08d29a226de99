// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Asks the questions of a WebAssembly program in a worker, so that the page stays responsive while the program computes. A worker
// can't be interrupted, so a question that takes too long ends with its worker, and another worker starts.

// A question may take limit. A question that is no longer wanted may take patience, because a new worker takes time, too.
const limit = 15_000, patience = 1000;

const tooLong = `The answer took longer than ${limit / 1000} s, which is the limit of the playground. The page stopped the program and started it again. ` +
  "Use fewer nodes, a smaller count or a cheaper expression, or ask \"kubectl celset explain\", which is faster.";

export async function create(progress) {
  const waiting = [];
  let worker, module = null, ready = false, running = null, timer, failure = null;

  // start starts a worker. The first worker loads and compiles the program for the others.
  const start = () => new Promise((resolve, reject) => {
    const mine = worker = new Worker(new URL("worker.js", import.meta.url), {type: "module"});
    const end = (text) => {
      reject(new Error(text));
      if (ready) stop(new Error(`${text} The page started it again.`));
    };
    mine.onmessage = ({data}) => {
      if (mine !== worker) return;
      if (data.module) module = data.module;
      else if (data.progress) progress(data.progress);
      else if (data.ended) end(data.ended);
      else if (data.ready) {
        ready = true;
        resolve();
      } else finish(data);
    };
    mine.onerror = (event) => mine === worker && end(`The playground does not run: ${event.message || "the worker does not start"}.`);
    mine.postMessage({start: module});
  });

  // stop ends the running question with its worker.
  function stop(error) {
    worker.terminate();
    ready = false;
    finish({reason: error});
    start().then(next, (reason) => {
      failure = reason;
      for (const {reject} of waiting.splice(0)) reject(reason);
    });
  }

  function finish({answer, error, reason}) {
    clearTimeout(timer);
    const finished = running;
    running = null;
    if (answer !== undefined) finished?.resolve(JSON.parse(answer));
    else finished?.reject(reason ?? new Error(error));
    next();
  }

  function next() {
    if (!ready || running || waiting.length === 0) return;
    running = waiting.shift();
    running.started = performance.now();
    timer = setTimeout(() => stop(new Error(tooLong)), limit);
    worker.postMessage({name: running.name, json: running.json});
  }

  const ask = (name, question, signal) => new Promise((resolve, reject) => {
    if (failure) return reject(failure);
    const asked = {name, json: JSON.stringify(question), resolve, reject};
    waiting.push(asked);
    next();
    signal?.addEventListener("abort", () => {
      reject(signal.reason);
      if (waiting.includes(asked)) waiting.splice(waiting.indexOf(asked), 1);
      if (running !== asked) return;
      clearTimeout(timer);
      timer = setTimeout(() => stop(signal.reason), Math.max(patience - (performance.now() - asked.started), 0));
    });
  });

  await start();
  return {views: ["try", "nodes"], ask, examples: () => fetch("examples.json").then((response) => (response.ok ? response.json() : []))};
}
