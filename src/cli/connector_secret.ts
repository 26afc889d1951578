// `callgate connector secret`: a fresh connection secret, printed or put into a file that nobody else can read.

import { randomBytes } from "node:crypto";
import { open } from "node:fs/promises";
import { visibleLine } from "../base/display.ts";
import { type Flags, textOf, type Words } from "./command_row.ts";
import { codeOf } from "./replace_file.ts";
import { EXIT, type Terminal } from "./terminal.ts";

const SECRET_RANDOM_BYTES = 32;

export async function connectorSecret(terminal: Terminal, _: Words, flags: Flags): Promise<number> {
  const secret = `${randomBytes(SECRET_RANDOM_BYTES).toString("base64url")}\n`;
  const to = textOf(flags, "to");
  if (to === undefined) {
    terminal.out(secret);
    return EXIT.ok;
  }
  try {
    // Never over one that is there: who uses that would be locked out.
    const file = await open(to, "wx", 0o600);
    try {
      await file.writeFile(secret);
    } finally {
      await file.close();
    }
    return EXIT.ok;
  } catch (error) {
    const code = codeOf(error);
    const why =
      code === "EEXIST" ? "is there already; a secret is replaced by hand" : `can't be written (${code})`;
    terminal.err(`callgate: ${visibleLine(JSON.stringify(to), 300)} ${why}\n`);
    return EXIT.failed;
  }
}
