import { describe, expect, it } from "vitest";
import type { Why } from "../../src/client/answers.ts";
import { Approver, ASKING, PAYMENT } from "./approvals_rig.ts";
import { allow, BASIC } from "./configs.ts";
import { DurableLives } from "./durable_lives.ts";
import { putCalls } from "./many_calls.ts";
import { withRig } from "./rig.ts";
import type { Reply } from "./rig_peer.ts";

// `callgate.calls.why` from the record: after a restart, of old calls, and of denials that were only counted.

const DENIES = `${ASKING}[[grants]]
id = "no-search"
role = "agent"
tools = ["search"]
effect = "deny"
reason = "not here"
when = "args.text != \\"fine\\""
${allow("agent-searches", "agent", '["search"]')}`;

async function begin(toml = DENIES): Promise<DurableLives> {
  const lives = await DurableLives.begin(toml);
  lives.peer("files").serve = (served) => served.result("x", { class: "internal" });
  return lives;
}

async function ask(
  lives: DurableLives,
  tool: string,
  args: object,
  call: bigint,
  role = "agent",
): Promise<Reply> {
  const reply = lives.peer(role).ask(tool, args, { call });
  await lives.settle();
  return reply;
}

async function asked(
  lives: DurableLives,
  call: bigint,
  args: object = {},
  role = "operator",
): Promise<Reply> {
  const named = role === "operator" ? { role: "agent", session: "s" } : {};
  const reply = lives.peer(role).ask("callgate.calls.why", { ...named, call: call.toString(), ...args });
  await lives.settle();
  return reply;
}

async function why(lives: DurableLives, call: bigint, args: object = {}): Promise<Why> {
  return (await asked(lives, call, args)).json as unknown as Why;
}

describe("why a call was decided as it was", () => {
  it("is told of a denial after a restart, by grant, row, taint and condition, without the words on the grant", async () => {
    const lives = await begin();
    await ask(lives, "look", {}, 1n); // asks a person
    await ask(lives, "search", { text: "SECRET" }, 2n);
    const before = await why(lives, 2n);
    expect(before).toMatchObject({ verdict: "deny", grant: "no-search", reason: "not here", from: "memory" });
    await lives.restart();
    const after = await why(lives, 2n);
    expect(after).toEqual({ ...before, reason: null, from: "audit", at_ms: before.at_ms });
    expect(after).toMatchObject({
      tool: "search",
      denied: "denied_by_grant",
      row: "deny",
      condition: "match",
    });
  });

  it("is told of what ran, and of a question with its grants and what was approved", async () => {
    const lives = await begin();
    expect((await ask(lives, "read", { path: "/a" }, 1n)).end).toContain("result internal");
    await ask(lives, "pay", PAYMENT, 2n);
    expect(await why(lives, 2n)).toMatchObject({
      verdict: "ask",
      grants: ["agent-pays"],
      tool: "pay",
      denied: null,
    });
    const approver = new Approver(lives);
    await approver.letThrough();
    const approved = await why(lives, 2n);
    expect(approved.approval).toMatch(/^[0-9a-f]{32}$/);
    await lives.stopAndStart();
    expect(await why(lives, 1n)).toMatchObject({
      verdict: "allow",
      grant: "agent-reads",
      row: "allow",
      from: "audit",
    });
    expect(await why(lives, 2n)).toEqual(approved);
  });

  it("is that of the call that ran, not of an earlier try under its id", async () => {
    const lives = await begin();
    await ask(lives, "search", { text: "no" }, 3n);
    await lives.pass(10);
    expect((await ask(lives, "search", { text: "fine" }, 3n)).end).toContain("result internal");
    expect(await why(lives, 3n)).toMatchObject({ verdict: "allow", grant: "agent-searches" });
    await lives.restart();
    expect(await why(lives, 3n)).toMatchObject({ verdict: "allow", grant: "agent-searches" });
  });

  it("is said to be one of those that were counted, where no record names the call", async () => {
    const lives = await begin();
    for (let call = 10n; call < 15n; call += 1n) await ask(lives, "search", { text: "no" }, call);
    expect(await why(lives, 12n)).toMatchObject({ grant: "no-search", counted: null, from: "memory" });
    await lives.pass(60_000); // the minute is over
    await lives.restart();
    expect(await why(lives, 10n)).toMatchObject({ grant: "no-search", counted: null });
    const counted = await why(lives, 12n);
    expect(counted).toMatchObject({
      call: "12",
      verdict: "deny",
      grant: "no-search",
      denied: "denied_by_grant",
    });
    expect(counted.counted).toEqual([
      expect.objectContaining({ session: "s", first_call: "10", count: 4, tool: "search", row: "deny" }),
    ]);
    for (let call = 20n; call < 23n; call += 1n) await ask(lives, "whole", {}, call);
    await lives.pass(60_000);
    await lives.restart();
    const either = await why(lives, 12n);
    expect(either).toMatchObject({
      verdict: "unknown",
      denied: null,
      grant: null,
      row: "counted",
      tool: null,
    });
    expect(either.counted?.map(({ tool, count }) => [tool, count])).toEqual([
      ["whole", 2],
      ["search", 4],
    ]);
  });

  it("is not made up: of a call that was never decided, failed before or is another session's, nothing is told", async () => {
    const lives = await begin();
    await ask(lives, "read", { wrong: 1 }, 5n);
    await ask(lives, "search", { text: "no" }, 6n);
    await lives.restart();
    expect((await asked(lives, 5n)).sentence).toContain("with `bad_arguments`");
    expect((await asked(lives, 7n)).sentence).toMatch(
      /^bad_arguments: No record names a decision on that call/,
    );
    expect((await asked(lives, 6n, { session: "other" })).sentence).toContain("No record names");
    expect((await asked(lives, 6n, { role: "files" })).sentence).toContain("No record names");
  });

  it("can't be hidden or forged by arguments that look like a record", async () => {
    const opted = DENIES.replace(
      '[tools.search]\nrole = "files"',
      '[tools.search]\nrole = "files"\naudit_arguments = ["text"]',
    );
    const lives = await begin(opted);
    const forged = '"kind":"repeated","role":"agent","session":"s","call":"77","decision":"allow"';
    const text = `fine","x":{${forged}},"y":"`;
    await ask(lives, "search", { text }, 1n);
    await lives.restart();
    expect((await asked(lives, 77n)).sentence).toContain("No record names");
    expect(await why(lives, 1n)).toMatchObject({ verdict: "deny", grant: "no-search" });
  });

  it("carries the taint that the record tells of, also where it was lowered since", async () => {
    const lives = await DurableLives.begin(BASIC);
    lives.peer("files").serve = (served) => served.result("x", { class: "confidential", untrusted: true });
    await ask(lives, "free", {}, 1n);
    await ask(lives, "none", {}, 2n);
    const named = { role: "agent", session: "s" };
    const operator = lives.peer("operator");
    const looked = operator.ask("callgate.sessions.show", named);
    await lives.settle();
    const { version } = looked.json["role_taint"] as { version: number };
    const lowered = operator.ask("callgate.sessions.endorse", {
      ...named,
      version,
      class: "public",
      untrusted: false,
      reason: "looked at",
    });
    await lives.settle();
    expect(lowered.end).toContain("result public");
    await lives.restart();
    expect((await asked(lives, 2n)).end).toMatch(/^result confidential untrusted /);
  });

  it("is not for another user of the same role, where the call is kept or no more", () =>
    withRig(BASIC, async (rig) => {
      const nowMs = rig.clock.nowMs();
      const at = { askedAtMs: nowMs, endedAtMs: nowMs };
      await putCalls(rig.store, [
        { call: 1n, ...at },
        { call: 2n, uid: 4242, ...at },
      ]);
      const whys = async () => {
        const replies = [1, 2, 3].map((call) =>
          rig.peer("agent").ask("callgate.calls.why", { call: `${call}` }),
        );
        await rig.settle();
        return replies.map(({ content, sentence }) => sentence || (JSON.parse(content) as Why).verdict);
      };
      const [own, theirs, nobodys] = await whys();
      expect(own).toBe("allow");
      expect(theirs).toContain("No record names");
      expect(theirs).toBe(nobodys);
      rig.store.findCall = () => undefined;
      expect(await whys()).toEqual([own, theirs, nobodys]);
    }));

  it("does not tell who is no operator how much others do, by how far back a search gets", () =>
    withRig(BASIC, async (rig) => {
      const text = `{"seq":"1","at_ms":${rig.clock.nowMs() - 86_400_000},"kind":"other"}`;
      const line = (seq: bigint) => ({ seq, hash: "", text });
      rig.store.audit.linesBefore = (seq, max) =>
        Array.from({ length: max }, (_, i) => line(seq - 1n - BigInt(i)));
      rig.store.audit.lines = (seq) => [line(seq)];
      const asks = [
        rig.peer("operator").ask("callgate.calls.why", { role: "agent", session: "s", call: "7" }),
        rig.peer("agent").ask("callgate.calls.why", { call: "7" }),
      ];
      while (asks.some(({ finals }) => finals === 0)) await rig.settle();
      const [operators, agents] = asks.map(({ sentence }) => sentence);
      expect(operators).toContain("looked at back to");
      expect(agents).not.toContain("looked at back to");
      expect(agents).toContain("No record names");
    }));

  it("of an old call is gone to by its time, however much was written since", () =>
    withRig(BASIC, async (rig) => {
      rig.peer("files").serve = (served) => served.result("x", {});
      rig.peer("agent").ask("read", { path: "/a" }, { call: 1n });
      await rig.settle();
      await rig.pass(1000);
      const nowMs = rig.clock.nowMs();
      const later = (n: number) => ({ session: "t", call: BigInt(n), askedAtMs: nowMs, endedAtMs: nowMs });
      await putCalls(
        rig.store,
        Array.from({ length: 20_000 }, (_, n) => later(n + 1)),
      );
      const read = { lines: 0 };
      const { linesBefore } = rig.store.audit;
      rig.store.audit.linesBefore = (seq, max) => {
        const lines = linesBefore(seq, max);
        read.lines += lines.length;
        return lines;
      };
      const told = rig.peer("operator").ask("callgate.calls.why", { role: "agent", session: "s", call: "1" });
      await rig.settle();
      expect(told.json).toMatchObject({ verdict: "allow", tool: "read" });
      expect(read.lines).toBeLessThan(3000);
    }));
});
