// Grants that come and go at run time: who may give what, and when it holds.

import { beforeAll, describe, expect, it } from "vitest";
import { loadConditionCompiler } from "../../src/policy/conditions.ts";
import { BASIC } from "./configs.ts";
import { add, ask, DENY, GIVING, given, READ, revoke, runtimeGrants, serving } from "./grants_rig.ts";
import { withRig } from "./rig.ts";

/** Of the role `second` too. */
const FRONTEND_USER = { uid: 1005 };

beforeAll(loadConditionCompiler); // from disk, which is no matter of turns of the event loop

describe("adding a grant", () => {
  it("within what the config lets its adder give, holds from the very next call on until it ends", () =>
    withRig(GIVING, async (rig) => {
      const { ran } = serving(rig);
      const [agent, frontend] = [rig.peer("agent"), rig.peer("frontend")];
      expect((await ask(rig, agent, "read", { path: "/a" })).end).toBe("denied no_grant");
      const reply = await add(rig, frontend, { ...READ, id: "for-alice" });
      expect(reply.json).toEqual({
        grant: "runtime.for-alice",
        expires_at_ms: rig.clock.nowMs() + 3_600_000,
      });
      expect((await ask(rig, agent, "read", { path: "/a" })).end).toBe("result public done");
      await rig.pass(3_599_999);
      expect((await ask(rig, agent, "read", { path: "/b" })).end).toBe("result public done");
      await rig.pass(1);
      expect((await ask(rig, agent, "read", { path: "/c" })).end).toBe("denied grant_expired");
      expect(ran).toHaveLength(2);
      expect(rig.events("grant.added")).toMatchObject([
        { fields: { role: "agent", grant: "runtime.for-alice", by: "frontend", effect: "allow" } },
      ]);
    }));

  it("with a condition, a session or a taint holds within these alone", () =>
    withRig(GIVING, async (rig) => {
      serving(rig);
      const [agent, mail, frontend, operator] = [
        rig.peer("agent"),
        rig.peer("mail"),
        rig.peer("frontend"),
        rig.peer("operator"),
      ];
      const conditional = await add(rig, frontend, { ...READ, when: 'under(args.path, "/srv")' });
      expect(conditional.end).toContain("result");
      expect((await ask(rig, agent, "read", { path: "/srv/x" })).end).toBe("result public done");
      expect((await ask(rig, agent, "read", { path: "/etc/x" })).end).toBe("denied no_grant");
      for (const session of ["one", "two"]) {
        const args = { role: "mail", session, expires_in_seconds: 60 };
        expect((await ask(rig, frontend, "callgate.sessions.open", args)).end).toContain("result");
      }
      await given(rig, frontend, { ...READ, role: "mail", sessions: ["one"] });
      const replies = ["one", "two"].map((session) => mail.ask("read", { path: "/x" }, { session }));
      await rig.settle();
      expect(replies.map(({ end }) => end)).toEqual(["result public done", "denied no_grant"]);
      await given(rig, operator, { ...READ, tools: ["floor"], taint_untrusted: true });
      await ask(rig, agent, "floor"); // internal and untrusted from here on
      expect((await ask(rig, agent, "read", { path: "/srv/x" })).end).toBe("denied taint_too_high");
    }));

  it("shows who made it, what is left of it, and what its question would be", () =>
    withRig(GIVING, async (rig) => {
      serving(rig);
      const [agent, frontend, operator] = [rig.peer("agent"), rig.peer("frontend"), rig.peer("operator")];
      await given(rig, frontend, { ...READ, id: "r", max_calls: 2, max_calls_per_seconds: 60 });
      await ask(rig, agent, "read", { path: "/a" });
      const [shown, ...more] = await runtimeGrants(rig, operator);
      expect(more).toEqual([]);
      expect(shown).toEqual({
        ...{ id: "runtime.r", role: "agent", effect: "allow", tools: ["read"], sessions: ["*"], when: null },
        ...{ taint_max: "internal", taint_untrusted: false, above_taint: "deny", expired: false },
        expires_at_ms: rig.clock.nowMs() + 3_600_000,
        max_calls: { calls: 2, per_ms: 60_000, used: 1, since_ms: rig.clock.nowMs() },
        ...{ approval_ttl_ms: null, remember: null, refuse_for_ms: null, remembers: null },
        ...{ exact_arguments: false, reason: READ.reason, runtime: true, approval: null },
        by: { role: "frontend", uid: 1005 },
        added_at_ms: rig.clock.nowMs(),
      });
      expect(await runtimeGrants(rig, agent)).toHaveLength(1);
      expect(await runtimeGrants(rig, frontend)).toEqual([]);
    }));

  it("is explained: spent, and as one of run time", () =>
    withRig(GIVING, async (rig) => {
      serving(rig);
      const [agent, frontend] = [rig.peer("agent"), rig.peer("frontend")];
      await given(rig, frontend, { ...READ, id: "r", max_calls: 1 });
      await ask(rig, agent, "read", { path: "/a" });
      const explained = await ask(rig, agent, "callgate.grants.explain", { tool: "read" });
      expect(explained.json).toMatchObject({ verdict: "deny", row: "allow_expired", grant: "runtime.r" });
      const steps = explained.json["grants"] as { grant: string }[];
      expect(steps.find(({ grant }) => grant === "runtime.r")).toMatchObject({
        ...{ runtime: true, matches: true, spent: true, expired: false },
      });
    }));

  it.each<[string, object, string]>([
    ["a role that it may not give to", { role: "files" }, "to a role of that name"],
    ["a role that there is not", { role: "nobody" }, "to a role of that name"],
    ["its own role", { role: "frontend" }, "to a role of that name"],
    ["a tool outside", { tools: ["read", "search"] }, "these tools"],
    ["every tool", { tools: ["*"] }, "these tools"],
    ["a prefix of its prefix", { tools: ["f*"] }, "these tools"],
    ["a prefix of a name", { tools: ["read*"] }, "these tools"],
    ["a tool that is not in service", { tools: ["frog"] }, "no tool `frog`"],
    ["the broker's own tools", { tools: ["callgate.status"] }, "in the config only"],
    ["the broker's own tools by a prefix", { tools: ["callgate.*"] }, "in the config only"],
    ["a higher class", { taint_max: "confidential" }, "up to that taint"],
    ["untrusted sessions", { taint_untrusted: true }, "up to that taint"],
    ["no class", { taint_max: undefined }, "add `taint_max` and `taint_untrusted`"],
    ["no word on untrusted", { taint_untrusted: undefined }, "add `taint_max` and `taint_untrusted`"],
    ["a question above its taint", { above_taint: "ask" }, "asks above its taint"],
    ["longer than its longest", { expires_in_seconds: 3601 }, "lasts so long"],
    ["no end", { expires_in_seconds: undefined }, "add `expires_in_seconds`"],
    ["no time at all", { expires_in_seconds: 0 }, "from 1 to"],
    ["a time before now", { expires_in_seconds: -5 }, "from 1 to"],
    ["no calls at all", { max_calls: 0 }, "from 1 to"],
    ["a period without a number", { max_calls_per_seconds: 9 }, "which is missing"],
    ["no tool", { tools: [] }, "at least one tool"],
    ["what is no pattern", { tools: ["re*d"] }, "must be tool names"],
    ["sessions of a role that names its own", { sessions: ["a"] }, "leave out `sessions`"],
    ["an empty list of sessions", { sessions: [] }, "names no session"],
    ["what is no session", { role: "mail", sessions: ["a*b"] }, "must be session ids"],
    ["no reason", { reason: " " }, "must say why"],
    ["a reason as long as a book", { reason: "x".repeat(1025) }, "must say why"],
    ["an odd id", { id: "A" }, "`id` must be"],
    ["a condition that does not compile", { when: "args.path ==" }, "does not compile"],
    ["an empty condition", { when: "" }, "leave it out"],
    ["a condition on a tool without a schema", { tools: ["free"], when: "true == true" }, "`free` has none"],
    ["a condition on what may be announced", { tools: ["plug.*"], when: "true == true" }, "yet announce"],
    ["a deny of tools outside", { ...DENY, taint_max: undefined, taint_untrusted: undefined }, "these tools"],
  ])("refuses a frontend that gives %s", (_, more, why) =>
    withRig(GIVING, async (rig) => {
      const [agent, frontend, operator] = [rig.peer("agent"), rig.peer("frontend"), rig.peer("operator")];
      const { expires_in_seconds: seconds, ...rest } = READ;
      const args =
        "effect" in more ? { ...rest, ...more } : { ...rest, expires_in_seconds: seconds, ...more };
      const reply = await add(rig, frontend, args);
      expect(reply.end).toBe("failed bad_arguments");
      expect(reply.sentence).toContain(why);
      expect(reply.sentence).toContain("Nothing ran.");
      expect(await runtimeGrants(rig, operator)).toEqual([]);
      expect((await ask(rig, agent, "read", { path: "/a" })).end).toBe("denied no_grant");
    }),
  );

  it("is refused for the adder's own role or user, whoever it is and whatever it does", () =>
    withRig(GIVING, async (rig) => {
      const [operator, second, agent] = [
        rig.peer("operator"),
        rig.peer("second", FRONTEND_USER),
        rig.peer("agent"),
      ];
      for (const [peer, role] of [
        [operator, "operator"],
        [second, "second"],
        [second, "frontend"], // the same user
        [agent, "agent"],
        [agent, "other"],
      ] as const) {
        for (const args of [
          { ...READ, role },
          { ...DENY, role },
        ]) {
          expect((await add(rig, peer, args)).end).toBe("failed bad_arguments");
        }
      }
      const self = await add(rig, second, { ...DENY, role: "frontend" });
      expect(self.sentence).toContain("their own role or user");
      const sameUser = rig.peer("operator", { uid: 1001 }); // refused at the door, or it would give to itself
      await rig.settle();
      expect(sameUser.errors).toHaveLength(1);
      expect(await runtimeGrants(rig, operator)).toEqual([]);
    }));

  it("is refused where the id is taken, also by one that is just being written", () =>
    withRig(GIVING, async (rig) => {
      const frontend = rig.peer("frontend");
      await given(rig, frontend, { ...READ, id: "one" });
      const again = await add(rig, frontend, { ...READ, id: "runtime.one" });
      expect(again.end).toBe("failed conflict");
      expect(again.sentence).toContain("ids are unique");
      rig.store.mode = "held";
      const replies = [0, 1].map(() => frontend.ask("callgate.grants.add", { ...READ, id: "two" }));
      await rig.releaseAll();
      expect(replies.map(({ end }) => end.split(" ").slice(0, 2).join(" ")).sort()).toEqual([
        "failed conflict",
        "result public",
      ]);
    }));

  it("that could not be written is not in force, and the same id can be tried again", () =>
    withRig(GIVING, async (rig) => {
      const [agent, frontend] = [rig.peer("agent"), rig.peer("frontend")];
      rig.store.mode = "held";
      const reply = frontend.ask("callgate.grants.add", { ...READ, id: "r" });
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      const early = agent.ask("read", { path: "/a" });
      await rig.settle();
      rig.store.refuse(1);
      await rig.releaseAll();
      expect(reply.end).toBe("failed outcome_unknown");
      expect(early.end).toBe("denied no_grant");
      rig.store.mode = "at_once";
      expect((await ask(rig, agent, "read", { path: "/a" })).end).toBe("denied no_grant");
      expect((await add(rig, frontend, { ...READ, id: "r" })).end).toContain("result");
    }));

  it("asked again with the same call id adds nothing twice", () =>
    withRig(GIVING, async (rig) => {
      const frontend = rig.peer("frontend");
      const replies = [0, 1].map(() => frontend.ask("callgate.grants.add", READ, { call: 5n }));
      await rig.settle();
      const later = frontend.ask("callgate.grants.add", READ, { call: 5n });
      await rig.settle();
      expect(new Set([...replies, later].map(({ end }) => end)).size).toBe(1);
      expect(rig.events("grant.added")).toHaveLength(1);
    }));

  it("needs nobody's leave for a deny by an operator, which holds at once and ends a call that was just decided", () =>
    withRig(`${BASIC}[roles.second]\nusers = ["callgate-frontend"]\n`, async (rig) => {
      const { ran } = serving(rig);
      const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
      rig.store.mode = "held";
      const deny = operator.ask("callgate.grants.add", { ...DENY, reason: "SENT TOO MUCH" });
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      const deciding = agent.ask("read", { path: "/a" }); // its intent waits behind the deny
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(deny.end).toContain("result");
      expect(deciding.end).toBe("denied denied_by_grant");
      expect((await ask(rig, agent, "read", { path: "/a" })).end).toBe("denied denied_by_grant");
      expect((await ask(rig, agent, "callgate.status")).end).toContain("result"); // `*` reaches no built-in
      expect(ran).toEqual([]);
    }));

  it.each(["taint_max", "taint_untrusted", "above_taint", "expires_in_seconds", "max_calls"] as const)(
    "refuses a deny with %s, which would let it end or stop short",
    (name) =>
      withRig(GIVING, async (rig) => {
        const bounds = {
          ...{ taint_max: "public", taint_untrusted: false, above_taint: "ask" },
          ...{ expires_in_seconds: 9, max_calls: 9 },
        };
        const reply = await add(rig, rig.peer("operator"), { ...DENY, [name]: bounds[name] });
        expect(reply.sentence).toContain(`leave out \`${name}\``);
      }),
  );

  it("tells a role that is no operator the same for a foreign role and one that there is not", () =>
    withRig(GIVING, async (rig) => {
      const [agent, frontend] = [rig.peer("agent"), rig.peer("frontend")];
      for (const peer of [agent, frontend]) {
        for (const args of [READ, DENY]) {
          const [foreign, unknown] = ["files", "nobody"].map((role) =>
            peer.ask("callgate.grants.add", { ...args, role }),
          );
          await rig.settle();
          expect(foreign?.sentence).toBe(unknown?.sentence);
          expect(foreign?.end).toBe("failed bad_arguments");
        }
      }
    }));
});

describe("revoking a grant", () => {
  it("takes effect on the very next call, also while the revocation waits to be written", () =>
    withRig(GIVING, async (rig) => {
      const { ran } = serving(rig);
      const [agent, frontend, operator] = [rig.peer("agent"), rig.peer("frontend"), rig.peer("operator")];
      const id = await given(rig, frontend, READ);
      await ask(rig, agent, "read", { path: "/a" });
      rig.store.mode = "held";
      const revoking = operator.ask("callgate.grants.revoke", { grant: id, reason: "over" });
      await rig.settle();
      rig.store.release(1); // its intent; what it changes is not written yet
      await rig.settle();
      const next = agent.ask("read", { path: "/a" });
      await rig.releaseAll();
      expect(revoking.json).toEqual({ grant: id, revoked: true });
      expect(next.end).toBe("denied no_grant");
      expect(ran).toHaveLength(1);
      expect(rig.events("grant.gone")).toMatchObject([
        { fields: { grant: id, why: "revoked", by: "operator" } },
      ]);
    }));

  it("stops a call whose intent was being written", () =>
    withRig(GIVING, async (rig) => {
      const { ran } = serving(rig);
      const [agent, frontend, operator] = [rig.peer("agent"), rig.peer("frontend"), rig.peer("operator")];
      const id = await given(rig, frontend, READ);
      rig.store.mode = "held";
      const revoking = operator.ask("callgate.grants.revoke", { grant: id });
      await rig.settle();
      const caught = agent.ask("read", { path: "/a" });
      await rig.settle();
      await rig.releaseAll();
      expect(revoking.end).toContain("result");
      expect(caught.end).toBe("denied no_grant");
      expect(ran).toEqual([]);
    }));

  it("that can't be written leaves no allow in force, and can be asked again", () =>
    withRig(GIVING, async (rig) => {
      serving(rig);
      const [agent, frontend, operator] = [rig.peer("agent"), rig.peer("frontend"), rig.peer("operator")];
      const id = await given(rig, frontend, READ);
      rig.store.mode = "held";
      const failing = operator.ask("callgate.grants.revoke", { grant: id });
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      rig.store.refuse(1);
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(failing.end).toBe("failed outcome_unknown");
      expect((await ask(rig, agent, "read", { path: "/a" })).end).toBe("denied no_grant");
      expect((await revoke(rig, operator, id)).end).toContain("result");
      expect((await revoke(rig, operator, id)).end).toBe("failed bad_arguments");
    }));

  it("of a deny frees nothing before it is written, and nothing at all where that fails", () =>
    withRig(BASIC, async (rig) => {
      serving(rig);
      const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
      const id = await given(rig, operator, DENY);
      rig.store.mode = "held";
      const failing = operator.ask("callgate.grants.revoke", { grant: id });
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      const early = agent.ask("read", { path: "/a" });
      await rig.settle();
      rig.store.refuse(1);
      await rig.releaseAll();
      rig.store.mode = "at_once";
      expect(failing.end).toBe("failed outcome_unknown");
      expect(early.end).toBe("denied denied_by_grant");
      expect((await ask(rig, agent, "read", { path: "/b" })).end).toBe("denied denied_by_grant");
      expect((await revoke(rig, operator, id)).end).toContain("result");
      expect((await ask(rig, agent, "read", { path: "/c" })).end).toBe("result public done");
    }));

  it("is for the role that an allow serves and for operators; nobody else learns that it is there", () =>
    withRig(GIVING, async (rig) => {
      const [agent, mail, frontend, operator] = [
        rig.peer("agent"),
        rig.peer("mail"),
        rig.peer("frontend"),
        rig.peer("operator"),
      ];
      const allow = await given(rig, frontend, READ);
      const asks = await given(rig, frontend, { ...READ, effect: "ask" });
      const deny = await given(rig, operator, DENY);
      for (const id of [asks, deny, "agent-attacks", "runtime.none"]) {
        expect((await revoke(rig, agent, id)).sentence).toContain(
          "no grant of that id that the caller may give back",
        );
      }
      await ask(rig, frontend, "callgate.sessions.open", {
        role: "mail",
        session: "s",
        expires_in_seconds: 60,
      });
      const [foreign, unknown] = [await revoke(rig, mail, allow), await revoke(rig, mail, "runtime.none")];
      expect(foreign.end).toBe("failed bad_arguments");
      expect(foreign.sentence).toBe(unknown.sentence);
      expect((await revoke(rig, agent, allow)).end).toContain("result");
      expect((await revoke(rig, operator, deny)).end).toContain("result");
      expect((await revoke(rig, operator, asks)).end).toContain("result");
      expect((await revoke(rig, operator, "agent-attacks")).sentence).toContain("stands in the config");
      expect((await revoke(rig, operator, "runtime.none")).sentence).toContain("no grant of that id.");
    }));

  it("of what narrows one's own role or user is for somebody else", () =>
    withRig(GIVING, async (rig) => {
      const [operator, second] = [rig.peer("operator"), rig.peer("second", FRONTEND_USER)];
      const [own, ofUser] = [
        await given(rig, operator, { ...DENY, role: "second" }),
        await given(rig, operator, { ...DENY, role: "frontend" }),
      ];
      for (const id of [own, ofUser])
        expect((await revoke(rig, second, id)).sentence).toContain("narrows their own role or user");
      for (const id of [own, ofUser]) expect((await revoke(rig, operator, id)).end).toContain("result");
    }));
});

describe("a reload", () => {
  it("keeps runtime grants and their uses, and takes them out of no decision", () =>
    withRig(GIVING, async (rig) => {
      serving(rig);
      const [agent, frontend, operator] = [rig.peer("agent"), rig.peer("frontend"), rig.peer("operator")];
      await given(rig, frontend, { ...READ, max_calls: 2 });
      await given(rig, operator, { ...DENY, tools: ["write"] });
      await ask(rig, agent, "read", { path: "/a" });
      await rig.reloadWith(`${GIVING}\n`);
      expect((await ask(rig, agent, "write", { path: "/a" })).end).toBe("denied denied_by_grant");
      expect((await ask(rig, agent, "read", { path: "/a" })).end).toBe("result public done");
      expect((await ask(rig, agent, "read", { path: "/b" })).end).toBe("denied grant_expired");
      expect(await runtimeGrants(rig, operator)).toHaveLength(2);
    }));

  it("that takes away what somebody may give ends no grant, and lets no new one in", () =>
    withRig(GIVING, async (rig) => {
      serving(rig);
      const [agent, frontend] = [rig.peer("agent"), rig.peer("frontend")];
      await given(rig, frontend, READ);
      await rig.reloadWith(GIVING.replace('tools = ["read", "fr*", "write", "plug.*"]', 'tools = ["write"]'));
      expect((await ask(rig, agent, "read", { path: "/a" })).end).toBe("result public done");
      expect((await add(rig, frontend, READ)).end).toBe("failed bad_arguments");
    }));
});

describe("what is shown of a grant", () => {
  it("carries the labels of whoever wrote its words", () =>
    withRig(GIVING, async (rig) => {
      serving(rig);
      const [agent, frontend] = [rig.peer("agent"), rig.peer("frontend")];
      await given(rig, frontend, READ);
      expect((await ask(rig, agent, "callgate.grants.list")).end).toContain("result public {");
      await ask(rig, frontend, "floor"); // internal and untrusted from here on
      await given(rig, frontend, { ...READ, reason: "CANARY: what I have just read" });
      const listed = await ask(rig, agent, "callgate.grants.list");
      expect(listed.end).toContain("result internal untrusted");
    }));
});
