// Ids of tool calls on their way in and out. An API's id that the contract can't carry, or that there is not, is
// replaced; a call and its result meet in the transcript by the replacement as well as by the original. Pure.

import { createHash } from "node:crypto";
import { CALL_ID_RULE } from "../text_rules.ts";

const REPLACED_HEX_CHARS = 40;

/** Of one turn: distinct, and the same where the same request gets the same answer. */
export class CallIds {
  readonly #seed: Uint8Array;
  readonly #given = new Set<string>();

  /** `seed`: the digest of the request, so that two turns of a conversation do not make up the same ids. */
  constructor(seed: Uint8Array) {
    this.#seed = seed;
  }

  /** Of a provider's id: itself, where the contract can carry it and no call of this turn has it. */
  give(id: unknown): string {
    const fits = typeof id === "string" && id.length <= CALL_ID_RULE.bytesMax && CALL_ID_RULE.fits(id);
    const given = fits && !this.#given.has(id) ? id : this.#makeUp();
    this.#given.add(given);
    return given;
  }

  #makeUp(): string {
    const hash = createHash("sha256").update(this.#seed).update(`${this.#given.size}`);
    return replaced(hash.digest("hex"));
  }
}

/** What Anthropic takes, and the most that OpenAI's APIs do. */
const NARROW = /^[A-Za-z0-9_-]+$/;

/** Of an id in a transcript, for an API that takes fewer characters; the same for a call and its result. */
export function narrowCallId(callId: string): string {
  return NARROW.test(callId) ? callId : replaced(createHash("sha256").update(callId).digest("hex"));
}

const replaced = (hex: string): string => `call_${hex.slice(0, REPLACED_HEX_CHARS)}`;
