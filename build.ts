// `npm run build`: everything that the package ships, into dist. The library as tsc has it; the command and the store's
// writing thread bundled for a fast start, with what only some commands need (the providers' SDKs) in
// files of their own beside them, so that nobody installs those; the console's page; the man page; the licences
// of what was bundled.

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build, type Metafile } from "esbuild";
import { writePage } from "./src/roles/console/bundle.ts";

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as {
  readonly dependencies: Readonly<Record<string, string>>;
};

/** Some of what is bundled is CommonJS, and asks for Node's own modules as that does. */
const REQUIRE = `import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);`;

async function bundleCommand(): Promise<Metafile> {
  const { metafile } = await build({
    entryPoints: { callgate: "bin/callgate.ts", lmdb_worker: "src/store/lmdb_worker.ts" },
    bundle: true,
    splitting: true,
    external: [...Object.keys(manifest.dependencies), "esbuild"],
    platform: "node",
    format: "esm",
    target: "node20",
    outdir: "dist/bin",
    banner: { js: REQUIRE },
    logLevel: "warning",
    legalComments: "none", // their licences are shipped whole
    metafile: true,
  });
  return metafile;
}

const PACKAGE = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//;

/** Of every package that some of is in a bundle. */
function bundledPackages(inputs: readonly string[]): readonly string[] {
  const names = inputs.flatMap((path) => PACKAGE.exec(path)?.[1] ?? []);
  return [...new Set(names)].sort();
}

/** The text of a package's licence; where it ships none, what its manifest says of it. */
function licenceOf(name: string): string {
  const directory = join("node_modules", name);
  const text = readFileSync(join(directory, "package.json"), "utf8");
  const { version, license, author } = JSON.parse(text) as Readonly<Record<string, unknown>>;
  const file = readdirSync(directory).find((one) => /^licen[cs]e(?:\.\w+)?$/i.test(one));
  if (file !== undefined)
    return `${name} ${version}\n\n${readFileSync(join(directory, file), "utf8").trim()}\n`;
  if (typeof license !== "string") throw new Error(`${name} tells no licence: it must not be shipped`);
  return `${name} ${version}\n\nIts package tells the licence ${license}, and the author ${JSON.stringify(author)}.\n`;
}

rmSync("dist", { recursive: true, force: true });
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
  stdio: "inherit",
});
const { inputs } = await bundleCommand();
const pageInputs = await writePage("dist/console");
const licences = bundledPackages([...Object.keys(inputs), ...pageInputs]).map(licenceOf);
writeFileSync("dist/THIRD_PARTY_LICENSES.txt", licences.join(`\n${"-".repeat(80)}\n\n`));
mkdirSync("dist/man", { recursive: true });
writeFileSync("dist/man/callgate.1", execFileSync(process.execPath, ["dist/bin/callgate.js", "man"]));
