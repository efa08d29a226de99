// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Asks celset-placement for decisions, with the bearer token of a user. The token stays in the memory of the page.

export async function create() {
  let bearer = "";
  const base = location.pathname.replace(/\/+$/, "");
  async function ask(name, {namespace, name: placement, without, now}) {
    if (name !== "placement") throw new Error("celset-placement answers questions about Placements only.");
    const query = new URLSearchParams();
    if (without !== undefined) query.set("without", without);
    if (now) query.set("now", now);
    const path = `${base}/${encodeURIComponent(namespace)}/${encodeURIComponent(placement)}`;
    const response = await fetch(query.size ? `${path}?${query}` : path, {
      headers: {Authorization: `Bearer ${bearer}`}, cache: "no-store", credentials: "omit", redirect: "error",
    });
    const body = await response.json();
    if (body.kind === "Status") throw new Error(body.message);
    return body;
  }
  return {views: ["placements"], ask, setToken: (text) => { bearer = text; }};
}
