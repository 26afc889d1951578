// Where a shell finds the `callgate` command under test: a directory for its PATH, and an environment that is the
// same on every machine.

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callgate, onCleanUp } from "../daemon/daemon.ts";

export interface ShellPlace {
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
}

export function shellPlace(): ShellPlace {
  const directory = mkdtempSync(join(tmpdir(), "callgate-shell-"));
  onCleanUp(() => rmSync(directory, { recursive: true, force: true }));
  const command = join(directory, "callgate");
  writeFileSync(command, `#!/bin/sh\nexec ${process.execPath} ${callgate()} "$@"\n`);
  chmodSync(command, 0o755);
  const path = `${directory}:${process.env["PATH"] ?? ""}`;
  return { directory, env: { PATH: path, HOME: directory, LANG: "C.UTF-8", NODE_OPTIONS: "", HISTFILE: "" } };
}
