// What a client carries between the rounds of one call (`requestState`): which call it asks for again. The client can
// neither read nor change it, and it opens for the session and the call it was made for, and for no other. Invariant:
// what does not open names no call. It says which call is meant, and never that anything is allowed.

import { createCipheriv, createDecipheriv } from "node:crypto";

export interface CallState {
  /** The broker's id of the call. */
  readonly call: bigint;
  /** How often the client was told to come again. */
  readonly round: number;
}

const CIPHER = "aes-256-gcm";
export const STATE_KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Call, round, expiry. */
const BODY_BYTES = 8 + 1 + 8;
const STATE_CHARS = Math.ceil(((NONCE_BYTES + BODY_BYTES + TAG_BYTES) * 4) / 3);
/** As long as the broker keeps an answer. */
const STATE_MS = 86_400_000;

export interface StateSettings {
  readonly key: Uint8Array;
  /** Ours, at the broker. */
  readonly session: string;
  readonly random: (bytes: number) => Uint8Array;
  readonly nowMs: () => number;
}

export class CallStates {
  readonly #settings: StateSettings;

  constructor(settings: StateSettings) {
    this.#settings = settings;
  }

  /** `callKey`: of the tool and arguments that it will be given back with. */
  seal({ call, round }: CallState, callKey: string): string {
    const { key, random, nowMs } = this.#settings;
    const body = Buffer.alloc(BODY_BYTES);
    body.writeBigUInt64BE(call, 0);
    body.writeUInt8(Math.min(round, 255), 8);
    body.writeBigUInt64BE(BigInt(Math.floor(nowMs()) + STATE_MS), 9);
    const nonce = random(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, key, nonce).setAAD(this.#bound(callKey));
    const sealed = [nonce, cipher.update(body), cipher.final(), cipher.getAuthTag()];
    return Buffer.concat(sealed).toString("base64url");
  }

  /** undefined: it was not made here, or for another call or session, or too long ago. */
  open(text: string, callKey: string): CallState | undefined {
    const bytes = text.length === STATE_CHARS ? Buffer.from(text, "base64url") : Buffer.alloc(0);
    if (bytes.length !== NONCE_BYTES + BODY_BYTES + TAG_BYTES) return undefined;
    const body = this.#decipher(bytes, callKey);
    if (body === undefined || body.readBigUInt64BE(9) <= BigInt(Math.floor(this.#settings.nowMs())))
      return undefined;
    return { call: body.readBigUInt64BE(0), round: body.readUInt8(8) };
  }

  #decipher(bytes: Buffer, callKey: string): Buffer | undefined {
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(CIPHER, this.#settings.key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(this.#bound(callKey)).setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
    } catch {
      return undefined;
    }
  }

  #bound(callKey: string): Buffer {
    return Buffer.from(`callgate mcp call\n${this.#settings.session}\n${callKey}`);
  }
}
