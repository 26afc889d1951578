// A caller's connection secret and the key that comes of it (spec: connector, 4). Invariant: no fault tells anything
// of the secret but which rule it breaks.

import { fault, ok, type Result } from "../base/faults.ts";
import { sha256 } from "./digest.ts";
import { SECRET_BYTES_MAX, SECRET_BYTES_MIN } from "./limits.ts";
import { isPlain } from "./text_rules.ts";

const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;

/**
 * The 32 bytes that seal both directions. The fault is a sentence. The digest is not stretched: a secret has to be long and
 * random, and equal secrets give equal keys, so that a service can refuse callers that share one.
 */
export function connectionKey(secret: string): Result<Buffer> {
  if (typeof secret !== "string" || !secret.isWellFormed())
    return fault("the connection secret is not well-formed text");
  const length = Buffer.byteLength(secret);
  if (length < SECRET_BYTES_MIN || length > SECRET_BYTES_MAX)
    return fault(
      `the connection secret has ${length} bytes, and must have ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX}`,
    );
  if (!isPlain(secret))
    return fault("the connection secret has a control character in it or a space at an edge");
  return ok(sha256(Buffer.from(secret)));
}

/** The secret that a file holds: its text without the CR and LF at its end. Not checked otherwise. */
export function secretFromFileText(text: string): string {
  let end = text.length;
  while (end > 0 && isLineEnd(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** The same from a file's bytes, which must be UTF-8: a decoder that repairs would make another secret of them. */
export function secretFromFileBytes(bytes: Uint8Array): Result<string> {
  try {
    // What looks like a byte order mark belongs to the secret.
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return ok(secretFromFileText(text));
  } catch {
    return fault("the file of the connection secret is not UTF-8 text");
  }
}

function isLineEnd(unit: number): boolean {
  return unit === CARRIAGE_RETURN || unit === LINE_FEED;
}
