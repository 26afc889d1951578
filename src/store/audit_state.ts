// The audit state as text for the engine: the tail, written with every block, and the seals, written
// when one changes. Text that is not what was written is a fault, never half a state.

import { fault, ok, type Result } from "../base/faults.ts";
import { EMPTY_HEAD } from "./audit_chain.ts";
import { type AuditState, emptyAuditState, type OpenSegment, type SizedSeal } from "./audit_segments.ts";
import type { AuditHead } from "./port.ts";

/** Head and open segment, as one short line of JSON. */
export function encodeTail({ head, open }: AuditState): string {
  return encode({ head, open });
}

export function encodeSeals({ seals }: AuditState): string {
  return encode(seals);
}

/** Both undefined: an empty chain. The fault is a sentence for people. */
export function decodeAuditState(tail: string | undefined, seals: string | undefined): Result<AuditState> {
  if (tail === undefined) return seals === undefined ? ok(emptyAuditState(EMPTY_HEAD)) : broken();
  try {
    const { head, open } = decode(tail) as { head: AuditHead; open: OpenSegment };
    const sealed = seals === undefined ? [] : (decode(seals) as readonly SizedSeal[]);
    const state = { head, open, seals: sealed };
    return isState(state) ? ok(state) : broken();
  } catch {
    return broken();
  }
}

function broken(): Result<never> {
  return fault("The store's notes on where the audit chain ends are damaged. Restore a backup of the store.");
}

/** The members that are record numbers: decimal strings in the text. */
const NUMBERS: ReadonlySet<string> = new Set(["seq", "firstSeq", "lastSeq"]);

function encode(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === "bigint" ? member.toString() : member,
  );
}

function decode(text: string): unknown {
  return JSON.parse(text, (name, member: unknown) =>
    NUMBERS.has(name) ? BigInt(member as string) : member,
  ) as unknown;
}

function isState({ head, open, seals }: AuditState): boolean {
  if (typeof head?.seq !== "bigint" || typeof head.hash !== "string") return false;
  if (typeof open?.firstSeq !== "bigint" || typeof open.bytes !== "number") return false;
  return (
    Array.isArray(seals) && seals.every(({ lastSeq, bytes }) => typeof lastSeq === "bigint" && bytes >= 0)
  );
}
