import { describe, expect, it } from "vitest";
import { allow, BASIC, GRANTS, ROLES, TOOLS } from "./configs.ts";
import { withRig } from "./rig.ts";

describe("a call", () => {
  it("reaches its provider under the caller's role and session, arguments byte for byte, and its result comes back", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const text = '{ "path" : "/a\\u0041\\u00e9 9007199254740993" }';
      const reply = agent.ask("read", text, { session: "mm/1", call: 18446744073709551615n });
      await rig.settle();
      const request = files.take();
      expect(request.body).toEqual({
        session: "agent:mm/1",
        call: 18446744073709551615n,
        tool: "read",
        arguments: text,
      });
      request.result("CANARY-content");
      await rig.settle();
      expect(reply.seen).toEqual(["result public CANARY-content"]);
    }));

  it("goes under a hashed session where the long one would not fit, and where it looks like a hash", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      for (const session of ["x".repeat(128), "x".repeat(123), "x".repeat(122), "sha256-1"])
        agent.ask("free", {}, { session });
      await rig.settle();
      const sessions = files.requests.map(({ body }) => body.session);
      expect(sessions.map((session) => session.startsWith("agent:sha256-"))).toEqual([
        true,
        true,
        false,
        true,
      ]);
      expect(new Set(sessions).size).toBe(4);
      for (const { length } of sessions) expect(length).toBeLessThanOrEqual(128);
    }));

  it("gets its parts in their order, each with the labels of all before it", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = agent.ask("free");
      await rig.settle();
      const request = files.take();
      request.part("1");
      request.part("2", { class: "confidential" });
      request.part("3", { untrusted: true });
      request.result("4");
      await rig.settle();
      expect(reply.seen).toEqual([
        "part: result public 1",
        "part: result confidential 2",
        "part: result confidential untrusted 3",
        "result confidential untrusted 4",
      ]);
    }));

  it("of two roles with the same session and call id is never answered with the other's", () =>
    withRig(
      `${BASIC}[roles.other]\nusers = ["agent"]\n${allow("other-reads", "other", '["free"]')}`,
      async (rig) => {
        const [agent, other, files] = [rig.peer("agent"), rig.peer("other"), rig.peer("files")];
        const mine = agent.ask("free", {}, { call: 5n });
        const theirs = other.ask("free", {}, { call: 5n });
        await rig.settle();
        expect(files.requests.map(({ body }) => body.session)).toEqual(["agent:s", "other:s"]);
        for (const request of files.requests.splice(0)) request.result(request.body.session);
        await rig.settle();
        expect([mine.end, theirs.end]).toEqual(["result public agent:s", "result public other:s"]);
        const [again, theirsAgain] = [
          agent.ask("free", {}, { call: 5n }),
          other.ask("free", {}, { call: 5n }),
        ];
        await rig.settle();
        expect([again.end, theirsAgain.end]).toEqual([mine.end, theirs.end]);
        expect(files.requests).toEqual([]);
      },
    ));
});

const CHECKS = `${ROLES.replace('users = ["agent"]', 'users = ["agent"]\n[roles.agent.limits]\ncalls_in_flight = 1\n')}
${TOOLS}[tools.away]
role = "operator"
schema = { type = "object", properties = {}, additionalProperties = false }
${GRANTS}
[[grants]]
id = "no-away"
role = "agent"
tools = ["away"]
effect = "ask"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "never"
role = "agent"
tools = ["write"]
effect = "deny"
reason = "Nobody writes."
`;

describe("the order of checks", () => {
  it.each([
    ["unknown tool, bad JSON", "nothing", "{", "failed bad_arguments"],
    ["ungranted tool, bad JSON", "write", "{", "failed bad_arguments"],
    ["allowed tool, bad JSON", "read", "{", "failed bad_arguments"],
    ["built-in, bad JSON", "callgate.status", "{", "failed bad_arguments"],
    ["a list of arguments", "read", "[]", "failed bad_arguments"],
    ["twice the same name", "read", '{"path":"a","path":"b"}', "failed bad_arguments"],
    ["the same name in capitals", "read", '{"path":"/ok","PATH":"/etc/shadow"}', "failed bad_arguments"],
    ["unknown tool", "nothing", "{}", "denied no_grant"],
    ["prototype's name", "constructor", "{}", "denied no_grant"],
    ["denied before its schema is looked at", "write", '{"no":1}', "denied denied_by_grant"],
    ["schema before the provider", "away", '{"no":1}', "failed bad_arguments"],
    ["provider before the question", "away", "{}", "failed no_provider"],
    ["provider away", "read", "{}", "failed no_provider"],
  ])("%s", (_, tool, args, expected) =>
    withRig(CHECKS, async (rig) => {
      const reply = rig.peer("agent").ask(tool, args);
      await rig.settle();
      expect(reply.seen).toEqual([expected]);
      if (expected.startsWith("failed"))
        expect(reply.sentence).toMatch(/Nothing (?:ran|was run for this request)\.$/);
    }),
  );

  it("the question comes last, and nothing runs before it is answered", () =>
    withRig(CHECKS, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
      const reply = agent.ask("away");
      await rig.settle();
      expect(reply.seen).toEqual(["part: pending_approval"]);
      expect(operator.requests).toEqual([]);
    }));

  it("bad arguments and capacity read the same for every tool", () =>
    withRig(CHECKS, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const bad = ["nothing", "write", "read", "callgate.status"].map((tool) => agent.ask(tool, '{"a":1,}'));
      await rig.settle();
      expect(new Set(bad.map(({ sentence }) => sentence)).size).toBe(1);
      agent.ask("read");
      await rig.settle();
      const full = ["nothing", "write", "read", "callgate.status"].map((tool) => agent.ask(tool, "{"));
      await rig.settle();
      expect(new Set(full.map(({ sentence }) => sentence))).toEqual(
        new Set(["capacity: The role's limit calls_in_flight is reached. Nothing was run for this request."]),
      );
      files.take().result("done");
    }));

  it("looks at the record before it decides, so a retry after the grant is gone hears the same", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const first = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      files.take().result("kept");
      await rig.reloadWith(BASIC.replace('"free", "callgate.*"', '"callgate.*"'));
      const again = agent.ask("free", {}, { call: 1n });
      const fresh = agent.ask("free", {}, { call: 2n });
      await rig.settle();
      expect([first.end, again.end, fresh.end]).toEqual([
        "result public kept",
        "result public kept",
        "denied no_grant",
      ]);
    }));
});

describe("a peer that breaks the protocol is told once and disconnected", () => {
  it.each([
    ["a request that is not final", { final: false }],
    ["a request with id 0", { id: 0n }],
  ])("%s", (_, options) =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      agent.ask("free", {}, options);
      await rig.settle();
      expect(agent.errors).toMatchObject([{ id: 0n, code: "bad_message" }]);
      await rig.pass(2000);
      expect(agent.gone).toBe(true);
    }),
  );

  it.each(["at_once", "held"] as const)("an id that is in flight, with commits %s", (mode) =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      rig.store.mode = mode;
      agent.ask("free", {}, { id: 7n });
      agent.ask("nothing", {}, { id: 7n });
      await rig.releaseAll();
      expect(agent.errors).toMatchObject([{ id: 0n, code: "bad_message" }]);
      expect(files.requests).toHaveLength(1);
    }),
  );

  it("a denial is in flight too while it is being written down", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      rig.store.mode = "held";
      agent.ask("nothing", {}, { id: 7n });
      agent.ask("nothing", {}, { id: 7n });
      await rig.settle();
      expect(agent.errors).toMatchObject([{ code: "bad_message" }]);
    }));

  it("an answer from a role that provides nothing", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      agent.answer(1n, { status: "failed", message: "CANARY" });
      await rig.settle();
      expect(agent.errors).toMatchObject([{ id: 0n, code: "bad_message" }]);
    }));

  it.each([
    ["no JSON", Buffer.from("\0\0\0\x05CANAR", "latin1"), "bad_frame"],
    ["a length of 0", Buffer.alloc(4), "bad_frame"],
    ["a length beyond the limit", Buffer.from([0xff, 0xff, 0xff, 0xff]), "bad_frame"],
    ["another version", Buffer.from('\0\0\0\x07{"v":2}', "latin1"), "bad_version"],
    ["no message of this protocol", Buffer.from('\0\0\0\x07{"v":1}', "latin1"), "bad_message"],
  ])("%s", (_, bytes, code) =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      agent.write(bytes);
      await rig.settle();
      expect(agent.errors).toMatchObject([{ id: 0n, code }]);
      expect(agent.ended).toBe(true);
    }),
  );

  it("an error envelope ends the connection without an answer", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      agent.error(0n, "bad_frame", "CANARY");
      await rig.settle();
      expect([agent.gone, agent.errors]).toEqual([true, []]);
      expect(rig.events("peer.error")).toHaveLength(1);
    }));
});
