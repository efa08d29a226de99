// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Asks the questions over HTTP, and follows the changes of the objects.

import {token} from "./state.js";

const request = (more) => ({cache: "no-store", credentials: "omit", redirect: "error", ...more, headers: {Authorization: `Bearer ${token()}`, ...more?.headers}});

async function ask(name, question, signal) {
  let response;
  try {
    response = await fetch(`answers/${name}`, request({method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(question), signal}));
  } catch {
    signal?.throwIfAborted();
    throw new Error("The server does not answer. If it has ended, start it again and open the URL that it prints.");
  }
  if (response.ok) return response.json();
  if (response.status === 401) throw new Error("The server refuses the token of this page. Open the URL that the server printed.");
  const body = await response.json().catch(() => ({}));
  throw new Error(body.error || `The server answers with status ${response.status}.`);
}

// shown waits until the tab of the page is shown. A browser opens few connections to a server, so a hidden tab uses none.
const shown = () => new Promise((resolve) => {
  const check = () => {
    if (document.hidden) return;
    document.removeEventListener("visibilitychange", check);
    resolve();
  };
  document.addEventListener("visibilitychange", check);
  check();
});

// follow calls changed(revision) after each change of the objects, and notify(text) if the connection begins or ends. It connects
// again after one second, and after twice the time if that fails, up to 30 seconds.
async function follow(changed, notify) {
  for (let wait = 1000; ; wait = Math.min(2 * wait, 30000)) {
    await shown();
    const hidden = new AbortController(), hide = () => document.hidden && hidden.abort();
    document.addEventListener("visibilitychange", hide);
    let text = "The connection has ended. The page shows the last state, and tries to connect again.";
    try {
      const response = await fetch("events", request({signal: hidden.signal}));
      if (response.status === 401) return notify("The server was started again, with another token, and refuses the token of this page. Open the URL that the server printed.");
      if (response.status === 429) text = "Too many open pages: the server sends changes to no more pages. Close other tabs with this page. The page tries to connect again.";
      if (!response.ok) throw new Error(response.statusText);
      notify("");
      wait = 500;
      await readEvents(response.body, changed);
    } catch {
      // The reason makes no difference: the page connects again.
    } finally {
      document.removeEventListener("visibilitychange", hide);
    }
    if (hidden.signal.aborted) continue;
    notify(text);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

async function readEvents(body, changed) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop().slice(-4096);
    const data = lines.findLast((line) => line.startsWith("data:"));
    if (data) changed(JSON.parse(data.slice(5)).revision);
  }
}

export const create = async () => ({views: ["nodes", "waiting", "gangs", "placements", "try"], ask, follow});
