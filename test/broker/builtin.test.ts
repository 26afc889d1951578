import { describe, expect, it } from "vitest";
import { loadBuiltins } from "../../src/broker/builtin/table.ts";
import { BUILTIN_TOOLS } from "../../src/host/config_grants.ts";
import { allow, BASIC, GRANTS, ROLES, TOOLS } from "./configs.ts";
import { type Rig, withRig } from "./rig.ts";
import type { RigPeer } from "./rig_peer.ts";

/** Two agents whose sessions a frontend opens, and an MCP-like provider that announces its tools. */
const TEAM = `[roles.agent]
users = ["agent"]
sessions = "opened"
taint_scope = "session"
[roles.other]
users = ["agent"]
[roles.files]
users = ["callgate-files"]
class_max = "confidential"
[roles.mail]
users = ["callgate-mail"]
provides = ["mail."]
class_max = "internal"
[roles.frontend]
users = ["callgate-frontend"]
[roles.operator]
users = ["operator"]
operator = true
${TOOLS}${GRANTS}
[tools."named.tool"]
role = "mail"
effect = "read"
${allow("everybody", "other", '["callgate.*", "free", "mail.*"]')}
${allow("opens", "frontend", '["callgate.sessions.*", "callgate.status"]')}
${allow("announces", "mail", '["callgate.tools.*", "callgate.freeze"]')}
${allow("agent-mails", "agent", '["mail.*", "named.tool"]')}
`;

async function ask(rig: Rig, peer: RigPeer, tool: string, args: object = {}, session = "s") {
  const reply = peer.ask(`callgate.${tool}`, args, { session });
  await rig.settle();
  return reply;
}

async function open(rig: Rig, frontend: RigPeer, session: string, more: object = {}) {
  return ask(rig, frontend, "sessions.open", { role: "agent", session, expires_in_seconds: 60, ...more });
}

describe("the table of built-in tools", () => {
  it("is the one that grants may name", async () => {
    const builtins = await loadBuiltins();
    expect([...BUILTIN_TOOLS].sort()).toEqual([...builtins.keys()].sort());
    for (const { schema } of builtins.values()) expect(schema.closed).toBe(true);
  });

  it.each(["*", "c*", "callgat*"])("is never reached by a grant on %s", (pattern) =>
    withRig(`${ROLES}${TOOLS}${allow("wide", "agent", `["${pattern}"]`)}`, async (rig) => {
      const agent = rig.peer("agent");
      const replies = BUILTIN_TOOLS.map((tool) => agent.ask(tool));
      await rig.settle();
      expect(new Set(replies.map(({ end }) => end))).toEqual(new Set(["denied no_grant"]));
    }),
  );

  it("refuses arguments that a schema does not know, whatever the tool", () =>
    withRig(BASIC, async (rig) => {
      const operator = rig.peer("operator");
      const replies = BUILTIN_TOOLS.map((tool) => operator.ask(tool, { CANARY: 1 }));
      await rig.settle();
      expect(new Set(replies.map(({ end }) => end))).toEqual(new Set(["failed bad_arguments"]));
    }));
});

describe("who sees what", () => {
  it.each<[string, object, object]>([
    ["sessions.show", { role: "agent", session: "a" }, { role: "agent", session: "nobody" }],
    ["sessions.close", { role: "agent", session: "a" }, { role: "nobody", session: "a" }],
    ["grants.list", { role: "agent" }, { role: "nobody" }],
    ["grants.explain", { role: "agent", tool: "read" }, { role: "nobody", tool: "read" }],
    ["calls.why", { role: "agent", call: "7" }, { role: "nobody", call: "7" }],
    ["calls.cancel", { role: "agent", session: "a", call: "7" }, { role: "nobody", session: "a", call: "7" }],
    ["tools.diff", { tool: "mail.read" }, { tool: "mail.none" }],
    ["tools.accept", { tool: "mail.read", digest: "0" }, { tool: "mail.none", digest: "0" }],
    ["freeze", { role: "agent" }, { role: "nobody" }],
    [
      "sessions.open",
      { role: "files", session: "x", expires_in_seconds: 9 },
      { role: "nobody", session: "x", expires_in_seconds: 9 },
    ],
  ])("%s answers a role that is no operator the same for foreign and unknown", (tool, foreign, unknown) =>
    withRig(TEAM, async (rig) => {
      const [frontend, agent, mail, other] = [
        rig.peer("frontend"),
        rig.peer("agent"),
        rig.peer("mail"),
        rig.peer("other"),
      ];
      await open(rig, frontend, "a");
      agent.ask("write", { CANARY: "x" }, { session: "a", call: 7n });
      await ask(rig, mail, "tools.announce", { tools: [{ name: "mail.read", description: "CANARY" }] });
      const [one, two] = [await ask(rig, other, tool, foreign), await ask(rig, other, tool, unknown)];
      expect(one.end).toBe("failed bad_arguments");
      expect(one.sentence).toBe(two.sentence);
    }),
  );

  it("an operator sees all roles, another only itself", () =>
    withRig(TEAM, async (rig) => {
      const [operator, other] = [rig.peer("operator"), rig.peer("other")];
      const [all, own] = [await ask(rig, operator, "status"), await ask(rig, other, "status")];
      expect((all.json["roles"] as unknown[]).length).toBe(6);
      expect(Object.keys(own.json)).toEqual(["role", "draining", "policy", "policy_stale", "uptime_ms"]);
      const grants = await ask(rig, other, "grants.list");
      expect((grants.json["grants"] as { role: string }[]).every(({ role }) => role === "other")).toBe(true);
    }));

  it("what is shown of a tainted session taints who looks", () =>
    withRig(TEAM, async (rig) => {
      const [frontend, agent, files, operator] = [
        rig.peer("frontend"),
        rig.peer("agent"),
        rig.peer("files"),
        rig.peer("operator"),
      ];
      await open(rig, frontend, "a", { request: "CANARY: my words" });
      agent.ask("free", {}, { session: "a" });
      await rig.settle();
      files.take().result("x", { class: "confidential", untrusted: true });
      await rig.settle();
      const shown = await ask(rig, operator, "sessions.show", { role: "agent", session: "a" });
      expect(shown.end).toContain("result confidential untrusted");
      expect(shown.json["request"]).toBe("CANARY: my words");
      const own = await ask(rig, operator, "sessions.show");
      expect(own.json["taint"]).toEqual({ class: "confidential", untrusted: true });
    }));

  it("an isolated connection sees and touches its own session only", () =>
    withRig(
      TEAM.replace('taint_scope = "session"', 'taint_scope = "session"\nisolated = true'),
      async (rig) => {
        const [frontend, agent, files] = [rig.peer("frontend"), rig.peer("agent"), rig.peer("files")];
        await open(rig, frontend, "a");
        await open(rig, frontend, "b", { request: "CANARY: of somebody else" });
        const b = rig.peer("agent");
        b.ask("free", {}, { session: "b", call: 7n });
        await rig.settle();
        const replies = [
          await ask(rig, agent, "sessions.show", { session: "b" }, "a"),
          await ask(rig, agent, "sessions.close", { session: "b" }, "a"),
          await ask(rig, agent, "calls.cancel", { session: "b", call: "7" }, "a"),
          await ask(rig, agent, "calls.why", { session: "b", call: "7" }, "a"),
          await ask(rig, agent, "grants.explain", { session: "b", tool: "free" }, "a"),
          await ask(rig, agent, "sessions.show", {}, "b"),
        ];
        expect(replies.map(({ end }) => end)).toEqual([
          ...Array(5).fill("failed bad_arguments"),
          "denied no_grant",
        ]);
        expect(files.requests).toHaveLength(1);
      },
    ));

  it("an isolated connection can't write over why another session's call was denied", () =>
    withRig(
      TEAM.replace('taint_scope = "session"', 'taint_scope = "session"\nisolated = true'),
      async (rig) => {
        const [frontend, a, b] = [rig.peer("frontend"), rig.peer("agent"), rig.peer("agent")];
        await open(rig, frontend, "a");
        await open(rig, frontend, "b");
        await ask(rig, a, "status", {}, "a");
        b.ask("nothing", {}, { session: "b", call: 9n });
        await rig.settle();
        const foreign = a.ask("nothing", {}, { session: "b", call: 9n });
        await rig.settle();
        expect(foreign.end).toBe("denied no_grant");
        expect((await ask(rig, b, "calls.why", { call: "9" }, "b")).json["row"]).toBe("nothing");
        expect((await ask(rig, a, "calls.why", { call: "9" }, "a")).json["row"]).toBe("isolated");
      },
    ));
});

describe("sessions.open", () => {
  it("opens one for the agent, once, and until its end", () =>
    withRig(TEAM, async (rig) => {
      const [frontend, agent] = [rig.peer("frontend"), rig.peer("agent")];
      const use = async () => (await ask(rig, agent, "status", {}, "a")).end.slice(0, 20);
      expect(await use()).toBe("denied no_grant");
      expect((await open(rig, frontend, "a")).end).toContain("result public");
      expect(await use()).toContain("result public");
      expect((await open(rig, frontend, "a")).end).toBe("failed bad_arguments");
      await rig.pass(59_999);
      expect(await use()).toContain("result public");
      await rig.pass(1);
      expect(await use()).toBe("denied grant_expired");
      expect((await open(rig, frontend, "a")).end).toBe("failed bad_arguments");
    }));

  it("can be closed by who opened it and by its own role, and its id is not used again", () =>
    withRig(TEAM, async (rig) => {
      const [frontend, agent, other] = [rig.peer("frontend"), rig.peer("agent"), rig.peer("other")];
      for (const session of ["a", "b", "c"]) await open(rig, frontend, session);
      const closed = [
        await ask(rig, frontend, "sessions.close", { role: "agent", session: "a" }),
        await ask(rig, agent, "sessions.close", { session: "b" }, "b"),
        await ask(rig, other, "sessions.close", { role: "agent", session: "c" }),
      ];
      expect(closed.map(({ end }) => end.slice(0, 13))).toEqual([
        "result public",
        "result public",
        "failed bad_ar",
      ]);
      const uses = [];
      for (const session of ["a", "b", "c"])
        uses.push((await ask(rig, agent, "status", {}, session)).end.slice(0, 20));
      expect(uses).toEqual(["denied grant_expired", "denied grant_expired", 'result public {"role']);
      expect((await open(rig, frontend, "a")).end).toBe("failed bad_arguments");
    }));

  it("is refused for the opener's own role or user, for bad ids and times, and past the role's limit", () =>
    withRig(
      `${TEAM}[roles.agent.limits]\nsessions = 1\n${allow("agents-try", "agent", '["callgate.sessions.open"]')}`,
      async (rig) => {
        const [frontend, sameUser, agentUser] = [
          rig.peer("frontend"),
          rig.peer("other"),
          rig.peer("frontend", { uid: 1001 }),
        ];
        await rig.settle();
        expect(agentUser.gone).toBe(true);
        const replies = [
          await open(rig, sameUser, "x"),
          await open(rig, frontend, "no good id"),
          await open(rig, frontend, "x", { expires_in_seconds: 0 }),
          await open(rig, frontend, "x", { expires_in_seconds: 31_536_001 }),
          await open(rig, frontend, "x", { request: "w".repeat(16_385) }),
          await open(rig, frontend, "one"),
          await open(rig, frontend, "two"),
        ];
        expect(replies.map(({ end }) => end.split(" ").slice(0, 2).join(" "))).toEqual([
          ...Array(5).fill("failed bad_arguments"),
          "result public",
          "failed capacity",
        ]);
        await ask(rig, frontend, "sessions.close", { role: "agent", session: "one" });
        expect((await open(rig, frontend, "two")).end).toContain("result public");
      },
    ));

  it("of a tainted opener shows its words with that taint", () =>
    withRig(`${TEAM}${allow("frontend-reads", "frontend", '["free"]')}`, async (rig) => {
      const [frontend, agent, files] = [rig.peer("frontend"), rig.peer("agent"), rig.peer("files")];
      frontend.ask("free");
      await rig.settle();
      files.take().result("x", { class: "internal", untrusted: true });
      await rig.settle();
      await open(rig, frontend, "a", { request: "CANARY" });
      expect((await ask(rig, agent, "sessions.show", {}, "a")).end).toContain("result internal untrusted");
    }));
});

const READ = {
  name: "mail.read",
  description: "CANARY one",
  schema: { type: "object", properties: { id: { type: "integer" } } },
};

describe("announced tools", () => {
  const announce = (rig: Rig, mail: RigPeer, ...tools: object[]) =>
    ask(rig, mail, "tools.announce", { tools });
  const states = (reply: { json: Readonly<Record<string, unknown>> }) =>
    (reply.json["tools"] as { state: string }[]).map(({ state }) => state);
  const use = async (rig: Rig, other: RigPeer, tool = "mail.read") => {
    const reply = other.ask(tool, { id: 1 });
    await rig.settle();
    return reply;
  };

  async function accept(rig: Rig, operator: RigPeer, announced: { json: Readonly<Record<string, unknown>> }) {
    const [{ name, digest }] = announced.json["tools"] as [{ name: string; digest: string }];
    return ask(rig, operator, "tools.accept", { tool: name, digest });
  }

  it("are unlisted and out of service until an operator accepts them; a changed one is out of service again", () =>
    withRig(TEAM, async (rig) => {
      const [mail, other, operator] = [rig.peer("mail"), rig.peer("other"), rig.peer("operator")];
      const first = await announce(rig, mail, READ);
      expect(states(first)).toEqual(["waiting"]);
      expect((await ask(rig, other, "tools.list")).content).not.toContain("mail.read");
      expect((await use(rig, other)).end).toBe("failed no_provider");
      expect((await accept(rig, operator, first)).json["accepted"]).toBe(true);
      const listed = await ask(rig, other, "tools.list", { prefix: "mail." });
      expect(listed.json["tools"]).toMatchObject([
        { name: "mail.read", description: "CANARY one", in_service: true, effect: "execute" },
      ]);
      const used = await use(rig, other);
      mail.take().result("x");
      await rig.settle();
      expect(used.end).toBe("result public untrusted x");
      const changed = await announce(rig, mail, { ...READ, description: "CANARY two" });
      expect([states(changed), (await use(rig, other)).end]).toEqual([["changed"], "failed no_provider"]);
      const diff = await ask(rig, operator, "tools.diff", { tool: "mail.read" });
      expect(diff.end).toMatch(/^result internal untrusted .*CANARY one.*CANARY two/);
      await accept(rig, operator, changed);
      await use(rig, other);
      expect(mail.requests).toHaveLength(1);
    }));

  it("are told to operators, and to nobody else, by whether somebody has looked at them", () =>
    withRig(TEAM, async (rig) => {
      const [mail, other, operator] = [rig.peer("mail"), rig.peer("other"), rig.peer("operator")];
      const looked = async (peer: RigPeer, prefix: string) => {
        const { json } = await ask(rig, peer, "tools.list", { prefix });
        return (json["tools"] as { definition?: string | null }[]).map(({ definition }) => definition);
      };
      const first = await announce(rig, mail, READ);
      expect(await looked(operator, "mail.")).toEqual(["waiting"]);
      await accept(rig, operator, first);
      expect(await looked(operator, "mail.")).toEqual(["accepted"]);
      await announce(rig, mail, { ...READ, description: "CANARY two" });
      expect(await looked(operator, "mail.")).toEqual(["waiting"]);
      expect(await looked(other, "mail.")).toEqual([undefined]);
      await announce(rig, mail, { name: "named.tool", description: "CANARY", schema: READ.schema });
      expect(await looked(operator, "named.")).toEqual(["unseen"]);
      expect(await looked(operator, "callgate.status")).toEqual([undefined]);
    }));

  it("are served only by the connections that announced exactly what is pinned", () =>
    withRig(TEAM.replace('provides = ["mail."]', 'provides = ["mail."]\nconnections = 3'), async (rig) => {
      const [mail, changed, silent] = [rig.peer("mail"), rig.peer("mail"), rig.peer("mail")];
      const [other, operator] = [rig.peer("other"), rig.peer("operator")];
      await accept(rig, operator, await announce(rig, mail, READ));
      await announce(rig, changed, { ...READ, description: "CANARY other" });
      for (let i = 0; i < 3; i += 1) await use(rig, other);
      expect([mail, changed, silent].map(({ requests }) => requests.length)).toEqual([3, 0, 0]);
    }));

  it("named in the config are in service at once, with no word of the provider's shown before somebody accepts it", () =>
    withRig(TEAM, async (rig) => {
      const [mail, operator] = [rig.peer("mail"), rig.peer("operator")];
      const announced = await announce(rig, mail, {
        name: "named.tool",
        description: "CANARY words",
        schema: READ.schema,
      });
      expect(states(announced)).toEqual(["in_service"]);
      const listed = () => ask(rig, operator, "tools.list", { prefix: "named." });
      expect((await listed()).json["tools"]).toMatchObject([
        { description: null, schema: null, in_service: true },
      ]);
      await accept(rig, operator, announced);
      expect((await listed()).json["tools"]).toMatchObject([
        { description: "CANARY words", in_service: true },
      ]);
    }));

  it.each([
    "callgate.status",
    "callgate",
    "files.read",
    "read",
    "mail",
    "Mail.x",
    "mail.",
    "__proto__",
    "mail.x\u202e",
  ])("never take the name %s", (name) =>
    withRig(TEAM, async (rig) => {
      const reply = await announce(rig, rig.peer("mail"), { name, description: "CANARY" });
      expect(states(reply)).toEqual(["refused"]);
    }),
  );

  it("are not accepted by their own role or user, nor by who is no operator", () =>
    withRig(TEAM.replace('users = ["operator"]', 'users = ["operator", "callgate-mail"]'), async (rig) => {
      const [mail, sameUser, other] = [
        rig.peer("mail"),
        rig.peer("operator", { uid: 1004 }),
        rig.peer("other"),
      ];
      const announced = await announce(rig, mail, READ);
      for (const peer of [mail, sameUser, other])
        expect((await accept(rig, peer, announced)).end).toBe("failed bad_arguments");
    }));

  it("that are many don't hold up everybody else: one is compiled in each turn", () =>
    withRig(TEAM, async (rig) => {
      const mail = rig.peer("mail");
      const tools = Array.from({ length: 20 }, (_, i) => ({
        name: `mail.t${i}`,
        schema: { type: "object" },
      }));
      const reply = mail.ask("callgate.tools.announce", { tools });
      for (let turn = 0; turn < 5; turn += 1) await new Promise((turned) => setImmediate(turned));
      expect(rig.events("tool.announced").length).toBeLessThan(3);
      await rig.settle();
      expect(rig.events("tool.announced")).toHaveLength(20);
      expect(reply.end).toContain("result public");
    }));

  it("with endless names are refused in the end", () =>
    withRig(TEAM, async (rig) => {
      const mail = rig.peer("mail");
      for (let batch = 0; batch < 5; batch += 1) {
        const tools = Array.from({ length: 256 }, (_, i) => ({ name: `mail.t${batch}-${i}` }));
        const reply = await announce(rig, mail, ...tools);
        expect(states(reply)[255]).toBe(batch < 4 ? "waiting" : "refused");
      }
    }));
});

describe("calls.why and grants.explain", () => {
  it("tell a caller row, grant and reason of its own denial", () =>
    withRig(
      `${BASIC}[[grants]]\nid = "never"\nrole = "agent"\ntools = ["write"]\neffect = "deny"\nreason = "Nobody writes."\n`,
      async (rig) => {
        const agent = rig.peer("agent");
        agent.ask("write", { path: "CANARY" }, { call: 7n });
        await rig.settle();
        const why = await ask(rig, agent, "calls.why", { call: "7" });
        expect(why.json).toMatchObject({
          denied: "denied_by_grant",
          row: "deny",
          grant: "never",
          reason: "Nobody writes.",
        });
        expect(why.content).not.toContain("CANARY");
        const explained = await ask(rig, agent, "grants.explain", {
          tool: "write",
          arguments: '{"path":"CANARY"}',
        });
        expect(explained.json).toMatchObject({ verdict: "deny", grant: "never" });
      },
    ));
});
