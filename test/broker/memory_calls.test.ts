// Calls of `record = "memory"`: what of them is on disk and what is not.

import { describe, expect, it } from "vitest";
import type { CallRecord } from "../../src/store/records.ts";
import { TABLE, wholeTable } from "../../src/store/store_keys.ts";
import { FakeEngine } from "../store/fake_engine.ts";
import { Approver, ASKING, put } from "./approvals_rig.ts";
import { DurableLives } from "./durable_lives.ts";

/** `free` and `look` are kept in memory only; a human is asked about `look`. */
const FLEETING = ASKING.replace("[tools.free]", '[tools.free]\nrecord = "memory"').replace(
  "[tools.look]",
  '[tools.look]\nrecord = "memory"',
);
const SECRET = { class: "confidential", untrusted: true } as const;

/** How many calls and parts are on disk. */
function onDisk(lives: DurableLives): number {
  const engine = new FakeEngine(lives.disk);
  const tables = [TABLE.intents, TABLE.outcomes, TABLE.parts];
  return tables.reduce((sum, table) => sum + engine.keys({ ...wholeTable(table), limit: 100 }).length, 0);
}

interface AuditLine {
  readonly kind: string;
  readonly memory?: boolean;
}

/** What the audit says of the call that the tests ask. */
function audited(lives: DurableLives): readonly AuditLine[] {
  const lines = [...lives.store.audit.lines(1n, 1000)].map(({ text }) => text);
  return lines.filter((text) => /"call":"5"/.test(text)).map((text) => JSON.parse(text) as AuditLine);
}

function find(lives: DurableLives, call: bigint): CallRecord | undefined {
  return lives.store.findCall({ role: "agent", session: "s", call });
}

async function read(lives: DurableLives): Promise<string> {
  const files = lives.peer("files");
  const reply = await put(lives, lives.peer("agent"), "free", {}, { call: 5n });
  if (files.requests.length === 0) return reply.end;
  const request = files.take();
  request.part("CANARY-part", SECRET);
  request.result("CANARY-end", SECRET);
  await lives.settle();
  return `ran, ${reply.end}`;
}

describe("a read that is kept in memory", () => {
  it("is replayed while the broker lives, and leaves neither its answer nor its arguments on disk", async () => {
    const lives = await DurableLives.begin(FLEETING);
    expect(await read(lives)).toBe("ran, result confidential untrusted CANARY-end");
    expect(await read(lives)).toBe("result confidential untrusted CANARY-end");
    expect(find(lives, 5n)?.state).toBe("ended");
    expect(onDisk(lives)).toBe(0);
    const values = [...lives.disk.entries.values()].map(({ value }) => value);
    expect(values.some((value) => value.includes("CANARY"))).toBe(false);
    await lives.restart();
    expect(find(lives, 5n)).toBeUndefined();
    expect(await read(lives)).toBe("ran, result confidential untrusted CANARY-end");
  });

  it("has its decision and its outcome in the audit all the same, over a kill", async () => {
    const lives = await DurableLives.begin(FLEETING);
    await read(lives);
    await lives.restart();
    const lines = audited(lives);
    expect(lines.map(({ kind }) => kind)).toEqual(["dispatch", "taint", "part", "outcome"]);
    expect(lines[0]?.memory).toBe(true);
  });

  it("has tainted its caller, its answer's reader, for good: a kill is no clean slate", async () => {
    const lives = await DurableLives.begin(FLEETING);
    await read(lives);
    await lives.restart();
    lives.peer("files");
    await put(lives, lives.peer("agent"), "look", {}, { session: "fresh" });
    expect((await new Approver(lives).look())["taint"]).toEqual(SECRET);
  });

  it("was heard only after the taint that it raises was on disk", async () => {
    const lives = await DurableLives.begin(FLEETING);
    const files = lives.peer("files");
    const reply = await put(lives, lives.peer("agent"), "free", {}, { call: 5n });
    lives.engine.held = true;
    files.take().result("secret", SECRET);
    await lives.settle();
    expect(reply.seen).toEqual([]);
    await lives.restart();
    const engine = new FakeEngine(lives.disk);
    expect(engine.keys({ ...wholeTable(TABLE.outcomes), limit: 100 })).toEqual([]);
  });
});

describe("a call that a human was asked about", () => {
  it("is on disk though its tool says memory: approved, it is replayed after a kill and does not run again", async () => {
    const lives = await DurableLives.begin(FLEETING);
    const files = lives.peer("files");
    await put(lives, lives.peer("agent"), "look", {}, { call: 5n });
    await new Approver(lives).letThrough();
    files.take().result("seen");
    await lives.settle();
    expect(find(lives, 5n)?.durable).toBe(true);
    await lives.restart();
    const later = lives.peer("files");
    const again = await put(lives, lives.peer("agent"), "look", {}, { call: 5n });
    expect([again.seen, later.requests]).toEqual([["result public seen"], []]);
  });

  it("is on disk where it was refused, too", async () => {
    const lives = await DurableLives.begin(FLEETING);
    lives.peer("files");
    await put(lives, lives.peer("agent"), "look", {}, { call: 5n });
    const operator = new Approver(lives);
    await operator.refuse(await operator.look());
    await lives.restart();
    lives.peer("files");
    const again = await put(lives, lives.peer("agent"), "look", {}, { call: 5n });
    expect(again.seen).toEqual(["denied approval_refused"]);
    expect(find(lives, 5n)?.durable).toBe(true);
  });

  it("and that was killed while it ran is unknown, not asked or run again", async () => {
    const lives = await DurableLives.begin(FLEETING);
    const files = lives.peer("files");
    await put(lives, lives.peer("agent"), "look", {}, { call: 5n });
    await new Approver(lives).letThrough();
    expect(files.requests).toHaveLength(1);
    await lives.restart();
    const later = lives.peer("files");
    const again = await put(lives, lives.peer("agent"), "look", {}, { call: 5n });
    expect([again.seen, later.requests]).toEqual([["failed outcome_unknown"], []]);
  });
});
