// The tables of the durable store: each record as JSON behind a version byte, under its table's number
// and its own name.
// Invariant: a record that can't be read makes the store refuse to open; nothing is guessed or left out.

import { fault, ok, type Result } from "../base/faults.ts";
import { type Engine, walk } from "./engine.ts";
import type { Stored } from "./port.ts";
import type { Change, SessionRecord } from "./records.ts";
import { type AllRecords, loaded, recordWrites, TABLE_NAMES, type TableName } from "./state_tables.ts";
import { TABLE, textKey, wholeTable } from "./store_keys.ts";
import type { WriteBatch } from "./write_batch.ts";

/** Of a record's text. */
const VERSION = 1;

/** Never renumbered. */
const NUMBER: Readonly<Record<TableName, number>> = {
  session: TABLE.records,
  closed: TABLE.records + 1,
  taint: TABLE.records + 2,
  frozen: TABLE.records + 3,
  pin: TABLE.records + 4,
  approval: TABLE.records + 5,
  grant: TABLE.records + 6,
  uses: TABLE.records + 7,
};

/** Records read between two turns of the event loop at start. */
const START_RECORDS = 512;

/** Puts what the change leaves in the tables into the batch. */
export function encodeRecords(engine: Engine, change: Change, batch: WriteBatch): void {
  if (change.kind === "session_closed") forgetRequest(engine, `${change.role} ${change.id}`, batch);
  for (const { table, name, value } of recordWrites(change)) {
    const key = textKey(NUMBER[table], name);
    if (value === undefined) batch.delete(key);
    else batch.put(key, encodeRecord(value));
  }
}

/** The user's words go with their session. */
function forgetRequest(engine: Engine, name: string, batch: WriteBatch): void {
  const key = textKey(NUMBER.session, name);
  const found = engine.get(key);
  const session = found && (decodeRecord(found) as SessionRecord | undefined);
  if (session?.request !== undefined) batch.put(key, encodeRecord({ ...session, request: undefined }));
}

/** In steps, so that the event loop goes on. The fault is a sentence for the owner. */
export async function loadRecords(engine: Engine): Promise<Result<Stored>> {
  const records: Record<TableName, unknown[]> = {
    session: [],
    closed: [],
    taint: [],
    frozen: [],
    pin: [],
    approval: [],
    grant: [],
    uses: [],
  };
  let seen = 0;
  for (const table of TABLE_NAMES) {
    for (const { value } of walk(engine, wholeTable(NUMBER[table]))) {
      const record = decodeRecord(value);
      if (record === undefined)
        return fault(`a record of its table ${JSON.stringify(table)} can't be read: restore a backup of it.`);
      records[table].push(record);
      seen += 1;
      if (seen % START_RECORDS === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }
  // Each table holds what `recordWrites` put there, under its own number.
  return ok(loaded(records as unknown as AllRecords));
}

/** Members that are call ids are decimal strings in the text. */
const CALL_MEMBER = "call";

function encodeRecord(record: object): Buffer {
  const text = JSON.stringify(record, (_, value: unknown) =>
    typeof value === "bigint" ? value.toString() : value,
  );
  const bytes = Buffer.allocUnsafe(1 + Buffer.byteLength(text));
  bytes[0] = VERSION;
  bytes.write(text, 1);
  return bytes;
}

/** undefined: it is none. */
function decodeRecord(bytes: Buffer): object | undefined {
  if (bytes[0] !== VERSION) return undefined;
  try {
    const record: unknown = JSON.parse(bytes.toString("utf8", 1), (name, value: unknown) =>
      name === CALL_MEMBER && typeof value === "string" ? BigInt(value) : value,
    );
    return typeof record === "object" && record !== null ? record : undefined;
  } catch {
    return undefined;
  }
}
