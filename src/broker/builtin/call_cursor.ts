// Where a page of `callgate.calls.list` ended, as the text that the next one begins with. It names a call that was
// looked at, and holds also once that call is gone. A text that somebody made up is worth what its own caller
// knew: for roles that are no operators it has no number, and a call that they may not see is not looked up.

import { isRoleName, isSessionId, U64_MAX } from "../../base/ids.ts";
import type { CallKey } from "../../store/records.ts";

/** The parts of a list, in their order: calls that go on, those whose outcome nobody knows, those that ended. */
export const PHASES = ["live", "unknown", "ended"] as const;
export type Phase = (typeof PHASES)[number];

export interface Cursor {
  readonly phase: Phase;
  readonly key: CallKey;
  /** When it ended; of one that has not: when it was asked. */
  readonly atMs: number;
  /** Number of its outcome; 0: none, or not told. */
  readonly number: number;
}

const CURSOR_CHARS_MAX = 512;
const WORDS = /^(live|unknown|ended) ([0-9]{1,16}) ([0-9]{1,16}) (0|[1-9][0-9]{0,19}) (\S+) (\S+)$/;

export function cursorText({ phase, key, atMs, number }: Cursor): string {
  const words = [phase, atMs, number, key.call, key.role, key.session].join(" ");
  return Buffer.from(words, "latin1").toString("base64url");
}

/** undefined: it is no such text. */
export function readCursor(text: string): Cursor | undefined {
  if (text.length > CURSOR_CHARS_MAX || !/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
  const found = WORDS.exec(Buffer.from(text, "base64url").toString("latin1"));
  if (found === null) return undefined;
  const [, phase, atMs, number, call = "", role = "", session = ""] = found;
  const cursor: Cursor = {
    phase: phase as Phase, // one of the three by the pattern
    key: { role, session, call: BigInt(call) },
    atMs: Number(atMs),
    number: Number(number),
  };
  const fits = isRoleName(role) && isSessionId(session) && cursor.key.call <= U64_MAX;
  return fits && Number.isSafeInteger(cursor.atMs) && Number.isSafeInteger(cursor.number)
    ? cursor
    : undefined;
}
