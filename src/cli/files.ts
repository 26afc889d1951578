// `callgate role files`: the files provider as a program, until a signal ends it.

import { FILES_TOOLS } from "../roles/files/definitions.ts";
import { serveFiles } from "../roles/files/files_role.ts";
import { ROOT_OPTION_SYNTAX } from "../roles/files/root_option.ts";
import { UsageFault } from "./call.ts";
import { EXIT, type Terminal } from "./terminal.ts";

export interface FilesFlags {
  readonly socket?: string;
  readonly root: readonly string[];
  readonly prefix?: string;
  readonly announce?: boolean;
}

export async function runFiles(terminal: Terminal, flags: FilesFlags): Promise<number> {
  const path = flags.socket ?? process.env["CALLGATE_SOCKET"];
  if (path === undefined || path === "")
    throw new UsageFault("say which socket: --socket PATH, or CALLGATE_SOCKET in the environment");
  if (flags.root.length === 0) throw new UsageFault(`say what to serve: --root ${ROOT_OPTION_SYNTAX}`);
  const served = await serveFiles({
    to: { path },
    roots: flags.root,
    prefix: flags.prefix,
    announce: flags.announce,
  });
  if (!served.ok) {
    terminal.err(`callgate: ${served.fault}\n`);
    return EXIT.connection;
  }
  terminal.err(`serving ${FILES_TOOLS.map((name) => `${flags.prefix ?? ""}${name}`).join(", ")}\n`);
  await new Promise<void>((signalled) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => signalled());
  });
  await served.value.close();
  return EXIT.ok;
}
