import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLEAN, covers, DATA_CLASSES, join, type Labels } from "../../../../src/base/labels.ts";
import { readLine, recordWords } from "../../../../src/roles/console/page/audit_records.ts";
import { compareSeq, type TimelineEntry, timeline } from "../../../../src/roles/console/page/timeline.ts";

const PUBLIC = { class: "public", untrusted: false };
const INTERNAL = { class: "internal", untrusted: false };
const READ = { class: "internal", untrusted: true };
const TO = [{ role: "chat", uid: 1 }];

/** Lines as an export backwards gives them, out of records in their order. */
function exported(...records: readonly object[]): ReturnType<typeof readLine>[] {
  const lines = records.map((record, i) =>
    JSON.stringify({
      hash: "0".repeat(64),
      record: { seq: String(i + 1), at_ms: 1000 * (i + 1), ...record },
    }),
  );
  return lines.toReversed().map(readLine);
}

const of = (call: string, session = "one") => ({ role: "chat", session, call });
const dispatch = (call: string, taint: object) => ({
  kind: "dispatch",
  ...of(call),
  tool: "read_file",
  decision: "allow",
  row: "allow",
  grant: "reads",
  taint,
});
const outcome = (call: string, labels: object, to: readonly object[] = TO) => ({
  kind: "outcome",
  ...of(call),
  tool: "read_file",
  ...labels,
  status: "result",
  message_bytes: 10,
  to,
});
const rise = (call: string, labels: object, scope: object = { of: "session", session: "one" }) => ({
  kind: "taint",
  role: "chat",
  ...scope,
  ...labels,
  raised_by: of(call),
});

const afters = (entries: readonly TimelineEntry[]) => entries.map(({ after }) => after);

describe("a session's timeline", () => {
  it("shows a call once, with how long it took and the rise of taint that it brought", () => {
    const entries = timeline(exported(dispatch("7", PUBLIC), rise("7", INTERNAL), outcome("7", INTERNAL)));
    expect(entries).toMatchObject([
      {
        seq: "3",
        call: "7",
        tool: "read_file",
        tookMs: 2000,
        after: INTERNAL,
        steps: [
          { from: undefined, to: PUBLIC },
          { from: PUBLIC, to: INTERNAL, how: "rose", by: { call: "7" } },
        ],
      },
    ]);
  });

  it("is newest first, by when calls ended", () => {
    const entries = timeline(
      exported(dispatch("1", PUBLIC), dispatch("2", PUBLIC), outcome("2", PUBLIC), outcome("1", PUBLIC)),
    );
    expect(entries.map(({ call }) => call)).toEqual(["1", "2"]);
  });

  it("knows no taint before a record tells one", () => {
    const entries = timeline(
      exported({ kind: "session_opened", role: "chat", session: "one" }, dispatch("1", READ)),
    );
    expect(afters(entries)).toEqual([READ, undefined]);
  });

  it("sees in role scope, where no record of the session's tells of it, that a delivered answer raised the taint", () => {
    const [last] = timeline(exported(dispatch("1", PUBLIC), outcome("1", READ)));
    expect(last).toMatchObject({ after: READ, steps: [{}, { from: PUBLIC, to: READ, how: "rose" }] });
  });

  it("shows the rise of the whole role with the call of this session that brought it", () => {
    const entries = timeline(
      exported(dispatch("1", PUBLIC), rise("1", READ, { of: "role" }), outcome("1", READ)),
    );
    expect(entries).toMatchObject([{ call: "1", after: READ, steps: [{}, { to: READ, how: "rose" }] }]);
  });

  it("takes an answer that nobody was given for no rise", () => {
    const [last] = timeline(exported(dispatch("1", PUBLIC), outcome("1", READ, [])));
    expect(last?.after).toEqual(PUBLIC);
  });

  it("says where the taint had risen by nothing in the session", () => {
    const [last] = timeline(exported(dispatch("1", PUBLIC), outcome("1", PUBLIC), dispatch("2", READ)));
    expect(last?.steps).toEqual([{ from: PUBLIC, to: READ, how: "elsewhere", by: undefined }]);
  });

  it("shows an endorsement as a fall, and what a store was given as no taint of the session's", () => {
    const endorsed = {
      kind: "endorsed",
      of: "session",
      role: "chat",
      session: "one",
      ...INTERNAL,
      before: READ,
    };
    const store = { kind: "taint", of: "store", store: "files", class: "restricted", untrusted: true };
    const [newest, lowered] = timeline(exported(dispatch("1", READ), endorsed, store));
    expect(lowered?.steps).toEqual([{ from: READ, to: INTERNAL, how: "lowered", by: undefined }]);
    expect(newest?.after).toEqual(INTERNAL);
  });

  it("takes counted denials, which may be a minute old, for no news of the taint", () => {
    const repeated = { kind: "repeated", ...of("2"), tool: "pay", decision: "deny", taint: PUBLIC, count: 9 };
    const [newest] = timeline(exported(dispatch("1", READ), repeated));
    expect(newest).toMatchObject({ after: READ, steps: [] });
  });

  it("takes a class that it does not know for the highest", () => {
    const [newest] = timeline(exported(dispatch("1", { class: "cosmic", untrusted: false })));
    expect(newest?.after).toEqual({ class: "restricted", untrusted: false });
  });

  it("keeps a line that can't be read as an entry of its own", () => {
    const entries = timeline([readLine("{torn"), readLine('{"hash":"x","record":{"seq":5}}')]);
    expect(entries.map(({ records }) => records)).toEqual([[], []]);
  });

  it("keeps every record of every export, once, and never lets the taint fall without an endorsement or news of one", () => {
    const labels = fc.record({ class: fc.constantFrom(...DATA_CLASSES), untrusted: fc.boolean() });
    const step = fc.record({ call: fc.integer({ min: 1, max: 5 }), labels });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let now: Labels = CLEAN;
        const records = steps.flatMap((one) => {
          const before = now;
          now = join(now, one.labels);
          const call = String(one.call);
          return [dispatch(call, before), rise(call, one.labels), outcome(call, one.labels)];
        });
        const entries = timeline(exported(...records));
        const kept = entries.flatMap((entry) => entry.records.map(({ seq }) => Number(seq)));
        expect(kept.toSorted((a, b) => a - b)).toEqual(records.map((_, i) => i + 1));
        for (const { from, to } of entries.flatMap((entry) => entry.steps))
          expect(from === undefined || covers(to, from)).toBe(true);
        if (steps.length > 0) expect(entries[0]?.after).toEqual(now);
      }),
    );
  });
});

describe("numbers of records", () => {
  it("are compared as numbers, also beyond 2^53", () => {
    const seqs = ["9", "10", "9007199254740993", "9007199254740992", "2"];
    expect(seqs.toSorted(compareSeq)).toEqual(["2", "9", "10", "9007199254740992", "9007199254740993"]);
  });
});

describe("the words of a record", () => {
  it.each([
    [{ kind: "decision", decision: "deny", denied: "no_grant", row: "nothing" }, "Denied", "no_grant"],
    [
      { kind: "dispatch", grant: "reads", condition: "error" },
      "Allowed and sent",
      "grant reads; its condition errors",
    ],
    [{ kind: "dispatch", approval: "a", grant: "asks" }, "Approved and sent", "grant asks"],
    [{ kind: "approval", state: "refused", by: { role: "boss", uid: 7 } }, "Refused", "by boss (uid 7)"],
    [{ kind: "outcome", status: "failed", code: "timeout" }, "Ended: failed, timeout", "?"],
    [
      { kind: "peer_refused", why: "user", count: 3, uid: 9 },
      "A peer was turned away, 3 times",
      "user; uid 9",
    ],
    [{ kind: "frozen", session: "s", frozen: true, by: { role: "boss" } }, "Session frozen", "by boss"],
    [{ kind: "something_new" }, "something_new", ""],
  ])("of %j", (record, title, detail) => {
    const { record: read } = readLine(
      JSON.stringify({ hash: "", record: { seq: "1", at_ms: 1, ...record } }),
    );
    expect(read && recordWords(read)).toMatchObject({ title, detail });
  });
});
