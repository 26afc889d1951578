// How often a grant serves: exactly so often, however many ask at once, whatever the store refuses, and over
// restarts and reloads.

import { beforeAll, describe, expect, it } from "vitest";
import { CLEAN } from "../../src/base/labels.ts";
import { loadConditionCompiler } from "../../src/policy/conditions.ts";
import type { StoredGrant } from "../../src/store/records.ts";
import { allow, BASIC } from "./configs.ts";
import { ask, DENY, GIVING, given, READ, runtimeGrants, serving } from "./grants_rig.ts";
import { Lives } from "./lives.ts";
import { withRig } from "./rig.ts";
import type { Reply } from "./rig_peer.ts";

beforeAll(loadConditionCompiler); // from disk, which is no matter of turns of the event loop

/** `other` may read three times in each minute, by the config. */
const THRICE = `${GIVING}${allow("thrice", "other", '["read"]', 'max_calls = 3\nmax_calls_per = "1m"')}
${allow("looks", "other", '["callgate.grants.*"]')}`;

/** Of both roles. */
const AGENT_USER = { uid: 1001 };

function ends(replies: readonly Reply[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { end } of replies) counts[end] = (counts[end] ?? 0) + 1;
  return counts;
}

const DONE = "result public done";
const USED_UP = "denied grant_expired";

describe("of calls at the same time", () => {
  it("exactly as many run as a grant of the config says, while nothing of them is written yet", () =>
    withRig(THRICE, async (rig) => {
      const { ran } = serving(rig);
      const peers = [rig.peer("other"), rig.peer("other")];
      rig.store.mode = "held";
      const replies = Array.from({ length: 8 }, (_, i) => peers[i % 2]!.ask("read", { path: `/${i}` }));
      await rig.releaseAll();
      expect(ends(replies)).toEqual({ [DONE]: 3, [USED_UP]: 5 });
      expect(ran).toHaveLength(3);
    }));

  it("exactly as many run as a runtime grant says, and the last one is not denied by its own use", () =>
    withRig(GIVING, async (rig) => {
      const { ran } = serving(rig);
      const [agent, frontend, operator] = [rig.peer("agent"), rig.peer("frontend"), rig.peer("operator")];
      await given(rig, frontend, { ...READ, max_calls: 4 });
      rig.store.mode = "held";
      const replies = Array.from({ length: 9 }, (_, i) => agent.ask("read", { path: `/${i}` }));
      // What is in force changes while the intents are being written, so that all is decided once more.
      const changing = operator.ask("callgate.grants.add", { ...DENY, tools: ["write"] });
      await rig.settle();
      await rig.releaseAll();
      await rig.reloadWith(`${GIVING}\n`);
      expect(changing.end).toContain("result");
      expect(ends(replies)).toEqual({ [DONE]: 4, [USED_UP]: 5 });
      expect(ran).toHaveLength(4);
    }));

  it("a policy that changes between decision and intent gives no call a use twice", () =>
    withRig(THRICE, async (rig) => {
      const { ran } = serving(rig);
      const other = rig.peer("other");
      rig.store.mode = "held";
      const replies = Array.from({ length: 5 }, (_, i) => other.ask("read", { path: `/${i}` }));
      await rig.settle();
      await rig.reloadWith(`${THRICE}\n`);
      await rig.releaseAll();
      expect(ends(replies)).toEqual({ [DONE]: 3, [USED_UP]: 2 });
      expect(ran).toHaveLength(3);
    }));
});

describe("a use is given back", () => {
  it("where its intent can't be written, and only then", () =>
    withRig(THRICE, async (rig) => {
      const { ran } = serving(rig);
      const other = rig.peer("other");
      rig.store.mode = "held";
      const replies = Array.from({ length: 3 }, (_, i) => other.ask("read", { path: `/${i}` }));
      await rig.settle();
      rig.store.refuse(2);
      await rig.releaseAll();
      expect(ends(replies)).toEqual({ [DONE]: 1, "failed unavailable": 2 });
      rig.store.mode = "at_once";
      const more = Array.from({ length: 4 }, (_, i) => other.ask("read", { path: `/${i}` }));
      await rig.settle();
      expect(ends(more)).toEqual({ [DONE]: 2, [USED_UP]: 2 });
      expect(ran).toHaveLength(3);
    }));

  it("where the provider has gone before anything ran", () =>
    withRig(THRICE, async (rig) => {
      const files = rig.peer("files");
      const other = rig.peer("other");
      rig.store.mode = "held";
      const replies = Array.from({ length: 3 }, (_, i) => other.ask("read", { path: `/${i}` }));
      await rig.settle();
      files.reset();
      await rig.settle();
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(ends(replies)).toEqual({ "failed no_provider": 3 });
      const { ran } = serving(rig);
      const more = Array.from({ length: 4 }, (_, i) => other.ask("read", { path: `/${i}` }));
      await rig.settle();
      expect(ends(more)).toEqual({ [DONE]: 3, [USED_UP]: 1 });
      expect(ran).toHaveLength(3);
    }));

  it("not where the provider failed, was lost or timed out: it may have run", () =>
    withRig(THRICE, async (rig) => {
      const files = rig.peer("files");
      const other = rig.peer("other");
      const replies = Array.from({ length: 3 }, (_, i) => other.ask("read", { path: `/${i}` }));
      await rig.settle();
      files.error(files.take().id, "internal");
      await rig.pass(10_000); // the tool's timeout
      expect(ends(replies)).toEqual({ "failed provider": 1, "failed timeout": 2 });
      expect((await ask(rig, other, "read", { path: "/x" })).end).toBe(USED_UP);
    }));

  it("not by a call that is joined, replayed or in conflict: these use none either", () =>
    withRig(THRICE, async (rig) => {
      serving(rig);
      const other = rig.peer("other");
      const asked = (path: string) => other.ask("read", { path }, { call: 7n });
      const replies = [asked("/a"), asked("/a")];
      await rig.settle();
      replies.push(asked("/a"), asked("/b"));
      await rig.settle();
      expect(ends(replies)).toEqual({ [DONE]: 3, "failed conflict": 1 });
      const listed = await ask(rig, other, "callgate.grants.list");
      const grants = listed.json["grants"] as { id: string; max_calls: { used: number } }[];
      expect(grants.find(({ id }) => id === "thrice")?.max_calls.used).toBe(1);
    }));
});

describe("the period of a number of calls", () => {
  it("begins with the first use, and its end opens the next one to the millisecond", () =>
    withRig(THRICE, async (rig) => {
      serving(rig);
      const other = rig.peer("other");
      await rig.pass(50_000);
      const read = async () => (await ask(rig, other, "read", { path: "/a" })).end;
      expect(await read()).toBe(DONE);
      await rig.pass(30_000);
      expect([await read(), await read(), await read()]).toEqual([DONE, DONE, USED_UP]);
      await rig.pass(29_999);
      expect(await read()).toBe(USED_UP);
      await rig.pass(1);
      expect([await read(), await read(), await read(), await read()]).toEqual([DONE, DONE, DONE, USED_UP]);
    }));

  it("is over where the clock was set forward beyond it, once: no period is lent to the next", () =>
    withRig(THRICE, async (rig) => {
      const { ran } = serving(rig);
      const other = rig.peer("other");
      for (const jump of [0, 3_600_000, 31_536_000_000]) {
        await rig.pass(jump);
        const replies = Array.from({ length: 5 }, (_, i) => other.ask("read", { path: `/${i}` }));
        await rig.settle();
        expect(ends(replies)).toEqual({ [DONE]: 3, [USED_UP]: 2 });
      }
      expect(ran).toHaveLength(9);
    }));
});

describe("after a restart", () => {
  it("grants of run time are there with who made them, and all uses are counted on", async () => {
    const lives = await Lives.begin(THRICE);
    serving(lives);
    const [agent, other, frontend, operator] = [
      lives.peer("agent"),
      lives.peer("other", AGENT_USER),
      lives.peer("frontend"),
      lives.peer("operator"),
    ];
    await given(lives, frontend, { ...READ, id: "r", max_calls: 2, when: 'under(args.path, "/srv")' });
    await given(lives, operator, { ...DENY, tools: ["write"], id: "d" });
    await lives.ask(agent, "read", { path: "/srv/a" });
    for (const path of ["/a", "/b"]) await lives.ask(other, "read", { path });
    const before = await runtimeGrants(lives, operator);

    await lives.restart(THRICE);
    const { ran } = serving(lives);
    expect(await runtimeGrants(lives, lives.peer("operator"))).toEqual(before);
    const [again, others] = [lives.peer("agent"), lives.peer("other", AGENT_USER)];
    expect((await lives.ask(again, "write", { path: "/a" })).end).toBe("denied denied_by_grant");
    expect((await lives.ask(again, "read", { path: "/etc/a" })).end).toBe("denied no_grant");
    expect((await lives.ask(again, "read", { path: "/srv/b" })).end).toBe(DONE);
    expect((await lives.ask(again, "read", { path: "/srv/c" })).end).toBe(USED_UP);
    const replies = Array.from({ length: 3 }, (_, i) => others.ask("read", { path: `/${i}` }));
    await lives.settle();
    expect(ends(replies)).toEqual({ [DONE]: 1, [USED_UP]: 2 });
    expect(ran).toHaveLength(2);
  });

  it("a call that was killed while it ran has used its grant, one that was never written has not", async () => {
    const lives = await Lives.begin(THRICE);
    lives.peer("files"); // takes everything and answers nothing
    const other = lives.peer("other", AGENT_USER);
    await lives.ask(other, "read", { path: "/ran" });
    lives.store.mode = "held";
    await lives.ask(other, "read", { path: "/unwritten" });
    await lives.restart(THRICE);
    serving(lives);
    const peer = lives.peer("other", AGENT_USER);
    const replies = Array.from({ length: 3 }, (_, i) => peer.ask("read", { path: `/${i}` }));
    await lives.settle();
    expect(ends(replies)).toEqual({ [DONE]: 2, [USED_UP]: 1 });
  });

  it("a revoked grant is gone, and one that was never written never was", async () => {
    const lives = await Lives.begin(GIVING);
    const [frontend, operator] = [lives.peer("frontend"), lives.peer("operator")];
    const id = await given(lives, frontend, READ);
    await lives.ask(operator, "callgate.grants.revoke", { grant: id });
    lives.store.mode = "held";
    await lives.ask(frontend, "callgate.grants.add", READ);
    await lives.restart(GIVING);
    expect(await runtimeGrants(lives, lives.peer("operator"))).toEqual([]);
    expect((await lives.ask(lives.peer("agent"), "read", { path: "/a" })).end).toBe("denied no_grant");
  });

  it("a grant whose end came meanwhile opens nothing", async () => {
    const lives = await Lives.begin(GIVING);
    await given(lives, lives.peer("frontend"), { ...READ, expires_in_seconds: 1 });
    await lives.restart(GIVING); // a second later
    serving(lives);
    expect((await lives.ask(lives.peer("agent"), "read", { path: "/a" })).end).toBe(USED_UP);
  });

  it("a condition that no longer compiles drops an allow, and keeps what asks or denies for every call", async () => {
    const lives = await Lives.begin(BASIC);
    const stored = (id: string, role: string, tool: string, effect: StoredGrant["effect"]): StoredGrant => ({
      ...{ id, role, tools: [tool], sessions: [], effect, when: "of_a_later_version(args)" },
      ...{ taintMax: { class: "restricted", untrusted: true }, aboveTaint: "deny", expiresAtMs: undefined },
      ...{ maxCalls: undefined, remembers: undefined, equal: undefined, reason: "r" },
      ...{ by: { role: "operator", uid: 1 }, labels: CLEAN, addedAtMs: 0, approval: undefined },
    });
    const changes = [
      stored("runtime.allow", "operator", "read", "allow"),
      stored("runtime.deny", "agent", "write", "deny"),
    ].map((grant) => ({ kind: "grant_added", grant }) as const);
    await new Promise((done) => lives.kept.commit(changes, done));
    await lives.restart(BASIC);
    const { ran } = serving(lives);
    expect((await lives.ask(lives.peer("operator"), "read", { path: "/a" })).end).toBe("denied no_grant");
    expect((await lives.ask(lives.peer("agent"), "write", { path: "/a" })).end).toBe(
      "denied denied_by_grant",
    );
    expect(ran).toEqual([]);
    expect(lives.log.filter(({ event }) => event === "grant.dropped").map(({ fields }) => fields)).toEqual([
      { role: "operator", grant: "runtime.allow", effect: "allow", kept: false },
      { role: "agent", grant: "runtime.deny", effect: "deny", kept: true },
    ]);
  });
});

it("an ask that was given and has ended goes on denying, so that its end opens nothing beside it", () =>
  withRig(BASIC.replace("[tools.read]", GIVES), async (rig) => {
    const { ran } = serving(rig);
    const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
    await given(rig, operator, { ...READ, effect: "ask", expires_in_seconds: 60 });
    await rig.pass(60_000);
    await given(rig, operator, { ...READ, tools: ["write"] }); // writes off what has ended
    expect((await ask(rig, agent, "read", { path: "/a" })).end).toBe(USED_UP);
    expect(ran).toEqual([]);
  }));

const GIVES = `[[gives]]
role = "operator"
to = ["agent"]
tools = ["*"]
taint_max = "restricted"
taint_untrusted = true
longest = "1d"
effects = ["allow", "ask"]
[tools.read]`;

it("allows that have ended are written off when somebody adds or revokes, each once", () =>
  withRig(GIVING, async (rig) => {
    serving(rig);
    const [agent, frontend, operator] = [rig.peer("agent"), rig.peer("frontend"), rig.peer("operator")];
    await given(rig, frontend, { ...READ, id: "short", expires_in_seconds: 1 });
    await given(rig, frontend, { ...READ, id: "once", max_calls: 1, expires_in_seconds: 60 });
    await rig.pass(1000);
    await ask(rig, agent, "read", { path: "/a" });
    expect((await runtimeGrants(rig, operator)).map(({ id }) => id)).toEqual([
      "runtime.short",
      "runtime.once",
    ]);
    const id = await given(rig, frontend, READ);
    await ask(rig, operator, "callgate.grants.revoke", { grant: id });
    expect(
      rig.events("grant.gone").map(({ fields }) => [fields["grant"], fields["why"], fields["by"]]),
    ).toEqual([
      ["runtime.short", "expired", "[host]"],
      ["runtime.once", "used_up", "[host]"],
      [id, "revoked", "operator"],
    ]);
    expect(await runtimeGrants(rig, operator)).toEqual([]);
    const gone = rig.store.written.filter(({ kind }) => kind === "grant_gone");
    expect(gone).toHaveLength(3);
  }));
