// The page as it is served: bundled when the package was built, or from its source where the project runs from that.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { fault, ok, type Result } from "../../base/faults.ts";
import type { PageFiles } from "./bundle.ts";

/** From the compiled command it is one level up; from this file, compiled alone, three. */
const BUILT = ["../console/", "../../../console/"];

/** Read once; the fault is for whoever installed it. */
export async function loadPage(): Promise<Result<PageFiles>> {
  if (existsSync(new URL("./page/main.tsx", import.meta.url))) return fromSource();
  for (const directory of BUILT) {
    const found = await readBuilt(fileURLToPath(new URL(directory, import.meta.url)));
    if (found !== undefined) return ok(found);
  }
  return fault(
    "the console's page is missing from this installation (dist/console): build or install it again",
  );
}

async function fromSource(): Promise<Result<PageFiles>> {
  try {
    return ok(await (await import("./bundle.ts")).bundlePage());
  } catch (error) {
    return fault(
      `the console's page can't be bundled: ${error instanceof Error ? error.message : "unknown error"}`,
    );
  }
}

/** The page out of a directory (with its last slash) that the build has written; undefined: it is not there. */
export async function readBuilt(directory: string): Promise<PageFiles | undefined> {
  try {
    const [page, script, style] = await Promise.all(
      ["index.html", "app.js", "app.css"].map((name) => readFile(`${directory}${name}`)),
    );
    if (page === undefined || script === undefined || style === undefined) return undefined;
    return { "/": page, "/app.js": script, "/app.css": style };
  } catch {
    return undefined;
  }
}
