// Secrets as they are given out, and the digests that are kept of them. Invariant: what is kept opens nothing, and
// no comparison takes longer for a better guess.

import { createHash, timingSafeEqual } from "node:crypto";

const SECRET_BYTES = 32;

/** 256 bits as text that fits an address, a cookie and a header. */
export function newSecret(random: (bytes: number) => Uint8Array): string {
  return Buffer.from(random(SECRET_BYTES)).toString("base64url");
}

export type Digest = Buffer;

export function digestOf(secret: string): Digest {
  return createHash("sha256").update(secret, "utf8").digest();
}

export function isSame(a: Digest, b: Digest): boolean {
  return timingSafeEqual(a, b);
}
