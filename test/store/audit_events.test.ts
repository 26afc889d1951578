import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLEAN } from "../../src/base/labels.ts";
import { EMPTY_HEAD, readBlock, sealBlock } from "../../src/store/audit_chain.ts";
import { keyedDigest } from "../../src/store/audit_event.ts";
import { auditEvents } from "../../src/store/audit_events.ts";
import type {
  Actor,
  ApprovalRecord,
  CallKey,
  CallRecord,
  Change,
  DecisionRecord,
  StoredGrant,
} from "../../src/store/records.ts";

const KEY = Buffer.alloc(32, 7);
const keyed = keyedDigest(KEY);
const KEY_OF_CALL: CallKey = { role: "agent", session: "s1", call: 18_446_744_073_709_551_615n };
const OPERATOR: Actor = { role: "operator", uid: 1002 };
const ARGUMENTS = '{"path":"/srv/é\\u2028","text":"CANARY of the agent","n":9007199254740993,"__proto__":1}';
const MESSAGE = Buffer.from('{"kind":"tool_response","content":"CANARY of the provider"}');

function hmac(text: string | Buffer): string {
  return createHmac("sha256", KEY).update(text).digest("hex");
}

const record: CallRecord = {
  key: KEY_OF_CALL,
  tool: "write_file",
  arguments: ARGUMENTS,
  uid: 1001,
  durable: true,
  equal: "ab".repeat(32),
  askedAtMs: 1,
  state: "dispatched",
  status: undefined,
  code: undefined,
  messages: [],
  labels: { class: "internal", untrusted: true },
  endedAtMs: 0,
};

const decision: DecisionRecord = {
  key: KEY_OF_CALL,
  tool: "write_file",
  atMs: 1,
  verdict: "allow",
  row: "allow",
  grant: "agent-writes",
  denied: undefined,
  reason: "the owner's words",
  taint: { class: "internal", untrusted: false },
  condition: "match",
};

const approval: ApprovalRecord = {
  id: "a1b2",
  key: KEY_OF_CALL,
  tool: "write_file",
  arguments: ARGUMENTS,
  equal: "ab".repeat(32),
  uid: 1001,
  pid: 77,
  definition: "cd".repeat(32),
  grants: ["agent-asks"],
  row: "ask",
  policy: "ef".repeat(32),
  taint: { class: "internal", untrusted: true },
  raisedBy: { ...KEY_OF_CALL, call: 5n },
  doubt: { ...KEY_OF_CALL, call: 6n },
  askedAtMs: 1,
  expiresAtMs: 900_001,
  state: "pending",
  decidedBy: undefined,
  decidedAtMs: undefined,
  refusedUntilMs: undefined,
};

const grant: StoredGrant = {
  id: "given-1",
  role: "agent",
  tools: ["write_file"],
  sessions: [],
  effect: "allow",
  when: 'args.path.startsWith("/srv")',
  taintMax: { class: "internal", untrusted: false },
  aboveTaint: "deny",
  expiresAtMs: 99,
  maxCalls: { calls: 3, perMs: undefined },
  remembers: "agent-asks",
  equal: "ab".repeat(32),
  reason: "asked by phone",
  by: OPERATOR,
  labels: CLEAN,
  addedAtMs: 1,
  approval: "a1b2",
};

const session = {
  role: "agent",
  id: "s1",
  request: "CANARY of the user",
  requestLabels: { class: "internal", untrusted: false } as const,
  openedBy: "frontend",
  expiresAtMs: 99,
};

/** One change of every kind, and what its record says beside its place, time and kind. */
const CHANGES: readonly (readonly [Change, Readonly<Record<string, unknown>> | undefined])[] = [
  [
    {
      kind: "intent",
      record,
      decision,
      provider: "files",
      definition: "cd".repeat(32),
      approval: "a1b2",
      clear: ["path", "n", "__proto__", "absent"],
    },
    {
      kind: "dispatch",
      role: "agent",
      session: "s1",
      call: "18446744073709551615",
      tool: "write_file",
      uid: 1001,
      decision: "allow",
      row: "allow",
      grant: "agent-writes",
      condition: "match",
      taint: { class: "internal", untrusted: false },
      provider: "files",
      definition: "cd".repeat(32),
      approval: "a1b2",
      args_hmac: hmac(ARGUMENTS),
      args_bytes: Buffer.byteLength(ARGUMENTS),
    },
  ],
  [
    { kind: "withdrawn", record },
    { kind: "withdrawn", call: "18446744073709551615", tool: "write_file" },
  ],
  [
    { kind: "message", record, message: MESSAGE },
    {
      kind: "part",
      message_hmac: hmac(MESSAGE),
      message_bytes: MESSAGE.length,
      class: "internal",
      untrusted: true,
    },
  ],
  [
    {
      kind: "outcome",
      record,
      message: MESSAGE,
      status: "failed",
      code: "timeout",
      atMs: 2,
      to: [{ role: "agent", uid: 1001 }],
    },
    {
      kind: "outcome",
      status: "failed",
      code: "timeout",
      class: "internal",
      untrusted: true,
      message_hmac: hmac(MESSAGE),
      message_bytes: MESSAGE.length,
      to: [{ role: "agent", uid: 1001 }],
    },
  ],
  [
    {
      kind: "outcome",
      record,
      message: MESSAGE,
      status: "result",
      code: undefined,
      atMs: 2,
      settledBy: OPERATOR,
    },
    { kind: "settled", status: "result", by: OPERATOR },
  ],
  [
    { kind: "taint", scope: { of: "role", role: "files" }, labels: record.labels, by: KEY_OF_CALL },
    {
      kind: "taint",
      of: "role",
      role: "files",
      class: "internal",
      untrusted: true,
      raised_by: { role: "agent", session: "s1", call: "18446744073709551615" },
    },
  ],
  [
    {
      kind: "taint",
      scope: { of: "session", role: "agent", session: "s1" },
      labels: record.labels,
      by: KEY_OF_CALL,
    },
    { kind: "taint", of: "session", role: "agent", session: "s1" },
  ],
  [
    {
      kind: "taint",
      scope: { of: "store", store: "notes", key: "/CANARY" },
      labels: record.labels,
      by: KEY_OF_CALL,
    },
    { kind: "taint", of: "store", store: "notes", item_hmac: hmac("/CANARY") },
  ],
  [
    {
      kind: "endorsed",
      scope: { of: "session", role: "agent", session: "s1" },
      before: record.labels,
      labels: { class: "public", untrusted: false },
      by: OPERATOR,
      reason: "read it all\u202e",
    },
    {
      kind: "endorsed",
      before: record.labels,
      class: "public",
      untrusted: false,
      reason: "read it all\u202e",
      by: OPERATOR,
    },
  ],
  [
    { kind: "session_opened", session, by: OPERATOR },
    {
      kind: "session_opened",
      role: "agent",
      session: "s1",
      opened_by: "frontend",
      expires_at_ms: 99,
      request_hmac: hmac("CANARY of the user"),
      request_bytes: 18,
      by: OPERATOR,
    },
  ],
  [
    { kind: "session_closed", role: "agent", id: "s1", by: OPERATOR },
    { kind: "session_closed", role: "agent", session: "s1", by: OPERATOR },
  ],
  [
    { kind: "frozen", role: "agent", session: undefined, frozen: true, by: OPERATOR },
    { kind: "frozen", role: "agent", frozen: true, by: OPERATOR },
  ],
  [
    {
      kind: "pinned",
      pin: {
        tool: "write_file",
        role: "files",
        digest: "cd".repeat(32),
        definition: "{CANARY}",
        acceptedBy: "operator",
      },
      by: OPERATOR,
    },
    { kind: "pinned", role: "files", tool: "write_file", definition: "cd".repeat(32), by: OPERATOR },
  ],
  [
    { kind: "approval", approval },
    {
      kind: "approval",
      state: "asked",
      approval: "a1b2",
      call: "18446744073709551615",
      tool: "write_file",
      decision: "ask",
      row: "ask",
      grants: ["agent-asks"],
      pid: 77,
      taint: { class: "internal", untrusted: true },
      raised_by: { role: "agent", session: "s1", call: "5" },
      doubt: { role: "agent", session: "s1", call: "6" },
      args_hmac: hmac(ARGUMENTS),
      expires_at_ms: 900_001,
    },
  ],
  ...(["approved", "refused", "expired", "withdrawn", "void"] as const).map(
    (state): readonly [Change, Readonly<Record<string, unknown>>] => [
      {
        kind: "approval",
        approval: { ...approval, state, decidedBy: OPERATOR, decidedAtMs: 7, refusedUntilMs: 8 },
      },
      { kind: "approval", approval: "a1b2", state, by: OPERATOR, decided_at_ms: 7, refused_until_ms: 8 },
    ],
  ),
  [{ kind: "approval_forgotten", id: "a1b2" }, undefined],
  [
    { kind: "grant_added", grant },
    {
      kind: "grant_added",
      role: "agent",
      grant: "given-1",
      effect: "allow",
      tools: ["write_file"],
      when: 'args.path.startsWith("/srv")',
      max_calls: { calls: 3 },
      remembers: "agent-asks",
      equal_hmac: hmac("ab".repeat(32)),
      approval: "a1b2",
      reason: "asked by phone",
      by: OPERATOR,
    },
  ],
  [
    { kind: "grant_gone", id: "given-1", why: "revoked", by: OPERATOR },
    { kind: "grant_gone", grant: "given-1", why: "revoked", by: OPERATOR },
  ],
  [{ kind: "grant_used", grant: "given-1", uses: { grant: "given-1", sinceMs: 1, used: 2 } }, undefined],
  [
    {
      kind: "audit",
      record: { kind: "decision", decision: { ...decision, verdict: "deny", denied: "no_grant" } },
    },
    { kind: "decision", decision: "deny", denied: "no_grant", row: "allow", condition: "match" },
  ],
  [
    { kind: "audit", record: { kind: "repeated", decision: { ...decision, verdict: "deny" }, count: 41 } },
    { kind: "repeated", decision: "deny", count: 41 },
  ],
  [
    {
      kind: "audit",
      record: { kind: "delivery", key: KEY_OF_CALL, how: "replayed", to: { role: "agent", uid: 1001 } },
    },
    { kind: "delivery", call: "18446744073709551615", how: "replayed", to: [{ role: "agent", uid: 1001 }] },
  ],
  [
    {
      kind: "audit",
      record: { kind: "peer_refused", role: "agent", uid: 5, pid: 6, why: "not_named", count: 2 },
    },
    { kind: "peer_refused", role: "agent", uid: 5, pid: 6, why: "not_named", count: 2 },
  ],
  [
    {
      kind: "audit",
      record: { kind: "change", what: "reload", by: { role: "[host]", uid: undefined }, subject: "ef" },
    },
    { kind: "change", what: "reload", subject: "ef", by: { role: "[host]" } },
  ],
];

function textOf(change: Change): string[] {
  const { block } = sealBlock(EMPTY_HEAD, auditEvents(change, keyed), 1_700_000_000_000);
  return readBlock(1n, block).map(({ text }) => text);
}

describe("the audit of a change", () => {
  for (const [change, expected] of CHANGES) {
    const name = change.kind === "audit" ? `${change.kind}: ${change.record.kind}` : change.kind;
    it(`tells of ${name}${expected === undefined ? " nothing" : ` as ${String(expected["kind"])}`}`, () => {
      const texts = textOf(change);
      if (expected === undefined) return expect(texts).toEqual([]);
      expect(texts).toHaveLength(1);
      const read = JSON.parse(texts[0] ?? "") as unknown;
      expect(read).toMatchObject({ seq: "1", at_ms: 1_700_000_000_000, ...expected });
    });
  }

  it("holds no argument, no content, no words of a user and no definition, in whatever change they come", () => {
    for (const [change] of CHANGES) expect(textOf(change).join("")).not.toMatch(/CANARY|(?:ab){32}/);
  });

  it("is one line of printable ASCII, whatever is in a name", () => {
    const hostile = {
      ...decision,
      tool: "x\u202e\n\u2028\x7f\ud800",
      key: { ...KEY_OF_CALL, session: '"}\n{"' },
    };
    const [text = ""] = textOf({ kind: "audit", record: { kind: "decision", decision: hostile } });
    expect(text).toMatch(/^[\x20-\x7e]+$/);
    expect(JSON.parse(text)).toMatchObject({ tool: hostile.tool, session: hostile.key.session });
  });

  it("shows the arguments that a tool opts in as they were asked for: exact numbers, escaped, no prototype", () => {
    const [text = ""] = textOf({
      kind: "intent",
      record,
      decision,
      provider: undefined,
      clear: ["path", "n", "__proto__", "absent"],
    });
    expect(text.slice(text.indexOf('"args":'))).toBe(
      '"args":{"path":"/srv/\\u00e9\\u2028","n":9007199254740993,"__proto__":1}}',
    );
  });

  it("shows an opted-in argument that is too long as digest and length", () => {
    const long = "x".repeat(300);
    const [text = ""] = textOf({
      kind: "intent",
      record: { ...record, arguments: JSON.stringify({ path: long }) },
      decision,
      provider: "files",
      clear: ["path"],
    });
    expect(text).not.toContain(long);
    const value = JSON.stringify(long);
    expect(JSON.parse(text)).toMatchObject({ args: { path: { hmac: hmac(value), bytes: value.length } } });
  });

  it("of a memory read says that its call is not on disk", () => {
    const memory = { ...record, durable: false };
    const [text = ""] = textOf({ kind: "intent", record: memory, decision, provider: "files" });
    expect(JSON.parse(text)).toMatchObject({ memory: true });
  });

  it("names at most so many of those that hear an outcome, and says how many there are", () => {
    const to = Array.from({ length: 40 }, (_, uid) => ({ role: "agent", uid }));
    const change: Change = {
      kind: "outcome",
      record,
      message: MESSAGE,
      status: "result",
      code: undefined,
      atMs: 1,
      to,
    };
    const read = JSON.parse(textOf(change)[0] ?? "") as { to: unknown[]; to_count: number };
    expect(read.to).toHaveLength(16);
    expect(read.to_count).toBe(40);
  });

  it("digests are HMAC-SHA256 of any text and any bytes, one after the other", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 3000 }),
        fc.uint8Array({ maxLength: 9000 }),
        (text, bytes) => {
          expect(keyed(text)).toBe(hmac(text));
          expect(keyed(Buffer.from(bytes))).toBe(hmac(Buffer.from(bytes)));
        },
      ),
    );
  });

  it("digests differ under another key, so that nobody can guess at arguments without it", () => {
    const other = keyedDigest(Buffer.alloc(32, 8));
    expect(other(ARGUMENTS)).not.toBe(keyed(ARGUMENTS));
    expect(keyed(ARGUMENTS)).toBe(hmac(ARGUMENTS));
  });
});
