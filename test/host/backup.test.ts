import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { verifyState } from "../../src/host/audit_offline.ts";
import { takeBackup } from "../../src/host/backup.ts";
import { seal } from "../../src/host/backup_seal.ts";
import { loadLibc } from "../../src/host/libc.ts";
import { type OpenStore, openStore } from "../../src/host/open_store.ts";
import { restoreBackup } from "../../src/host/restore.ts";
import { openStateDirectory } from "../../src/host/state_dir.ts";
import { withStored } from "../../src/host/stored_state.ts";
import type { LmdbSnapshot } from "../../src/store/lmdb_snapshot.ts";
import type { ApprovalRecord, CallKey, CallRecord, Change, StoredGrant } from "../../src/store/records.ts";
import { StoredAudit } from "../../src/store/stored_audit.ts";
import { loadRecords } from "../../src/store/stored_tables.ts";

const LABELS = { class: "internal", untrusted: true } as const;
const CLEAN = { class: "public", untrusted: false } as const;
const OPERATOR = { role: "operator", uid: 1002 };
const AUDIT = { keepForMs: 365 * 86_400_000, bytesMax: 1 << 30 };

/** Of the last line of a backup's file. */
const SEAL_BYTES = 90;

/** Made once: a store that went on after its backup was taken. Each test has a copy of both. */
let made: string;
let place: string;
let state: string;
let backup: string;

function placeAt(directory: string): void {
  place = directory;
  state = join(place, "state");
  backup = join(place, "backup.mdb");
}

beforeAll(async () => {
  made = mkdtempSync(join(tmpdir(), "callgate-backup-"));
  placeAt(made);
  await make();
});

afterAll(() => rmSync(made, { recursive: true, force: true }));

beforeEach(() => {
  placeAt(mkdtempSync(join(tmpdir(), "callgate-backup-")));
  cpSync(made, place, { recursive: true });
  chmodSync(state, 0o700); // some releases of Node copy no modes
});

afterEach(() => rmSync(place, { recursive: true, force: true }));

async function open(): Promise<OpenStore> {
  const opened = await openStore({
    config: { stateDir: state, replayForMs: 86_400_000 },
    libc: await loadLibc(),
    log: () => undefined,
    auditBounds: () => AUDIT,
    storedBytesMax: () => 1 << 24,
  });
  if (!opened.ok) throw new Error(opened.fault);
  return opened.value;
}

function commit({ store }: OpenStore, ...changes: readonly Change[]): Promise<void> {
  return new Promise((resolve, reject) => {
    store.commit(changes, (fault) => (fault === undefined ? resolve() : reject(new Error(fault.sentence))));
  });
}

function keyOf(call: bigint): CallKey {
  return { role: "agent", session: "s1", call };
}

function callOf(call: bigint): CallRecord {
  return {
    key: keyOf(call),
    tool: "write_file",
    arguments: "{}",
    uid: 1001,
    durable: true,
    equal: "ab".repeat(32),
    askedAtMs: 1,
    state: "dispatched",
    status: undefined,
    code: undefined,
    messages: [],
    labels: CLEAN,
    endedAtMs: 0,
  };
}

function intent(record: CallRecord): Change {
  const { key, tool } = record;
  return {
    kind: "intent",
    record,
    provider: "files",
    decision: {
      key,
      tool,
      atMs: 1,
      verdict: "allow",
      row: "allow",
      grant: "g",
      denied: undefined,
      reason: undefined,
      taint: CLEAN,
      condition: "none",
    },
  };
}

async function run(opened: OpenStore, call: bigint): Promise<void> {
  const record = callOf(call);
  await commit(opened, intent(record));
  const message = Buffer.from(`{"content":"${call}"}`);
  await commit(opened, {
    kind: "outcome",
    record,
    message,
    status: "result",
    code: undefined,
    atMs: Date.now(),
  });
}

const QUESTION: ApprovalRecord = {
  id: "a1",
  key: keyOf(99n),
  tool: "write_file",
  arguments: "{}",
  equal: "ab".repeat(32),
  uid: 1001,
  pid: 7,
  definition: undefined,
  grants: ["g"],
  row: "ask",
  policy: "p",
  taint: CLEAN,
  raisedBy: undefined,
  doubt: undefined,
  askedAtMs: 1,
  expiresAtMs: Date.now() + 3_600_000,
  state: "pending",
  decidedBy: undefined,
  decidedAtMs: undefined,
  refusedUntilMs: undefined,
};

function grantOf(id: string, effect: StoredGrant["effect"]): StoredGrant {
  return {
    id,
    role: "agent",
    tools: ["write_file"],
    sessions: [],
    effect,
    when: undefined,
    taintMax: CLEAN,
    aboveTaint: "deny",
    expiresAtMs: undefined,
    maxCalls: { calls: 1, perMs: undefined },
    remembers: undefined,
    equal: undefined,
    reason: undefined,
    by: OPERATOR,
    labels: CLEAN,
    addedAtMs: 1,
    approval: undefined,
  };
}

function sessionOf(id: string): Change {
  const session = {
    role: "worker",
    id,
    request: undefined,
    requestLabels: undefined,
    openedBy: "frontend",
    expiresAtMs: Date.now() + 3_600_000,
  };
  return { kind: "session_opened", session, by: OPERATOR };
}

async function restore(replace: boolean, nowMs = Date.now()) {
  return restoreBackup({
    stateDir: state,
    from: backup,
    replace,
    auditBounds: AUDIT,
    libc: await loadLibc(),
    nowMs,
  });
}

function altered(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

async function make(): Promise<void> {
  const opened = await open();
  for (let call = 1n; call <= 20n; call += 1n) await run(opened, call);
  await commit(opened, { kind: "approval", approval: QUESTION });
  for (const effect of ["allow", "ask", "deny"] as const)
    await commit(opened, { kind: "grant_added", grant: grantOf(`given-${effect}`, effect) });
  await commit(opened, sessionOf("before"));
  await commit(opened, { kind: "taint", scope: { of: "role", role: "agent" }, labels: CLEAN, by: keyOf(1n) });
  const writing = (async () => {
    for (let call = 21n; call <= 60n; call += 1n) await run(opened, call);
  })();
  const taken = await takeBackup({ stateDir: state, to: backup });
  await writing;
  if (!taken.ok) throw new Error(taken.fault);
  checkpoint = `${taken.value.head.seq}:${taken.value.head.hash}`;
  await run(opened, LATE);
  await commit(opened, sessionOf("after"));
  await commit(
    opened,
    { kind: "taint", scope: { of: "role", role: "agent" }, labels: LABELS, by: keyOf(2n) },
    { kind: "frozen", role: "other", session: undefined, frozen: true, by: OPERATOR },
  );
  await opened.close();
}

/** Ran after the backup: it is forgotten, and must not run again. */
const LATE = 1000n;
/** Where the backup's audit ends. */
let checkpoint: string;

/** What is in the state, as the next daemon will find it. */
async function found<T>(work: (engine: LmdbSnapshot) => T | Promise<T>): Promise<T> {
  const read = await withStored(state, async (engine) => ({ ok: true, value: await work(engine) }));
  if (!read.ok) throw new Error(read.fault);
  return read.value;
}

async function stored(engine: LmdbSnapshot) {
  const records = await loadRecords(engine);
  if (!records.ok) throw new Error(records.fault);
  return records.value;
}

describe("a backup", () => {
  it("is one private file that verifies, taken while the daemon went on writing", async () => {
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    const verdict = await verifyState(backup, checkpoint);
    expect(verdict).toMatchObject({ ok: true, finding: null, last_seq: checkpoint.split(":")[0] });
    expect(await verifyState(state, checkpoint)).toMatchObject({ ok: true, records: 61 * 2 + 9 });
    expect(readdirSync(place).sort()).toEqual(["backup.mdb", "state"]); // no lock file is left beside it
  });

  it("overwrites nothing, and leaves nothing behind where it can't be taken", async () => {
    const before = readFileSync(backup);
    expect(await takeBackup({ stateDir: state, to: backup })).toMatchObject({
      ok: false,
      fault: expect.stringContaining("is there already"),
    });
    expect(readFileSync(backup).equals(before)).toBe(true);
    for (const [stateDir, to, why] of [
      [state, join(place, "nowhere", "b"), "ENOENT"],
      [join(place, "none"), join(place, "b"), "no store"],
    ] as const)
      expect(await takeBackup({ stateDir, to })).toMatchObject({
        ok: false,
        fault: expect.stringContaining(why),
      });
    expect(readdirSync(place).sort()).toEqual(["backup.mdb", "state"]);
  });
});

describe("a restored backup", () => {
  it("refuses every call id up to the restore, replays what it has, and runs new ones", async () => {
    const nowMs = Date.now();
    expect(await restore(true, nowMs)).toMatchObject({ ok: true });
    const opened = await open();
    const { store } = opened;
    expect(store.findCall(keyOf(5n))?.state).toBe("ended");
    expect(store.findCall(keyOf(LATE))).toBeUndefined();
    const floor = store.watermark("agent", "s1") ?? 0n;
    expect(floor >> 20n).toBeGreaterThanOrEqual(BigInt(nowMs));
    expect(store.watermark("another", "unheard-of")).toBe(floor);
    await run(opened, floor + 1n);
    await opened.close();
  });

  it("brings back nothing that may have been used up, answered or closed, and forgets no taint or freeze", async () => {
    expect(await restore(true)).toMatchObject({
      ok: true,
      value: { voided: 1, takenBack: 1, closed: 2, unread: false },
    });
    const { approvals, grants, sessions, taints, frozen } = await found(stored);
    expect([...approvals]).toMatchObject([{ id: "a1", state: "void", decidedBy: { role: "[host]" } }]);
    expect([...grants].map(({ id }) => id).sort()).toEqual(["given-ask", "given-deny"]);
    expect([...sessions].map(({ session, closed }) => [session.id, closed]).sort()).toEqual([
      ["after", true],
      ["before", true],
    ]);
    expect([...taints]).toMatchObject([{ scope: { of: "role", role: "agent" }, labels: LABELS }]);
    expect([...frozen]).toEqual([{ role: "other", session: undefined }]);
  });

  it("says so in its audit, which goes on from the backup's and verifies", async () => {
    await restore(true);
    const last = BigInt(checkpoint.split(":")[0] ?? "");
    const kinds = await found((engine) => {
      const audit = StoredAudit.load(engine, () => AUDIT);
      if (!audit.ok) throw new Error(audit.fault);
      const lines = audit.value.reader.lines(last + 1n, 100);
      return lines.map(({ text }) => (JSON.parse(text) as { kind: string }).kind);
    });
    expect(kinds).toEqual([
      "restored",
      "approval",
      "session_closed",
      "session_closed",
      "grant_gone",
      "taint",
      "frozen",
    ]);
    expect(await verifyState(state, checkpoint)).toMatchObject({ ok: true });
  });

  it("keeps the state before aside under a dated name", async () => {
    const restored = await restore(true);
    if (!restored.ok) throw new Error(restored.fault);
    const { keptAside } = restored.value;
    expect(keptAside).toMatch(/state\/replaced-\d{4}-\d\d-\d\dT[\d.-]+Z$/);
    expect(await verifyState(keptAside ?? "")).toMatchObject({ ok: true, records: 61 * 2 + 9 });
    expect(readdirSync(state)).not.toContain("restoring");
  });

  it("goes into an empty place too, also where one that was broken off has left something", async () => {
    rmSync(join(state, "state.mdb"));
    mkdirSync(join(state, "restoring"));
    copyFileSync(backup, join(state, "restoring", "state.mdb"));
    expect(await restore(false)).toMatchObject({ ok: true, value: { keptAside: undefined } });
    expect(await verifyState(state, checkpoint)).toMatchObject({ ok: true });
  });

  it("takes the place of a state that is damaged, of which everything else says a sentence and does not crash", async () => {
    for (const wrong of [Buffer.alloc(0), Buffer.alloc(9000), Buffer.from("no store\n".repeat(2000))]) {
      writeFileSync(join(state, "state.mdb"), wrong);
      expect(await verifyState(state)).toContain("can't be opened");
      expect(await takeBackup({ stateDir: state, to: join(place, "b") })).toMatchObject({ ok: false });
    }
    expect(await restore(true)).toMatchObject({ ok: true, value: { unread: true } });
  });
});

describe("a restore is refused", () => {
  it("beside a daemon that runs", async () => {
    const daemon = openStateDirectory(state, await loadLibc());
    if (!daemon.ok) throw new Error(daemon.fault);
    expect(await restore(true)).toMatchObject({
      ok: false,
      fault: expect.stringContaining("is in use by another daemon"),
    });
    daemon.value.release();
  });

  it("over a state that is there, unless it is told to replace it", async () => {
    const before = readFileSync(join(state, "state.mdb"));
    expect(await restore(false)).toMatchObject({ ok: false, fault: expect.stringContaining("--replace") });
    expect(readFileSync(join(state, "state.mdb")).equals(before)).toBe(true);
  });

  it("of what is no backup, or was damaged; the state stays as it was", async () => {
    const before = readFileSync(join(state, "state.mdb"));
    const whole = readFileSync(backup);
    const refusals: readonly (readonly [Buffer, string])[] = [
      [altered(whole, whole.length - 1000), "is damaged"],
      [altered(whole, 40), "is damaged"],
      [whole.subarray(0, whole.length / 2), "its end is cut off"],
      [Buffer.alloc(0), "no backup of callgate's"],
      [Buffer.from("no store\n".repeat(2000)), "no backup of callgate's"],
    ];
    for (const [bytes, why] of refusals) {
      writeFileSync(backup, bytes);
      expect(await restore(true)).toMatchObject({ ok: false, fault: expect.stringContaining(why) });
    }
    rmSync(backup);
    expect(await restore(true)).toMatchObject({ ok: false, fault: expect.stringContaining("ENOENT") });
    expect(readFileSync(join(state, "state.mdb")).equals(before)).toBe(true);
    expect(readdirSync(state)).not.toContain("restoring");
  });

  it("of one whose audit was altered by somebody who could seal it anew", async () => {
    const bytes = readFileSync(backup).subarray(0, -SEAL_BYTES);
    bytes.write('"kind":"OUTCOME"', bytes.indexOf('"kind":"outcome"'));
    writeFileSync(backup, bytes);
    await seal(backup);
    expect(await restore(true)).toMatchObject({
      ok: false,
      fault: expect.stringContaining("has been altered"),
    });
    expect(await verifyState(backup)).toMatchObject({ ok: false, finding: { kind: "altered" } });
  });
});
