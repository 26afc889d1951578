// How the page becomes three files that a browser takes: one script, one style sheet, one document. The one place that
// knows; the package's build and a console run from source both come here. Invariant: what comes out needs nothing from elsewhere.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/** The page's files, by the path that they are served at. */
export interface PageFiles {
  readonly "/": Uint8Array;
  readonly "/app.js": Uint8Array;
  readonly "/app.css": Uint8Array;
}

/** Names on disk, in the package. */
export const FILE_NAMES = { "/": "index.html", "/app.js": "app.js", "/app.css": "app.css" } as const;

export const PAGE_DIRECTORY = fileURLToPath(new URL("./page/", import.meta.url));

/** Style sheets first, so that what a component brings along does not come before what everything builds upon. */
const ENTRY = `import "./style.css";\nimport "./pages.css";\nimport "./main.tsx";\n`;

/** @throws where the page's source is wrong, with where */
export async function bundlePage(directory: string = PAGE_DIRECTORY): Promise<PageFiles> {
  return (await bundle(directory)).files;
}

async function bundle(
  directory: string,
): Promise<{ readonly files: PageFiles; readonly inputs: readonly string[] }> {
  const { build } = await import("esbuild");
  const { outputFiles, metafile } = await build({
    stdin: { contents: ENTRY, resolveDir: directory, sourcefile: "entry.ts", loader: "ts" },
    outfile: `${directory}app.js`, // named, never written
    write: false,
    metafile: true,
    bundle: true,
    minify: true,
    format: "iife",
    platform: "browser",
    target: ["chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    tsconfigRaw: { compilerOptions: { strict: true } },
    legalComments: "eof",
    charset: "ascii",
    logLevel: "silent",
  });
  const output = (ending: string) => outputFiles.find(({ path }) => path.endsWith(ending))?.contents;
  const files = {
    "/": await readFile(`${directory}index.html`),
    "/app.js": output(".js") ?? new Uint8Array(),
    "/app.css": output(".css") ?? new Uint8Array(),
  };
  return { files, inputs: Object.keys(metafile.inputs) };
}

/** Writes the page's files into a directory: a step of the package's build. Resolves to the paths of what is in them. */
export async function writePage(directory: string): Promise<readonly string[]> {
  const { files, inputs } = await bundle(PAGE_DIRECTORY);
  await mkdir(directory, { recursive: true });
  for (const path of ["/", "/app.js", "/app.css"] as const) {
    await writeFile(`${directory}/${FILE_NAMES[path]}`, files[path]);
  }
  return inputs;
}
