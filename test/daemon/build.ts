// Compiles this very source once for a whole run, for the tests that start real processes: compiled
// they start in a third of the time. A fault of the compiler is told by the tests that need the outcome.

import { execFile } from "node:child_process";
import { chmod, copyFile, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { writePage } from "../../src/roles/console/bundle.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Directory of the compiled package, or why there is none. */
    readonly compiled: { readonly directory: string } | { readonly fault: string };
  }
}

const root = resolve(import.meta.dirname, "../..");

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  process.umask(0o022); // the workers inherit it: tests that look at modes find the same on every machine
  const directory = await mkdtemp(join(tmpdir(), "callgate-compiled-"));
  await chmod(directory, 0o755); // some tests run it as another user
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const flags = ["-p", join(root, "tsconfig.build.json"), "--noCheck", "--declaration", "false"];
  try {
    await promisify(execFile)(process.execPath, [tsc, ...flags, "--outDir", directory]);
    await copyFile(join(root, "package.json"), join(directory, "package.json"));
    await symlink(join(root, "node_modules"), join(directory, "node_modules"));
    await writePage(join(directory, "console")).then(undefined, tellMissing);
    project.provide("compiled", { directory });
  } catch (error) {
    project.provide("compiled", { fault: String(error) });
  }
  return () => rm(directory, { recursive: true, force: true });
}

/** Only the console needs it, and says that it is missing. */
function tellMissing(error: unknown): void {
  process.stderr.write(`the console's page can't be bundled: ${String(error)}\n`);
}
