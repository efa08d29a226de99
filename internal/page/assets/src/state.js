// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// The state of the page is the fragment of its URL, so that a link shares it and the back button undoes a choice. A browser does not
// send the fragment to a server. The bearer token is never part of the state: takeToken moves it out of the first URL.

const tokenKey = "celset-token";

// Long links break in chats and tickets. The second limit is the one of the questions, for links that others made.
const maxPacked = 16 << 10, maxDocuments = 1 << 20;

// takeToken moves the token from the address bar to the storage of this tab. It reports whether there was a token.
export function takeToken() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  if (!parameters.has("token")) return false;
  sessionStorage.setItem(tokenKey, parameters.get("token"));
  parameters.delete("token");
  history.replaceState(null, "", parameters.size ? `#${parameters}` : location.pathname + location.search);
  return true;
}

export const token = () => sessionStorage.getItem(tokenKey) ?? "";

// read returns the parameters of the fragment. The parameter documents is unpacked.
export async function read() {
  const state = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (state.documents !== undefined) {
    state.documents = await unpack(state.documents).catch(() => undefined);
    if (state.documents === undefined) state.damaged = true;
  }
  return state;
}

// write makes state the fragment. It reports whether the documents fit into a link.
export async function write(state, {replace = false} = {}) {
  const parameters = new URLSearchParams();
  let fits = true;
  for (const [key, value] of Object.entries(state)) {
    if (value === undefined || value === "" || key === "token" || key === "damaged") continue;
    const text = key === "documents" ? await pack(value) : String(value);
    if (text.length <= maxPacked) parameters.set(key, text);
    else fits = false;
  }
  const hash = `#${parameters}`;
  if (hash !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", hash);
  return fits;
}

async function pack(text) {
  const packed = new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw")));
  let binary = "";
  for (const byte of new Uint8Array(await packed.arrayBuffer())) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

// unpack stops at maxDocuments, because a short link can unpack to gigabytes.
async function unpack(packed) {
  if (packed.length > 2 * maxPacked) throw new Error("the link is too long");
  const bytes = Uint8Array.from(atob(packed.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder("utf-8", {fatal: true});
  let text = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, {stream: true});
    if (text.length > maxDocuments) throw new Error("the documents in the link are too long");
  }
}
