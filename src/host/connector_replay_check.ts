// What is looked at before a store of turns is used: every record, every frame, and that nothing else is there. What is
// damaged could have been the record of a turn that ran, so it is never skipped.

import { fault, ok, type Result } from "../base/faults.ts";
import { keyName } from "../connector/digest.ts";
import { checksumOf, decodeRecord, holdsFrame } from "../connector/replay_record.ts";
import { type Engine, walk } from "../store/engine.ts";
import {
  ALL_RECORDS,
  added,
  decodeSummary,
  EVERYTHING,
  frameKey,
  NO_RECORDS,
  placeOf,
  SUMMARY_KEY,
  type Summary,
} from "./connector_replay_tables.ts";

/** What an owner can do. A lost record lets its invocation run again, until that expires. */
export const REPLAY_REMEDY =
  "move its directory away to begin anew, but not before `expiry_horizon` has passed since the last turn: what is not expired by then could run a second time.";

export interface Checked {
  readonly summary: Summary;
  /** When each record expires, by the name of its key: where it lies. */
  readonly expiries: Map<string, number>;
}

/** The fault is a sentence that goes on from the store's name. @throws what the engine throws where its file is damaged */
export function checkReplay(engine: Engine): Result<Checked> {
  const stored = engine.get(SUMMARY_KEY);
  const keys = countKeys(engine);
  if (stored === undefined) {
    if (keys === 0) return ok({ summary: NO_RECORDS, expiries: new Map() });
    return damaged("it has no summary, or is no store of a connector's");
  }
  const summary = decodeSummary(stored);
  if (summary === "newer") return fault("a newer callgate has written it: run that one.");
  if (summary === undefined) return damaged("its summary");
  const found = countRecords(engine);
  if (!found.ok) return found;
  const { expiries, digest, frames } = found.value;
  if (expiries.size !== summary.records || !digest.equals(summary.digest))
    return damaged("records are missing");
  if (keys !== expiries.size + frames + 1) return damaged("there is what belongs to no record");
  return ok({ summary, expiries });
}

interface Counted extends Pick<Checked, "expiries"> {
  readonly digest: Buffer;
  readonly frames: number;
}

function countRecords(engine: Engine): Result<Counted> {
  const expiries = new Map<string, number>();
  let { digest } = NO_RECORDS;
  let frames = 0;
  for (const { key: storeKey, value } of walk(engine, ALL_RECORDS)) {
    const place = placeOf(storeKey);
    const record = decodeRecord(place.key, value);
    // Also where it is looked for: a damaged branch leads elsewhere.
    if (record === undefined || engine.get(storeKey)?.equals(value) !== true) return damaged("a record");
    const isTwice = expiries.has(keyName(place.key));
    if (record.expiresAtUnixMs !== place.expiresAtMs || isTwice) return damaged("a record's place");
    if (record.state === "completed") {
      if (!holdsFrame(record, engine.get(frameKey(place)))) return damaged("a frame");
      frames += 1;
    }
    expiries.set(keyName(place.key), place.expiresAtMs);
    digest = added(digest, checksumOf(value));
  }
  return ok({ expiries, digest, frames });
}

const KEYS_AT_ONCE = 4096;

function countKeys(engine: Engine): number {
  let count = 0;
  let { from } = EVERYTHING;
  for (;;) {
    const keys = engine.keys({ ...EVERYTHING, from, limit: KEYS_AT_ONCE });
    count += keys.length;
    const last = keys.at(-1);
    if (last === undefined || keys.length < KEYS_AT_ONCE) return count;
    from = Buffer.concat([last, Buffer.from([0])]);
  }
}

function damaged(what: string): Result<never> {
  return fault(`it is damaged (${what}): ${REPLAY_REMEDY}`);
}
