import { describe, expect, it } from "vitest";
import { readExportLine } from "../../src/store/audit_chain.ts";
import { AuditVerifier } from "../../src/store/audit_verify.ts";
import { ASKING, PAYMENT } from "./approvals_rig.ts";
import { allow, BASIC, ROLES, TOOLS } from "./configs.ts";
import { type Rig, withRig } from "./rig.ts";
import type { Reply, RigPeer } from "./rig_peer.ts";

// What the audit tells of what a broker does, and the tools with which operators look at it.

type AuditRecord = Readonly<Record<string, unknown>> & { readonly kind: string };

function records(rig: Rig): readonly AuditRecord[] {
  const { lines } = rig.store.audit;
  return lines(1n, Number.MAX_SAFE_INTEGER).map(({ text }) => JSON.parse(text) as AuditRecord);
}

function ofKind(rig: Rig, kind: string): readonly AuditRecord[] {
  return records(rig).filter((record) => record.kind === kind);
}

async function ask(rig: Rig, peer: RigPeer, tool: string, args: object = {}, call?: bigint): Promise<Reply> {
  const reply = peer.ask(tool, args, call === undefined ? {} : { call });
  await rig.settle();
  return reply;
}

describe("the audit of a call", () => {
  it("has its decision and dispatch in one record, its parts and its outcome, and whom it went to", async () => {
    await withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      const files = rig.peer("files");
      const reply = await ask(rig, agent, "read", { path: "CANARY-path" }, 7n);
      files.take().part("CANARY-part", { class: "internal" });
      await rig.settle();
      files.answer(1n, {
        status: "result",
        content: "CANARY-end",
        class: "internal",
        untrusted: true,
        truncated: false,
      });
      await rig.settle();
      expect(reply.finals).toBe(1);
      const told = records(rig).filter(({ call }) => call === "7");
      expect(told.map(({ kind }) => kind)).toEqual(["dispatch", "part", "outcome"]);
      expect(told[0]).toMatchObject({
        role: "agent",
        session: "s",
        tool: "read",
        uid: 1001,
        decision: "allow",
        row: "allow",
        grant: "agent-uses",
        condition: "none",
        taint: { class: "public", untrusted: false },
        provider: "files",
      });
      expect(told[2]).toMatchObject({
        status: "result",
        class: "internal",
        untrusted: true,
        to: [{ role: "agent", uid: 1001 }],
      });
      const raised = ofKind(rig, "taint").filter(({ role }) => role === "agent");
      expect(raised.at(-1)).toMatchObject({ class: "internal", untrusted: true, raised_by: { call: "7" } });
    });
  });

  it("has every delivery: joined, and replayed after the end", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, again, files] = [rig.peer("agent"), rig.peer("agent"), rig.peer("files")];
      await ask(rig, agent, "read", {}, 7n);
      await ask(rig, again, "read", {}, 7n);
      files.take().result("x");
      await rig.settle();
      await ask(rig, again, "read", {}, 7n);
      expect(ofKind(rig, "delivery").map(({ how, to }) => [how, to])).toEqual([
        ["joined", [{ role: "agent", uid: 1001 }]],
        ["replayed", [{ role: "agent", uid: 1001 }]],
      ]);
      expect(ofKind(rig, "outcome")[0]).toMatchObject({ to: [{ role: "agent" }, { role: "agent" }] });
    });
  });

  it("has a question, who answered it, and the dispatch that it released", async () => {
    await withRig(ASKING, async (rig) => {
      const [agent, operator, files] = [rig.peer("agent"), rig.peer("operator"), rig.peer("files")];
      await ask(rig, agent, "pay", PAYMENT, 7n);
      const [asked] = ofKind(rig, "approval");
      expect(asked).toMatchObject({
        state: "asked",
        decision: "ask",
        call: "7",
        grants: ["agent-pays"],
        uid: 1001,
      });
      const { json } = await ask(rig, operator, "callgate.approvals.show", { approval: asked?.["approval"] });
      await ask(rig, operator, "callgate.approvals.approve", {
        approval: asked?.["approval"],
        digest: json["digest"],
      });
      files.take().result("paid");
      await rig.settle();
      expect(ofKind(rig, "approval").at(-1)).toMatchObject({
        state: "approved",
        by: { role: "operator", uid: 1002 },
      });
      const [dispatch] = ofKind(rig, "dispatch").filter(({ call }) => call === "7");
      expect(dispatch).toMatchObject({ tool: "pay", approval: asked?.["approval"] });
    });
  });

  it("has no argument, no content and no failure's text, whatever is done", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, operator, files] = [rig.peer("agent"), rig.peer("operator"), rig.peer("files")];
      files.serve = (request) => request.fail("CANARY-failure");
      await ask(rig, agent, "write", { path: "CANARY-path", text: "CANARY-text" });
      files.serve = (request) => request.result("CANARY-content");
      await ask(rig, agent, "read", { path: "CANARY-path" });
      await ask(rig, agent, "none", { text: "CANARY-text" });
      await ask(rig, agent, "callgate.grants.explain", { tool: "read", arguments: '{"path":"CANARY-path"}' });
      await ask(rig, operator, "callgate.freeze", { role: "files" });
      const text = JSON.stringify(records(rig));
      expect(text).toContain('"kind":"frozen"');
      expect(text).not.toContain("CANARY");
    });
  });

  it("shows the arguments that a tool opts in", async () => {
    const open = BASIC.replace("[tools.read]\n", '[tools.read]\naudit_arguments = ["path"]\n');
    await withRig(open, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await ask(rig, agent, "read", { path: "/srv/a" });
      files.take().result("x");
      await rig.settle();
      expect(ofKind(rig, "dispatch")[0]).toMatchObject({ args: { path: "/srv/a" } });
    });
  });
});

describe("repetition in the audit", () => {
  it("is counted: the first denial is a record, the others of the minute are one with their number", async () => {
    await withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      for (let i = 0; i < 50; i += 1) expect((await ask(rig, agent, "nothing")).end).toBe("denied no_grant");
      expect(ofKind(rig, "decision")).toHaveLength(1);
      await rig.pass(60_000);
      expect(ofKind(rig, "repeated")).toMatchObject([
        { tool: "nothing", count: 49, denied: "no_grant", row: "nothing" },
      ]);
      await ask(rig, agent, "nothing");
      await rig.pass(120_000);
      expect(ofKind(rig, "decision")).toHaveLength(2);
      expect(ofKind(rig, "repeated")).toHaveLength(1);
    });
  });

  it("is told apart by session and tool, and unknown tools are one", async () => {
    await withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      for (const tool of ["no-1", "no-2", "no-3"]) await ask(rig, agent, tool);
      agent.ask("no-1", {}, { session: "other" });
      await rig.settle();
      expect(ofKind(rig, "decision").map(({ session, tool }) => [session, tool])).toEqual([
        ["s", "no-1"],
        ["other", "no-1"],
      ]);
    });
  });

  it("a denial that was counted still says why", async () => {
    await withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      await ask(rig, agent, "nothing", {}, 7n);
      await ask(rig, agent, "nothing", {}, 8n);
      const why = await ask(rig, agent, "callgate.calls.why", { call: "8" });
      expect(why.json).toMatchObject({ row: "nothing" });
    });
  });

  it("can't be got around with new session names: a role's denials have a bound", async () => {
    await withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      for (let i = 0; i < 600; i += 1) agent.ask("nothing", {}, { session: `s${i}` });
      await rig.settle();
      expect(ofKind(rig, "decision").length).toBeLessThanOrEqual(257);
      await rig.pass(60_000);
      const counted = ofKind(rig, "repeated");
      expect(counted).toMatchObject([{ session: "(various)", tool: "(various)" }]);
      const told = ofKind(rig, "decision").length + Number(counted[0]?.["count"]);
      expect(told).toBe(600);
    });
  });

  it("of refused peers is counted too", async () => {
    await withRig(BASIC, async (rig) => {
      for (let i = 0; i < 5; i += 1) rig.peer("agent", { uid: 4000 });
      rig.peer("agent", { uid: 4001 });
      await rig.settle();
      await rig.pass(60_000);
      expect(ofKind(rig, "peer_refused").map(({ uid, why, count }) => [uid, why, count])).toEqual([
        [4000, "not_named", 1],
        [4001, "not_named", 1],
        [4000, "not_named", 4],
      ]);
    });
  });

  it("that is being counted when the broker stops is written before it goes", async () => {
    await withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      for (let i = 0; i < 3; i += 1) await ask(rig, agent, "nothing");
      await rig.broker.drain(1000);
      expect(ofKind(rig, "repeated")).toMatchObject([{ count: 2 }]);
      expect(rig.events("audit.checkpoint").at(-1)?.fields).toMatchObject({
        seq: rig.store.audit.head().seq.toString(),
      });
    });
  });
});

describe("the log hears where the audit stands", () => {
  it("at start, every hour in which something happened, and never without cause", async () => {
    await withRig(BASIC, async (rig) => {
      expect(rig.events("audit.checkpoint")).toHaveLength(1);
      await rig.pass(10 * 3_600_000);
      expect(rig.events("audit.checkpoint")).toHaveLength(1);
      expect(rig.clock.timers).toBe(0);
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      files.serve = (request) => request.result("x");
      await ask(rig, agent, "read");
      await rig.pass(3_600_000);
      const { seq, hash } = rig.store.audit.head();
      expect(rig.events("audit.checkpoint").at(-1)?.fields).toEqual({ seq: seq.toString(), hash });
      expect(rig.events("audit.checkpoint")).toHaveLength(2);
      await rig.pass(10 * 3_600_000);
      expect(rig.events("audit.checkpoint")).toHaveLength(2);
    });
  });

  it("on demand, and the operator hears the same", async () => {
    await withRig(BASIC, async (rig) => {
      const operator = rig.peer("operator");
      const { json } = await ask(rig, operator, "callgate.audit.checkpoint");
      expect(rig.events("audit.checkpoint").at(-1)?.fields).toEqual({ seq: json["seq"], hash: json["hash"] });
      const checkpoint = `${String(json["seq"])}:${String(json["hash"])}`;
      expect((await ask(rig, operator, "callgate.audit.verify", { checkpoint })).json).toMatchObject({
        ok: true,
      });
      const forged = `${String(json["seq"])}:${"0".repeat(64)}`;
      expect((await ask(rig, operator, "callgate.audit.verify", { checkpoint: forged })).json).toMatchObject({
        ok: false,
        finding: { kind: "checkpoint_differs", seq: json["seq"] },
      });
      const later = `99999:${"0".repeat(64)}`;
      expect((await ask(rig, operator, "callgate.audit.verify", { checkpoint: later })).json).toMatchObject({
        ok: false,
        finding: { kind: "cut_tail" },
      });
    });
  });
});

const LABELLED = `${ROLES}[roles.other]
users = ["agent"]
${TOOLS}
${allow("agent-uses", "agent", '["floor", "read", "callgate.audit.*"]')}
${allow("other-uses", "other", '["free"]')}
${allow("operator-operates", "operator", '["callgate.*"]')}
`;

describe("callgate.audit.export", () => {
  it("gives every record in pages, and its lines can be verified by anybody", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, operator, files] = [rig.peer("agent"), rig.peer("operator"), rig.peer("files")];
      files.serve = (request) => request.result("x");
      for (let i = 0; i < 20; i += 1) await ask(rig, agent, "read", { path: String(i) });
      const head = rig.store.audit.head();
      const lines: string[] = [];
      for (let from: unknown = 0; from !== null; ) {
        const { json } = await ask(rig, operator, "callgate.audit.export", { from_seq: from, limit: 7 });
        const page = json["lines"] as readonly string[];
        expect(page.length).toBeLessThanOrEqual(7);
        lines.push(...page);
        from = json["next_seq"];
      }
      const verifier = new AuditVerifier({ begins: undefined, checkpoint: head });
      for (const [index, line] of lines.entries()) verifier.add(readExportLine(BigInt(index + 1), line));
      expect(verifier.end(undefined)).toMatchObject({ finding: undefined, records: lines.length });
      expect(BigInt(lines.length)).toBeGreaterThanOrEqual(head.seq);
    });
  });

  it("filters by role, session, tool, decision and time", async () => {
    await withRig(BASIC, async (rig) => {
      const [agent, operator, files] = [rig.peer("agent"), rig.peer("operator"), rig.peer("files")];
      files.serve = (request) => request.result("x");
      await ask(rig, agent, "read");
      await rig.pass(1000);
      const sinceMs = rig.clock.nowMs();
      agent.ask("search", {}, { session: "second" });
      agent.ask("nothing", {}, { session: "second" });
      await rig.settle();
      const found = async (filter: object) => {
        const { json } = await ask(rig, operator, "callgate.audit.export", filter);
        return (json["lines"] as readonly string[]).map(
          (line) => (JSON.parse(line) as { record: AuditRecord }).record,
        );
      };
      const tools = async (filter: object) => [...new Set((await found(filter)).map(({ tool }) => tool))];
      expect(await tools({ session: "second" })).toEqual(["search", "nothing"]);
      expect(await tools({ tool: "read" })).toEqual(["read"]);
      expect((await found({ decision: "deny" })).map(({ kind }) => kind)).toEqual(["decision"]);
      expect(await tools({ since_ms: sinceMs, role: "agent" })).toEqual(["search", "nothing"]);
      expect(await tools({ until_ms: sinceMs, role: "agent" })).toEqual(["read"]);
      expect(await found({ role: "nobody" })).toEqual([]);
    });
  });

  it("carries the taint of the roles that it names, so that a name can't carry an instruction in clean", async () => {
    await withRig(LABELLED, async (rig) => {
      const [agent, other, operator, files] = [
        rig.peer("agent"),
        rig.peer("other"),
        rig.peer("operator"),
        rig.peer("files"),
      ];
      files.serve = (request) => request.result("x", { class: "internal", untrusted: true });
      await ask(rig, agent, "floor");
      expect((await ask(rig, other, "nothing")).end).toBe("denied no_grant");
      const of = async (role: string) => (await ask(rig, operator, "callgate.audit.export", { role })).end;
      expect(await of("other")).toMatch(/^result public \{/);
      expect(await of("agent")).toMatch(/^result internal untrusted \{/);
    });
  });

  it("is for operators alone, as are verify and checkpoint", async () => {
    await withRig(LABELLED, async (rig) => {
      const agent = rig.peer("agent");
      for (const tool of ["export", "verify", "checkpoint"])
        expect((await ask(rig, agent, `callgate.audit.${tool}`)).end).toBe("failed bad_arguments");
    });
  });

  it("of a number that no record has, or of bad filters, is a clear answer", async () => {
    await withRig(BASIC, async (rig) => {
      const operator = rig.peer("operator");
      const far = await ask(rig, operator, "callgate.audit.export", { from_seq: "18446744073709551615" });
      expect(far.json).toEqual({ lines: [], next_seq: null });
      for (const bad of [{ limit: 0 }, { limit: 1001 }, { since_ms: -1 }, { decision: "maybe" }])
        expect((await ask(rig, operator, "callgate.audit.export", bad)).end).toBe("failed bad_arguments");
      for (const checkpoint of ["", "1", "1:00", `x:${"0".repeat(64)}`, `01:${"0".repeat(64)}`])
        expect((await ask(rig, operator, "callgate.audit.verify", { checkpoint })).end).toBe(
          "failed bad_arguments",
        );
    });
  });
});

describe("audit.export backward", () => {
  async function exported(
    rig: Rig,
    args: object,
  ): Promise<{ lines: readonly AuditRecord[]; next: string | null }> {
    const reply = await ask(rig, rig.peer("operator"), "callgate.audit.export", args);
    const { lines, next_seq: next } = reply.json as unknown as { lines: string[]; next_seq: string | null };
    return { lines: lines.map((line) => (JSON.parse(line) as { record: AuditRecord }).record), next };
  }

  const seqs = (lines: readonly AuditRecord[]) => lines.map((record) => Number(record["seq"]));

  it("tells the newest first, page by page to the first, each once, while more is written", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      for (let n = 0; n < 20; n += 1) await ask(rig, agent, `none-${n}`);
      const last = Number(rig.store.audit.head().seq);
      const first = await exported(rig, { backward: true, limit: 3 });
      const got = [...first.lines];
      for (let { next } = first; next !== null; ) {
        await ask(rig, agent, "none-more", {}, BigInt(next));
        const page = await exported(rig, { backward: true, limit: 3, before_seq: next });
        got.push(...page.lines);
        next = page.next;
      }
      const top = seqs(got)[0] ?? 0;
      expect(top).toBeGreaterThanOrEqual(last);
      expect(seqs(got)).toEqual(Array.from({ length: top }, (_, n) => top - n));
    }));

  it("has a session's decisions, questions, rises and endorsements, and its whole role's", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      files.serve = (served) => served.result("x", { class: "internal", untrusted: true });
      await ask(rig, agent, "read", { path: "/a" }, 7n);
      agent.ask("pay", PAYMENT, { call: 8n });
      agent.ask("read", { path: "/b" }, { call: 9n, session: "t" });
      await rig.settle();
      const { json } = await ask(rig, operator, "callgate.sessions.show", { role: "agent", session: "s" });
      const version = (json["role_taint"] as { version: number }).version;
      const lowered = await ask(rig, operator, "callgate.sessions.endorse", {
        role: "agent",
        session: "s",
        version,
        class: "public",
        untrusted: false,
        reason: "looked at",
      });
      expect(lowered.end).toContain("result");
      await ask(rig, operator, "callgate.freeze", { role: "agent" });
      const { lines } = await exported(rig, { backward: true, role: "agent", session: "s" });
      const kinds = lines.map(({ kind }) => kind);
      expect(kinds).toEqual(
        expect.arrayContaining(["dispatch", "outcome", "taint", "approval", "endorsed", "frozen"]),
      );
      expect(lines.every(({ session }) => session === undefined || session === "s")).toBe(true);
      const ofCall = await exported(rig, { role: "agent", session: "s", call: "7" });
      expect(ofCall.lines.map(({ kind }) => kind)).toEqual(
        expect.arrayContaining(["dispatch", "taint", "outcome"]),
      );
      expect(
        ofCall.lines.map((record) => record["call"] ?? (record["raised_by"] as { call: string }).call),
      ).toEqual(ofCall.lines.map(() => "7"));
    }));

  it("stops at the time that was asked for", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files").serve = (served) => served.result("x", {});
      for (let n = 0; n < 10; n += 1) {
        await ask(rig, agent, "free", {}, BigInt(n));
        await rig.pass(1000);
      }
      const nowMs = rig.clock.nowMs();
      const args = { backward: true, since_ms: nowMs - 5500, until_ms: nowMs - 1500, tool: "free" };
      const { lines, next } = await exported(rig, args);
      expect(next).toBe(null);
      const dispatched = lines.filter(({ kind }) => kind === "dispatch");
      expect(dispatched.map((record) => record["call"])).toEqual(["8", "7", "6", "5"]);
    }));

  it.each([
    [{ backward: true, from_seq: "1" }, "`from_seq` does not go with `backward` true"],
    [{ before_seq: "1" }, "`before_seq` does not go with `backward` false"],
    [{ backward: true, before_seq: "x" }, "`before_seq` is no record's number"],
    [{ call: "-1" }, "`call` is no call id"],
  ])("takes %j as a mistake", (args, sentence) =>
    withRig(BASIC, async (rig) => {
      const reply = await ask(rig, rig.peer("operator"), "callgate.audit.export", args);
      expect(reply.sentence).toBe(`bad_arguments: ${sentence}. Nothing ran.`);
    }),
  );
});
