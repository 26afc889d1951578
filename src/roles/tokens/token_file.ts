// A token that lets programs in, out of its file: of the figures, or of an adapter's HTTP. Invariant: a file that others may
// read or write is not taken, and only a digest of the token is kept.

import { constants, open } from "node:fs/promises";
import { fault, ok, type Result } from "../../base/faults.ts";
import { type Digest, digestOf } from "./secrets.ts";

const FILE_BYTES_MAX = 4096;
const OTHERS = 0o007;
const GROUP_WRITES = 0o020;

/** `name`: of the token, in the fault, which is a sentence for whoever started the program. */
export async function readToken(path: string, ownUid: number, name: string): Promise<Result<Digest>> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK); // a pipe would hold us for ever
    try {
      const { mode, uid, size } = await file.stat();
      const wrong = wrongWith(mode, uid, size, ownUid);
      return wrong === undefined ? tokenOf(await file.readFile("utf8"), name) : fault(`${name}${wrong}`);
    } finally {
      await file.close();
    }
  } catch (error) {
    return fault(`${name} can't be read (${(error as { code?: string }).code ?? "unknown error"})`);
  }
}

const KIND = 0o170000;
const REGULAR = 0o100000;

function wrongWith(mode: number, uid: number, size: number, ownUid: number): string | undefined {
  if ((mode & KIND) !== REGULAR) return " must be a regular file";
  if (uid !== ownUid && uid !== 0) return "'s file must belong to this user or to root";
  if ((mode & (OTHERS | GROUP_WRITES)) !== 0) return "'s file must be closed to others: chmod 640 or 600";
  return size > FILE_BYTES_MAX ? "'s file is too long" : undefined;
}

function tokenOf(text: string, name: string): Result<Digest> {
  const token = text.trim();
  if (/^[\x21-\x7e]{32,512}$/.test(token)) return ok(digestOf(token));
  return fault(
    `${name} must be one line of 32 to 512 visible characters, as \`openssl rand -hex 32\` makes it`,
  );
}
