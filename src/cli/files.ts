// `callgate role files`: the files provider as a program, until a signal ends it.

import { FILES_TOOLS } from "../roles/files/definitions.ts";
import { serveFiles } from "../roles/files/files_role.ts";
import { ROOT_OPTION_SYNTAX } from "../roles/files/root_option.ts";
import { addressOf, UsageFault, type Way } from "./call.ts";
import { EXIT, type Terminal } from "./terminal.ts";

export interface FilesFlags extends Way {
  readonly root: readonly string[];
  readonly prefix?: string | undefined;
  readonly announce?: boolean;
}

export async function runFiles(terminal: Terminal, flags: FilesFlags): Promise<number> {
  const to = addressOf(flags);
  if (flags.root.length === 0) throw new UsageFault(`say what to serve: --root ${ROOT_OPTION_SYNTAX}`);
  const served = await serveFiles({
    to,
    roots: flags.root,
    prefix: flags.prefix,
    announce: flags.announce,
  });
  if (!served.ok) {
    terminal.err(`callgate: ${served.fault}\n`);
    return EXIT.connection;
  }
  terminal.err(`serving ${FILES_TOOLS.map((name) => `${flags.prefix ?? ""}${name}`).join(", ")}\n`);
  const signalled = new Promise<undefined>((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve(undefined));
  });
  const why = await Promise.race([signalled, served.value.ended]);
  await served.value.close();
  if (why === undefined) return EXIT.ok;
  terminal.err(`callgate: ${why}\n`);
  return EXIT.connection;
}
