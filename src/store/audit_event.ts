// One audit record before the chain gives it a place: its kind and members, and how names, labels and
// texts look in all of them. What is told of which change is not here.
// Invariant: a record is printable ASCII on one line, whatever its texts are.

import { createHmac, hash } from "node:crypto";
import type { Labels } from "../base/labels.ts";
import type { Actor, CallKey } from "./records.ts";

/** Lower-case hex HMAC-SHA256 under the store's own key: equal texts show as equal, and nobody can guess at one. */
export type KeyedDigest = (bytes: Buffer | string) => string;

const BLOCK_BYTES = 64;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
/** Up to so many bytes HMAC as two digests over buffers that are there costs half of what the library takes. */
const COPIED_BYTES_MAX = 4096;

export function keyedDigest(key: Buffer): KeyedDigest {
  if (key.length > BLOCK_BYTES) throw new Error("the key of the audit is longer than a block");
  const inner = padded(key, INNER_PAD, COPIED_BYTES_MAX);
  const outer = padded(key, OUTER_PAD, BLOCK_BYTES);
  return (bytes) => {
    const text = typeof bytes === "string";
    // A unit of UTF-16 has at most three bytes.
    if (bytes.length * (text ? 3 : 1) > COPIED_BYTES_MAX)
      return createHmac("sha256", key).update(bytes).digest("hex");
    const length = text ? inner.write(bytes, BLOCK_BYTES, "utf8") : bytes.copy(inner, BLOCK_BYTES);
    const outerLength = outer.write(
      hash("sha256", inner.subarray(0, BLOCK_BYTES + length)),
      BLOCK_BYTES,
      "hex",
    );
    return hash("sha256", outer.subarray(0, BLOCK_BYTES + outerLength));
  };
}

function padded(key: Buffer, pad: number, room: number): Buffer {
  const bytes = Buffer.alloc(BLOCK_BYTES + room);
  key.copy(bytes);
  for (let at = 0; at < BLOCK_BYTES; at += 1) bytes[at] = (bytes[at] ?? 0) ^ pad;
  return bytes;
}

/** One record without its place and time. */
export interface AuditEvent {
  /** What stands behind `seq` and `at_ms` in the record's object: members as JSON, printable ASCII. */
  readonly members: string;
}

/** Of a person's words (a reason, a condition's source). */
const TEXT_CHARS_MAX = 512;

/** Members that are undefined are left out. */
export type Members = Readonly<Record<string, string | number | boolean | object | undefined>>;

/** Groups stand one behind the other. They are apart since an object that is spread into another costs ten times as much. */
export function auditEvent(kind: string, ...groups: readonly Members[]): AuditEvent {
  let members = `"kind":"${kind}"`;
  for (const group of groups) {
    const text = JSON.stringify(group);
    if (text !== "{}") members += `,${text.slice(1, -1)}`;
  }
  return { members: ascii(members) };
}

/** JSON text with `\u` escapes for whatever is not printable ASCII: that is only within its strings, so it means the same. */
export function ascii(json: string): string {
  if (!/[^\x20-\x7e]/.test(json)) return json;
  return json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function callNames({ role, session, call }: CallKey, tool: string | undefined) {
  return { role, session, call: call.toString(), tool };
}

/** Another call than the one that the record is about. */
export function otherCall(key: CallKey | undefined) {
  return key === undefined ? undefined : callNames(key, undefined);
}

export function actorNames({ role, uid }: Actor) {
  return { role, uid };
}

export function labelNames({ class: name, untrusted }: Labels) {
  return { class: name, untrusted };
}

export function words(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= TEXT_CHARS_MAX) return text;
  return `${text.slice(0, TEXT_CHARS_MAX)}... (${text.length} characters)`;
}
