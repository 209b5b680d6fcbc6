// Bundles the library for browsers and Node, and its tests; prints the size and fails above the limit.
import { copyFileSync, readdirSync, statSync } from "node:fs";
import { build } from "esbuild";

const LIMIT = 15_000; // bytes, minified

await build({
  entryPoints: { "tacit-device": "src/browser.ts", "tacit-device-node": "src/node.ts" },
  outdir: "build",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  external: ["node:*"],
});
copyFileSync("build/tacit-device.js", "../../examples/phone/page/tacit-device.js");
await build({
  entryPoints: readdirSync("test").map((name) => `test/${name}`),
  outdir: "build/test",
  bundle: true,
  format: "esm",
  platform: "node",
  target: "es2022",
});
for (const name of ["tacit-device", "tacit-device-node"]) {
  const size = statSync(`build/${name}.js`).size;
  console.log(`${name}.js: ${size} bytes minified, limit ${LIMIT}`);
  if (size >= LIMIT) process.exitCode = 1;
}
