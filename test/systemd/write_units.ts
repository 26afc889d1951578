// Rewrites `systemd/`, whose files are made by the code that `callgate install` runs.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { packagedFiles } from "../../src/cli/systemd_files.ts";

export const SYSTEMD = resolve(import.meta.dirname, "../../systemd");

rmSync(SYSTEMD, { recursive: true, force: true });
for (const [path, text] of packagedFiles()) {
  mkdirSync(dirname(join(SYSTEMD, path)), { recursive: true });
  writeFileSync(join(SYSTEMD, path), text);
}
