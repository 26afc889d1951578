// What is looked at before a store of turns is used: every record, every frame, and that nothing else is there. What is
// damaged could have been the record of a turn that ran, so it is never skipped.

import { fault, ok, type Result } from "../base/faults.ts";
import { checksumOf, decodeRecord, holdsFrame } from "../connector/replay_record.ts";
import { type Engine, walk } from "../store/engine.ts";
import {
  ALL_RECORDS,
  added,
  decodeSummary,
  EVERYTHING,
  expiryKey,
  frameKey,
  NO_RECORDS,
  replayKeyOf,
  SUMMARY_KEY,
  type Summary,
} from "./connector_replay_tables.ts";

/** What an owner can do. A lost record lets its invocation run again, until that expires. */
export const REPLAY_REMEDY =
  "move its directory away to begin anew, but not before `expiry_horizon` has passed since the last turn: what is not expired by then could run a second time.";

/** The fault is a sentence that goes on from the store's name. @throws what the engine throws where its file is damaged */
export function checkReplay(engine: Engine): Result<Summary> {
  const stored = engine.get(SUMMARY_KEY);
  const keys = countKeys(engine);
  if (stored === undefined)
    return keys === 0 ? ok(NO_RECORDS) : damaged("it has no summary, or is no store of a connector's");
  const summary = decodeSummary(stored);
  if (summary === "newer") return fault("a newer callgate has written it: run that one.");
  if (summary === undefined) return damaged("its summary");
  const found = countRecords(engine);
  if (!found.ok) return found;
  const { records, digest, others } = found.value;
  if (records !== summary.records || !digest.equals(summary.digest)) return damaged("records are missing");
  return keys === records + others + 1 ? ok(summary) : damaged("there is what belongs to no record");
}

interface Counted extends Pick<Summary, "records" | "digest"> {
  /** Frames and expiries. */
  readonly others: number;
}

function countRecords(engine: Engine): Result<Counted> {
  let { records, digest } = NO_RECORDS;
  let others = 0;
  for (const { key: storeKey, value } of walk(engine, ALL_RECORDS)) {
    const key = replayKeyOf(storeKey);
    const record = decodeRecord(key, value);
    // Also where it is looked for: a damaged branch leads elsewhere.
    if (record === undefined || engine.get(storeKey)?.equals(value) !== true) return damaged("a record");
    if (engine.get(expiryKey(record.expiresAtUnixMs, key)) === undefined) return damaged("an expiry");
    if (record.state === "completed" && !holdsFrame(record, engine.get(frameKey(key))))
      return damaged("a frame");
    records += 1;
    others += record.state === "completed" ? 2 : 1;
    digest = added(digest, checksumOf(value));
  }
  return ok({ records, digest, others });
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
