import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type AuditEntry, readEntry } from "../../../src/roles/traces/audit_line.ts";
import { AuditSpans } from "../../../src/roles/traces/audit_spans.ts";
import { traceIdOf } from "../../../src/roles/traces/call_span.ts";
import type { Span } from "../../../src/roles/traces/otlp.ts";
import { exportLine } from "../../../src/store/audit_chain.ts";
import { Approver, ASKING, PAYMENT, put } from "../../broker/approvals_rig.ts";
import { BASIC } from "../../broker/configs.ts";
import { type Rig, withRig } from "../../broker/rig.ts";

// Spans of the records that a real broker writes, its store and clock in memory.

function entries(rig: Rig): readonly AuditEntry[] {
  return rig.store.audit.lines(1n, Number.MAX_SAFE_INTEGER).map((line) => {
    const entry = readEntry(exportLine(line));
    if (entry === undefined) throw new Error(`no entry: ${line.text}`);
    return entry;
  });
}

function spansOf(rig: Rig): readonly Span[] {
  const spans = new AuditSpans();
  for (const entry of entries(rig)) spans.take(entry);
  spans.caughtUp();
  return spans.finished();
}

/** Calls of providers' tools, in words. */
function told(spans: readonly Span[]): readonly string[] {
  return spans
    .filter(({ attributes }) => !String(attributes["gen_ai.tool.name"] ?? "").startsWith("callgate."))
    .filter(({ name }) => !name.includes(" callgate."))
    .map(({ name, error, startMs, endMs }) => `${name}: ${error ?? "ok"}, ${endMs - startMs} ms`);
}

function callSpan(spans: readonly Span[], tool: string): Span {
  const found = spans.find(({ name }) => name === `execute_tool ${tool}`);
  if (found === undefined) throw new Error(`no span of ${tool}`);
  return found;
}

describe("a call becomes a span", () => {
  it("from its decision to its outcome, with the provider's work below it", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await put(rig, agent, "read", { path: "CANARY-path" }, { call: 7n, session: "s1" });
      await rig.pass(250);
      files.take().part("CANARY-part");
      await rig.pass(250);
      files.answer(1n, {
        status: "result",
        content: "CANARY",
        class: "internal",
        untrusted: true,
        truncated: false,
      });
      await rig.settle();
      const spans = spansOf(rig);
      expect(told(spans)).toEqual(["execute_tool read: ok, 500 ms", "callgate.run read: ok, 500 ms"]);
      const [call, run] = spans;
      expect(call).toMatchObject({
        kind: 1,
        parentSpanId: undefined,
        attributes: {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": "read",
          "gen_ai.tool.call.id": "7",
          "gen_ai.agent.name": "agent",
          "gen_ai.conversation.id": "s1",
          "mcp.method.name": "tools/call",
          "callgate.outcome": "result",
          "callgate.decision": "allow",
          "callgate.row": "allow",
          "callgate.grant": "agent-uses",
          "callgate.provider": "files",
          "callgate.result.class": "internal",
          "callgate.result.untrusted": true,
          "callgate.result.parts": 1,
        },
      });
      expect(run).toMatchObject({ kind: 3, parentSpanId: call?.spanId, traceId: call?.traceId });
      expect(call?.events.map(({ name }) => name)).toEqual(["callgate.dispatched", "callgate.taint.raised"]);
      expect(JSON.stringify(spans)).not.toContain("CANARY");
    });
  });

  it("whose trace anybody finds who has the call's name", async () => {
    await withRig(BASIC, async (rig) => {
      await put(rig, rig.peer("agent"), "nowhere", {}, { call: 9n, session: "s1" });
      const [span] = spansOf(rig);
      const byHand = createHash("sha256").update('["callgate","agent","s1","9"]').digest("hex").slice(0, 32);
      expect([span?.traceId, traceIdOf({ role: "agent", session: "s1", call: "9" })]).toEqual([
        byHand,
        byHand,
      ]);
      expect(span?.spanId).toMatch(/^[0-9a-f]{16}$/);
    });
  });

  it("with the wait for a person below it, and who answered", async () => {
    await withRig(ASKING, async (rig) => {
      const [agent, files, approver] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "pay");
      await rig.pass(3000);
      await approver.letThrough();
      await rig.pass(100);
      files.take().result("paid");
      await rig.settle();
      const spans = spansOf(rig);
      expect(told(spans)).toEqual([
        "execute_tool pay: ok, 3100 ms",
        "callgate.question pay: ok, 3000 ms",
        "callgate.run pay: ok, 100 ms",
      ]);
      const question = spans.find(({ name }) => name === "callgate.question pay");
      expect(question?.attributes).toEqual({
        "callgate.approval.state": "approved",
        "callgate.approval.by": "operator",
      });
      const events = callSpan(spans, "pay").events.map(({ name }) => name);
      expect(events).toContain("callgate.question.asked");
      expect(events).toContain("callgate.question.answered");
      expect(events).toContain("callgate.dispatched");
    });
  });

  it("that is an error where a person refuses, nobody answers, its caller or the policy ends the question", async () => {
    await withRig(ASKING, async (rig) => {
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      await put(rig, agent, "pay", { ...PAYMENT, amount: 1 });
      await approver.refuse(await approver.look());
      await put(rig, agent, "pay", { ...PAYMENT, amount: 2 });
      await rig.pass(86_400_000);
      await put(rig, agent, "pay", { ...PAYMENT, amount: 3 }, { call: 93n });
      await put(rig, agent, "callgate.calls.cancel", { session: "s", call: "93" });
      await put(rig, agent, "pay", { ...PAYMENT, amount: 4 });
      const shown = await approver.look();
      await rig.reloadWith(ASKING.replace('"pay", "write", "look"', '"write"'));
      await approver.approve(shown);
      const errors = spansOf(rig)
        .filter(({ name }) => name === "execute_tool pay")
        .map(({ error, attributes }) => [error, attributes["callgate.approval.state"]]);
      expect(errors).toEqual([
        ["approval_refused", "refused"],
        ["approval_expired", "expired"],
        ["cancelled", "withdrawn"],
        ["no_grant", "void"],
      ]);
    });
  });

  it("each on its own where equal calls share a question", async () => {
    await withRig(ASKING, async (rig) => {
      const [agent, files, approver] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "pay", PAYMENT, { call: 1n });
      await put(rig, agent, "pay", PAYMENT, { call: 2n });
      await approver.letThrough();
      files.take().result("paid");
      await rig.settle();
      await put(rig, agent, "pay", { ...PAYMENT, amount: 6 }, { call: 3n });
      await put(rig, agent, "pay", { ...PAYMENT, amount: 6 }, { call: 4n });
      await approver.refuse(await approver.look());
      const calls = spansOf(rig).filter(({ name }) => name === "execute_tool pay");
      expect(calls.map(({ attributes, error }) => [attributes["gen_ai.tool.call.id"], error])).toEqual([
        ["1", undefined],
        ["2", undefined],
        ["3", "approval_refused"],
        ["4", "approval_refused"],
      ]);
    });
  });

  it("of no length where it is denied or refused before anything ran, and one for those that are counted", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
      await put(rig, agent, "read", { path: 7 });
      for (let i = 0; i < 5; i += 1) await put(rig, operator, "read");
      await rig.pass(120_000);
      const spans = spansOf(rig);
      expect(told(spans)).toEqual([
        "execute_tool read: bad_arguments, 0 ms",
        "execute_tool: no_grant, 0 ms",
        "execute_tool: no_grant, 0 ms",
      ]);
      expect(spans.at(-1)?.attributes["callgate.count"]).toBe(4);
    });
  });

  it("that does not end the span of a running call whose name is used again by somebody else", async () => {
    await withRig(BASIC.replace('users = ["agent"]', 'users = ["agent", "callgate-mail"]'), async (rig) => {
      const [agent, other, files] = [rig.peer("agent"), rig.peer("agent", { uid: 1004 }), rig.peer("files")];
      await put(rig, agent, "read", {}, { call: 7n });
      expect((await put(rig, other, "read", {}, { call: 7n })).end).toBe("denied denied_by_grant");
      await put(rig, agent, "read", { other: 1 }, { call: 7n }); // a conflict
      await rig.pass(100);
      files.take().result("x");
      await rig.settle();
      expect(told(spansOf(rig))).toEqual([
        "execute_tool read: denied_by_grant, 0 ms",
        "execute_tool read: conflict, 0 ms",
        "execute_tool read: ok, 100 ms",
        "callgate.run read: ok, 100 ms",
      ]);
    });
  });

  it("named by no tool where the name may be a caller's own invention", async () => {
    await withRig(BASIC, async (rig) => {
      await put(rig, rig.peer("agent"), "invented_by_an_agent");
      const [span] = spansOf(rig);
      expect([span?.name, span?.attributes["gen_ai.tool.name"]]).toEqual([
        "execute_tool",
        "invented_by_an_agent",
      ]);
    });
  });

  it("without an argument that its tool has opted in to be audited, and without anybody's words", async () => {
    const config = `${BASIC.replace("[tools.read]", '[tools.read]\naudit_arguments = ["path"]')}`;
    await withRig(
      config.replace("taint_untrusted = true", 'taint_untrusted = true\nreason = "CANARY reason"'),
      async (rig) => {
        const [agent, files] = [rig.peer("agent"), rig.peer("files")];
        await put(rig, agent, "read", { path: "CANARY-path" });
        files.take().fail("CANARY failure");
        await rig.settle();
        expect(JSON.stringify(entries(rig).map(({ members }) => members))).toContain("CANARY-path");
        expect(JSON.stringify(spansOf(rig))).not.toContain("CANARY");
        expect(told(spansOf(rig))[0]).toBe("execute_tool read: provider, 0 ms");
      },
    );
  });

  it("no span are reads of the broker's own tools; what changes something is one", async () => {
    await withRig(ASKING, async (rig) => {
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      rig.peer("files");
      await put(rig, agent, "pay");
      await approver.refuse(await approver.look());
      await put(rig, approver.peer, "callgate.status", {});
      await rig.pass(180_000);
      const builtin = spansOf(rig).filter(({ name }) => name.startsWith("execute_tool callgate."));
      expect(builtin.map(({ name }) => name)).toEqual(["execute_tool callgate.approvals.refuse"]);
    });
  });
});

describe("what has not ended", () => {
  it("is kept, survives being written down, and becomes the same span then", async () => {
    await withRig(ASKING, async (rig) => {
      const [agent, files, approver] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      await put(rig, agent, "pay");
      const before = new AuditSpans();
      const early = entries(rig);
      for (const entry of early) before.take(entry);
      before.caughtUp();
      expect(before.finished()).toEqual([]);
      const after = new AuditSpans(JSON.parse(JSON.stringify(before.open)));
      await rig.pass(1000);
      await approver.letThrough();
      files.take().result("paid");
      await rig.settle();
      for (const entry of entries(rig).slice(early.length)) after.take(entry);
      after.caughtUp();
      const whole = spansOf(rig);
      expect(after.finished()).toEqual(whole);
      expect(after.open).toEqual([]);
    });
  });

  it("began before the first record that was seen becomes none", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await put(rig, agent, "read", {});
      const early = entries(rig).length;
      files.take().result("x");
      await rig.settle();
      const spans = new AuditSpans();
      for (const entry of entries(rig).slice(early)) spans.take(entry);
      spans.caughtUp();
      expect([spans.finished(), spans.open]).toEqual([[], []]);
    });
  });

  it("is bounded: of the oldest nobody knows the end, and neither of what ran for more than a day", () => {
    const line = (seq: number, atMs: number, more: object) =>
      JSON.stringify({ hash: "0".repeat(64), record: { seq: String(seq), at_ms: atMs, ...more } });
    const dispatch = (call: number, seq: number, atMs: number) =>
      readEntry(
        line(seq, atMs, {
          kind: "dispatch",
          role: "a",
          session: "s",
          call: String(call),
          tool: "t",
          provider: "p",
        }),
      );
    const spans = new AuditSpans();
    for (let call = 1; call <= 5000; call += 1) {
      const entry = dispatch(call, call, 1000);
      if (entry !== undefined) spans.take(entry);
    }
    spans.caughtUp();
    expect(spans.open.length).toBe(4096);
    expect(new Set(spans.finished().map(({ error }) => error))).toEqual(new Set(["outcome_unknown"]));
    const late = dispatch(6000, 6000, 90_000_000);
    if (late !== undefined) spans.take(late);
    spans.caughtUp();
    expect(spans.open.length).toBe(1);
  });
});

describe("a line of an export", () => {
  it.each([
    "",
    "null",
    "[]",
    '{"hash":"x"}',
    '{"hash":"x","record":[]}',
    '{"hash":"x","record":{"seq":1,"kind":"outcome","at_ms":1}}',
    '{"hash":"x","record":{"seq":"01","kind":"outcome","at_ms":1}}',
    '{"hash":"x","record":{"seq":"1","kind":7,"at_ms":1}}',
    '{"hash":1,"record":{"seq":"1","kind":"outcome","at_ms":1}}',
  ])("that is none is not taken for one: %s", (text) => {
    expect(readEntry(text)).toBeUndefined();
  });
});
