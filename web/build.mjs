// Builds the two scripts and the style sheet of the viewer into the Python package; `--out FOLDER` elsewhere.
import { build } from "esbuild";

const at = process.argv.indexOf("--out");
const outdir = at > 0 ? process.argv[at + 1] : "../src/assay/viewer/assets";

await build({
  entryPoints: { app: "src/main.tsx", rich: "src/rich.ts", style: "src/style.css" },
  outdir,
  alias: { entities: "./src/smaller.ts", "linkify-it": "./src/smaller.ts" },
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "inline",
});
