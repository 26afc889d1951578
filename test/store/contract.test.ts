// What every store promises, whichever engine is behind it.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CLEAN, type Labels } from "../../src/base/labels.ts";
import { type ApprovalRecord, HOST, type StoredGrant } from "../../src/store/records.ts";
import {
  decisionOf,
  FakeDiskWorld,
  intentOf,
  LmdbWorld,
  MemoryWorld,
  outcomeOf,
  REPLAY_FOR_MS,
  recordOf,
  shown,
  type World,
} from "./store_worlds.ts";

const SECRET: Labels = { class: "restricted", untrusted: true };
const BY = { role: "operator", uid: 1002 };

const KINDS: readonly (readonly [string, () => Promise<World>])[] = [
  ["in memory", async () => new MemoryWorld()],
  ["durable, on a fake engine", () => FakeDiskWorld.start()],
  ["durable, on disk", () => LmdbWorld.start()],
];

describe.each(KINDS)("a store %s", (_, start) => {
  let world: World;
  beforeEach(async () => {
    world = await start();
  });
  afterEach(() => world.end());

  it("keeps a call from its intent on, and forgets one that was withdrawn", async () => {
    const record = recordOf(1n);
    await world.write(intentOf(record));
    expect(world.store.findCall(record.key)).toBe(record);
    await world.write({ kind: "withdrawn", record });
    await world.restart();
    expect([world.store.findCall(record.key), world.store.watermark("agent", "s")]).toEqual([
      undefined,
      undefined,
    ]);
  });

  it("gives an ended call back byte for byte after a restart, parts in order", async () => {
    const record = recordOf(7n, { equal: "e".repeat(64), arguments: '{"path":"/ü/\u{1f600}"}' });
    await world.write(intentOf(record));
    record.labels = SECRET;
    for (const part of ["one", "", "three"])
      await world.write({ kind: "message", record, message: Buffer.from(part) });
    await world.write(outcomeOf(record, "end", 1_000_500, { status: "failed" }));
    const before = shown(world.store.findCall(record.key));
    await world.restart();
    const after = shown(world.store.findCall(record.key));
    expect(after).toEqual(before);
    expect(after).toMatchObject({
      state: "ended",
      status: "failed",
      code: "timeout",
      endedAtMs: 1_000_500,
      messages: ["one", "", "three", "end"],
      labels: SECRET,
    });
  });

  it("keeps a call without an outcome over a restart, with what it had said, until somebody settles it", async () => {
    const record = recordOf(1n);
    await world.write(intentOf(record));
    record.labels = SECRET;
    await world.write({ kind: "message", record, message: Buffer.from("half") });
    await world.restart();
    world.pass(REPLAY_FOR_MS * 3);
    await world.run(recordOf(2n));
    const unknown = world.store.findCall(record.key);
    expect(shown(unknown)).toMatchObject({ state: "dispatched", messages: ["half"], labels: SECRET });
    await world.write(outcomeOf(unknown!, "settled", world.clock.nowMs()));
    await world.restart();
    expect(shown(world.store.findCall(record.key))).toMatchObject({
      state: "ended",
      messages: ["half", "settled"],
    });
  });

  it("keeps what was refused before anything ran, without an intent", async () => {
    const record = recordOf(3n, { equal: "a".repeat(64), uid: undefined });
    await world.write(outcomeOf(record, "no", 1_000_100, { status: "denied" }));
    const before = shown(world.store.findCall(record.key));
    await world.restart();
    expect(shown(world.store.findCall(record.key))).toEqual(before);
    expect(before).toMatchObject({ state: "ended", status: "denied", messages: ["no"], uid: undefined });
  });

  it("never gives one role or session another's call", async () => {
    await world.run(recordOf(1n, { session: "a" }), [], "a's");
    await world.run(recordOf(1n, { session: "b" }), [], "b's");
    await world.run(recordOf(1n, { session: "a", role: "other" }), [], "other's");
    const found = (role: string, session: string) =>
      shown(world.store.findCall({ role, session, call: 1n }))?.messages;
    expect([found("agent", "a"), found("agent", "b"), found("other", "a"), found("other", "b")]).toEqual([
      ["a's"],
      ["b's"],
      ["other's"],
      undefined,
    ]);
  });

  it("lists calls newest first: those without an outcome, then those that have ended", async () => {
    for (const call of [1n, 2n, 3n, 4n]) {
      world.pass(10);
      const record = recordOf(call, {
        askedAtMs: world.clock.nowMs(),
        role: call % 2n === 0n ? "agent" : "other",
      });
      if (call < 3n) await world.write(intentOf(record));
      else await world.run(record);
    }
    await world.restart();
    expect([...world.store.calls()].map(({ key, state }) => [key.call, state])).toEqual([
      [2n, "dispatched"],
      [1n, "dispatched"],
      [4n, "ended"],
      [3n, "ended"],
    ]);
  });

  it("finds ended calls from any place on, of all roles or one, in memory and on disk, without reading them", async () => {
    for (let call = 1n; call <= 40n; call += 1n) {
      const role = call % 3n === 0n ? "agent" : "other";
      await world.run(recordOf(call, { role, durable: call % 2n === 0n, askedAtMs: world.clock.nowMs() }));
      if (call % 8n === 0n) world.pass(1); // many end in the same millisecond
    }
    for (const role of [undefined, "agent", "other"]) {
      const all = [...world.store.ended({ role, behind: undefined })];
      expect(all.map(({ key }) => key.call)).toHaveLength(
        role === undefined ? 40 : role === "agent" ? 13 : 27,
      );
      expect(all.map(({ endedAtMs }) => endedAtMs)).toEqual(
        all.map(({ endedAtMs }) => endedAtMs).sort((a, b) => b - a),
      );
      for (const [index, { key, endedAtMs, number, read }] of all.entries()) {
        expect(read()).toEqual(world.store.findCall(key));
        const rest = all.slice(index + 1).map((one) => one.key);
        for (const told of role === undefined ? [number] : [number, 0]) {
          const behind = { key, endedAtMs, number: told };
          expect([...world.store.ended({ role, behind })].map((one) => one.key)).toEqual(rest);
        }
      }
    }
  });

  it("goes on behind a call that was pruned meanwhile, with what is left", async () => {
    for (let call = 1n; call <= 30n; call += 1n) {
      await world.run(recordOf(call, { role: call % 2n === 0n ? "agent" : "quiet" }), [], "x".repeat(100));
      if (call % 10n === 0n) world.pass(1);
    }
    const all = [...world.store.ended({ role: undefined, behind: undefined })];
    world.storedBytesMax = 1500;
    for (let call = 31n; call <= 32n; call += 1n) await world.run(recordOf(call)); // prunes the agent's, or all
    const kept = new Set(
      [...world.store.ended({ role: undefined, behind: undefined })].map(({ key }) => key.call),
    );
    expect(kept.size).toBeLessThan(30);
    for (const [index, { key, endedAtMs, number }] of all.entries()) {
      const behind = { key, endedAtMs, number };
      const left = all.slice(index + 1).filter((one) => kept.has(one.key.call));
      expect([...world.store.ended({ role: undefined, behind })].map((one) => one.key)).toEqual(
        left.map((one) => one.key),
      );
    }
  });

  it("gives audit records backward, in slices of any size, from any number", async () => {
    for (let call = 1n; call <= 8n; call += 1n) await world.run(recordOf(call), ["part"]);
    const all = world.store.audit.lines(1n, 1000);
    for (const slice of [1, 2, 5, 1000]) {
      const got = [];
      for (let before = all.length + 1; before > 1; ) {
        const lines = world.store.audit.linesBefore(BigInt(before), slice);
        got.push(...lines);
        before = Number(lines.at(-1)?.seq ?? 0);
      }
      expect(got).toEqual(all.toReversed());
    }
    expect(world.store.audit.linesBefore(1n, 5)).toEqual([]);
    expect(world.store.audit.linesBefore(0n, 5)).toEqual([]);
    expect(world.store.audit.linesBefore(2n ** 64n - 1n, 1)).toEqual(all.slice(-1));
  });

  it("prunes what is too old, and leaves the highest pruned id of its session behind for good", async () => {
    for (const call of [9n, 3n]) await world.run(recordOf(call), ["part"]);
    world.pass(REPLAY_FOR_MS + 1);
    for (const call of [20n, 21n]) await world.run(recordOf(call, { session: "later" }));
    await world.restart();
    expect(world.store.findCall(recordOf(3n).key)).toBeUndefined();
    expect(world.store.findCall(recordOf(9n).key)).toBeUndefined();
    expect(world.store.findCall(recordOf(20n, { session: "later" }).key)).toBeDefined();
    expect([world.store.watermark("agent", "s"), world.store.watermark("agent", "later")]).toEqual([
      9n,
      undefined,
    ]);
  });

  it("prunes one role's calls only for that role's bytes, oldest first", async () => {
    world.storedBytesMax = 3000;
    await world.run(recordOf(1n, { role: "quiet" }));
    for (let call = 1n; call <= 40n; call += 1n) await world.run(recordOf(call), [], "x".repeat(200));
    await world.run(recordOf(41n));
    const kept = [...world.store.calls()]
      .filter(({ key }) => key.role === "agent")
      .map(({ key }) => key.call);
    const watermark = world.store.watermark("agent", "s")!;
    expect(kept.length).toBeGreaterThan(2);
    expect(kept.length).toBeLessThan(20);
    expect(kept.at(-1)).toBe(watermark + 1n);
    expect(world.store.findCall(recordOf(1n, { role: "quiet" }).key)).toBeDefined();
    expect(world.store.watermark("quiet", "s")).toBeUndefined();
  });

  it("remembers the denials of calls, and no allowed decision", async () => {
    const [denied, allowed] = [recordOf(1n), recordOf(2n)];
    await world.write({ kind: "audit", record: { kind: "decision", decision: decisionOf(denied, "deny") } });
    await world.write({ kind: "audit", record: { kind: "decision", decision: decisionOf(allowed) } });
    expect(world.store.findDecision(denied.key)).toEqual(decisionOf(denied, "deny"));
    expect(world.store.findDecision(allowed.key)).toBeUndefined();
  });

  it("chains an audit record to every change, one behind the other, over restarts", async () => {
    await world.run(recordOf(1n));
    await world.restart();
    await world.write({ kind: "audit", record: { kind: "change", what: "reload", by: HOST, subject: "v" } });
    await world.run(recordOf(2n)); // which is waited for, as the record before it is not
    const lines = world.store.audit.lines(1n, 10);
    expect(lines.map(({ text }) => (JSON.parse(text) as { kind: string }).kind)).toEqual([
      "dispatch",
      "outcome",
      "change",
      "dispatch",
      "outcome",
    ]);
    expect(lines.map(({ seq }) => seq)).toEqual([1n, 2n, 3n, 4n, 5n]);
    expect(world.store.audit.head()).toEqual({ seq: 5n, hash: lines[4]?.hash });
  });

  it("gives back the last word on sessions, taints and who is frozen", async () => {
    const by = recordOf(1n).key;
    const session = {
      role: "agent",
      id: "s",
      request: "please",
      requestLabels: CLEAN,
      openedBy: "frontend",
      expiresAtMs: 5,
    };
    const scope = { of: "session", role: "agent", session: "s" } as const;
    const store = { of: "store", store: "notes", key: "ü".repeat(1000) } as const;
    await world.write(
      { kind: "session_opened", session, by: BY },
      { kind: "session_opened", session: { ...session, id: "open" }, by: BY },
      { kind: "taint", scope, labels: SECRET, by },
      { kind: "taint", scope: store, labels: SECRET, by },
      { kind: "taint", scope: { of: "role", role: "agent" }, labels: SECRET, by },
      { kind: "frozen", role: "agent", session: undefined, frozen: true, by: BY },
      { kind: "frozen", role: "agent", session: "s", frozen: true, by: BY },
    );
    await world.write(
      { kind: "session_closed", role: "agent", id: "s", by: BY },
      { kind: "session_closed", role: "agent", id: "own", by: BY },
      {
        kind: "endorsed",
        scope,
        before: SECRET,
        labels: { class: "internal", untrusted: false },
        by: BY,
        reason: "seen",
      },
      {
        kind: "endorsed",
        scope: { of: "role", role: "agent" },
        before: SECRET,
        labels: CLEAN,
        by: BY,
        reason: undefined,
      },
      { kind: "frozen", role: "agent", session: undefined, frozen: false, by: BY },
    );
    await world.restart();
    const stored = world.store.load();
    expect(
      [...stored.sessions].map((one) => [one.session.id, one.session.request, one.closed]).sort(),
    ).toEqual([
      ["open", "please", false],
      ["own", undefined, true],
      ["s", undefined, true],
    ]);
    expect(new Set([...stored.taints].map((taint) => JSON.stringify(taint.scope)))).toEqual(
      new Set([JSON.stringify(scope), JSON.stringify(store)]),
    );
    expect([...stored.taints].find((taint) => taint.scope.of === "store")).toEqual({
      scope: store,
      labels: SECRET,
      by,
    });
    expect([...stored.taints].find((taint) => taint.scope.of === "session")).toMatchObject({
      labels: { class: "internal", untrusted: false },
    });
    expect([...stored.frozen]).toEqual([{ role: "agent", session: "s" }]);
  });

  it("gives back the last word on definitions, questions, grants and their uses", async () => {
    const pin = { tool: "mail", role: "mail", digest: "d", definition: "{}", acceptedBy: "operator" };
    const approval = approvalOf("q1");
    const grant = grantOf("g1");
    await world.write(
      { kind: "pinned", pin, by: BY },
      { kind: "pinned", pin: { ...pin, digest: "d2" }, by: BY },
      { kind: "approval", approval },
      { kind: "approval", approval: approvalOf("q2") },
      { kind: "grant_added", grant },
      { kind: "grant_added", grant: grantOf("g2") },
      { kind: "grant_used", grant: "g1", uses: { grant: "g1", sinceMs: 5, used: 2 } },
      { kind: "grant_used", grant: "g2", uses: { grant: "g2", sinceMs: 5, used: 1 } },
    );
    await world.write(
      { kind: "approval", approval: { ...approval, state: "refused", decidedBy: BY } },
      { kind: "approval_forgotten", id: "q2" },
      { kind: "grant_gone", id: "g2", why: "revoked", by: BY },
      { kind: "grant_used", grant: "g2", uses: undefined },
    );
    await world.restart();
    const stored = world.store.load();
    expect([...stored.pins]).toEqual([{ ...pin, digest: "d2" }]);
    expect([...stored.approvals]).toEqual([{ ...approval, state: "refused", decidedBy: BY }]);
    expect([...stored.grants]).toEqual([grant]);
    expect([...stored.uses]).toEqual([{ grant: "g1", sinceMs: 5, used: 2 }]);
  });
});

function approvalOf(id: string): ApprovalRecord {
  const { key, tool, arguments: args } = recordOf(18_446_744_073_709_551_615n);
  return {
    id,
    key,
    tool,
    arguments: args,
    equal: "e",
    uid: 1001,
    pid: 77,
    definition: undefined,
    grants: ["g"],
    row: "ask",
    policy: "v",
    taint: SECRET,
    raisedBy: recordOf(5n).key,
    doubt: undefined,
    askedAtMs: 1,
    expiresAtMs: 2,
    state: "pending",
    decidedBy: undefined,
    decidedAtMs: undefined,
    refusedUntilMs: undefined,
  };
}

function grantOf(id: string): StoredGrant {
  return {
    id,
    role: "agent",
    tools: ["mail"],
    sessions: [],
    effect: "allow",
    when: undefined,
    taintMax: SECRET,
    aboveTaint: "deny",
    expiresAtMs: undefined,
    maxCalls: { calls: 3, perMs: undefined },
    remembers: undefined,
    equal: undefined,
    reason: undefined,
    by: BY,
    labels: CLEAN,
    addedAtMs: 1,
    approval: undefined,
  };
}
