// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Builds the editor of the web page, and the file with the licences of the packages in it:
//
//   node build.js [directory]

import {readFile, writeFile} from "node:fs/promises";
import {join} from "node:path";
import {build} from "esbuild";

const folder = process.argv[2] ?? join(import.meta.dirname, "../../internal/page/assets");
const {metafile} = await build({
  absWorkingDir: import.meta.dirname, entryPoints: ["editor.js"], outfile: join(folder, "editor.js"),
  bundle: true, minify: true, format: "esm", target: "es2022", charset: "utf8", metafile: true, logLevel: "warning", legalComments: "none",
  banner: {js: "// Built by web/editor from CodeMirror 6. The licences of its packages are in editor.LICENSES.txt."},
});

const names = new Set(Object.keys(metafile.inputs).flatMap((path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? []));
const licenses = await Promise.all([...names].sort().map(async (name) => {
  const at = (file) => readFile(join(import.meta.dirname, "node_modules", name, file), "utf8");
  return `${name} ${JSON.parse(await at("package.json")).version}\n\n${(await at("LICENSE")).trim()}\n`;
}));
await writeFile(join(folder, "editor.LICENSES.txt"), licenses.join(`\n${"-".repeat(80)}\n\n`));
