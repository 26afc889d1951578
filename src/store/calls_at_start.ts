// Finding at start which calls a store holds: all outcomes are looked at once, and of the intents only
// those that have none. In steps, so that the event loop goes on.

import { readHead } from "./call_entries.ts";
import type { Excess } from "./call_pruning.ts";
import { type Engine, type Entry, walk } from "./engine.ts";
import { INDEX_BYTES, type RoleCalls, type RoleTable } from "./role_calls.ts";
import { partsOf, readSeq, seqKey, TABLE, wholeTable } from "./store_keys.ts";

/** Calls of a role from earlier runs whose outcome nobody knows; of more, the oldest go. */
export const UNKNOWN_CALLS_MAX = 4096;
/** Parts of one call that are looked at; a call has fewer by its bytes. */
const PARTS_MAX = 1_048_576;
/** Entries between two turns of the event loop. */
const STEP_ENTRIES = 1024;

export interface CallsFound {
  /** Above the number of every entry. */
  readonly nextSeq: number;
  readonly excess: readonly Excess[];
}

export async function findCalls(engine: Engine, roles: RoleTable): Promise<CallsFound> {
  const finding = new Finding(engine, roles);
  await finding.outcomes();
  await finding.intents();
  finding.watermarks();
  const excess = [...roles.all()].flatMap(excessOf);
  return { nextSeq: finding.nextSeq, excess };
}

class Finding {
  nextSeq = 1;
  readonly #engine: Engine;
  readonly #roles: RoleTable;
  /** Numbers of the intents that have an outcome. */
  readonly #ended = new SeqSet();

  constructor(engine: Engine, roles: RoleTable) {
    this.#engine = engine;
    this.#roles = roles;
  }

  async outcomes(): Promise<void> {
    let seen = 0;
    for (const entry of walk(this.#engine, wholeTable(TABLE.outcomes))) {
      this.#outcome(entry);
      seen += 1;
      if (seen % STEP_ENTRIES === 0) await turn();
    }
  }

  #outcome({ key, value }: Entry): void {
    const outcome = this.#see(readSeq(key));
    const head = readHead(value);
    if (head === undefined) return;
    if (head.intent !== 0) this.#ended.add(head.intent);
    const { session, call, intent, parts, charged, endedAtMs } = head;
    this.#roles.of(head.role).kept.add({ session, call, outcome, intent, parts, charged, endedAtMs });
  }

  async intents(): Promise<void> {
    const table = wholeTable(TABLE.intents);
    for (let { from } = table; ; ) {
      const keys = this.#engine.keys({ ...table, from, limit: STEP_ENTRIES });
      const last = keys.at(-1);
      if (last === undefined) return;
      for (const key of keys) if (!this.#ended.has(this.#see(readSeq(key)))) this.#open(key);
      from = seqKey(TABLE.intents, readSeq(last) + 1);
      await turn();
    }
  }

  #open(key: Buffer): void {
    const value = this.#engine.get(key);
    const head = value && readHead(value);
    if (value === undefined || head === undefined) return;
    const intent = readSeq(key);
    const parts = this.#engine.range({ ...partsOf(intent), limit: PARTS_MAX });
    for (const part of parts) this.#see(readSeq(part.key, 9));
    const charged = parts.reduce((sum, part) => sum + part.value.length, value.length + INDEX_BYTES);
    const open = { record: undefined, intent, parts: parts.length, charged, outcome: 0, written: true };
    this.#roles.of(head.role).put(head, open);
  }

  watermarks(): void {
    for (const { key, value } of walk(this.#engine, wholeTable(TABLE.watermarks))) {
      const { role, session } = readWatermarkKey(key);
      const { watermarks } = this.#roles.of(role);
      const call = value.readBigUInt64BE();
      if (session === "") watermarks.raiseShared(call);
      else watermarks.raise(session, call);
    }
  }

  #see(seq: number): number {
    this.nextSeq = Math.max(this.nextSeq, seq + 1);
    return seq;
  }
}

const BITS = 32_768;

/** Numbers that mostly lie close together, as bits. */
class SeqSet {
  readonly #chunks = new Map<number, Uint8Array>();

  add(seq: number): void {
    const number = Math.floor(seq / BITS);
    let chunk = this.#chunks.get(number);
    if (chunk === undefined) {
      chunk = new Uint8Array(BITS / 8);
      this.#chunks.set(number, chunk);
    }
    const bit = seq % BITS;
    chunk[bit >> 3]! |= 1 << (bit & 7);
  }

  has(seq: number): boolean {
    const bit = seq % BITS;
    const byte = this.#chunks.get(Math.floor(seq / BITS))?.[bit >> 3] ?? 0;
    return (byte & (1 << (bit & 7))) !== 0;
  }
}

/** Neither name holds a space; the watermark that sessions share has no name behind it. */
function readWatermarkKey(key: Buffer): { readonly role: string; readonly session: string } {
  const text = key.toString("latin1", 1);
  const space = text.indexOf(" ");
  return { role: text.slice(0, space), session: text.slice(space + 1) };
}

function excessOf(role: RoleCalls): readonly Excess[] {
  const unknown = [...role.open].flatMap(([session, calls]) =>
    [...calls].map(([call, open]) => ({ key: { role: role.name, session, call }, open })),
  );
  unknown.sort((a, b) => a.open.intent - b.open.intent);
  return unknown.slice(0, Math.max(0, unknown.length - UNKNOWN_CALLS_MAX));
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
