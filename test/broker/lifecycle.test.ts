import { describe, expect, it } from "vitest";
import { allow, BASIC, GRANTS, ROLES, TOOLS } from "./configs.ts";
import { withRig } from "./rig.ts";

const NO_FREE = `${BASIC}[[grants]]\nid = "no"\nrole = "agent"\ntools = ["free"]\neffect = "deny"\n`;

describe("a freeze", () => {
  it("stops a role at once: its calls, its connections, its new ones; and lets it go on when thawed", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      const reply = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      const frozen = operator.ask("callgate.freeze", { role: "agent" });
      await rig.settle();
      expect(frozen.json["stopped"]).toEqual({ calls: 1, connections: 1 });
      files.take().result("late");
      await rig.pass(2000);
      expect([reply.end, agent.gone]).toEqual(["failed cancelled", true]);
      const refused = rig.peer("agent");
      await rig.settle();
      expect(refused.gone).toBe(true);
      operator.ask("callgate.freeze", { role: "agent", frozen: false });
      await rig.settle();
      const thawed = rig.peer("agent").ask("free", {}, { call: 1n });
      await rig.settle();
      expect(thawed.end).toBe("failed cancelled");
    }));

  it("stops one session and leaves the others", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      const [a, b] = [agent.ask("free", {}, { session: "a" }), agent.ask("free", {}, { session: "b" })];
      await rig.settle();
      operator.ask("callgate.freeze", { role: "agent", session: "a" });
      await rig.settle();
      const next = agent.ask("free", {}, { session: "a" });
      for (const request of files.requests.splice(0)) request.result("x");
      await rig.settle();
      expect([a.end, b.end, next.end]).toEqual([
        "failed cancelled",
        "result public x",
        "denied denied_by_grant",
      ]);
    }));

  it("of a provider loses its calls and takes it out of service", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      const reply = agent.ask("free");
      await rig.settle();
      operator.ask("callgate.freeze", { role: "files" });
      await rig.settle();
      const next = agent.ask("free");
      await rig.pass(2000);
      expect([reply.end, next.end, files.gone]).toEqual(["failed provider_lost", "failed no_provider", true]);
    }));

  it("of one's own role is answered, and not undone by oneself", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      const frozen = agent.ask("callgate.freeze", { role: "agent" });
      await rig.settle();
      expect(frozen.json["frozen"]).toBe(true);
      const thaw = agent.ask("callgate.freeze", { role: "agent", frozen: false });
      await rig.settle();
      expect(thaw.end).toBe("denied denied_by_grant");
    }));
});

describe("a cancel", () => {
  it("ends a running call for all who wait, and its answer stays for who asks again", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const [reply, joiner] = [agent.ask("free", {}, { call: 1n }), agent.ask("free", {}, { call: 1n })];
      await rig.settle();
      const cancelled = agent.ask("callgate.calls.cancel", { call: "1" });
      await rig.settle();
      files.take().result("late");
      const again = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      expect([reply, joiner, again].map(({ seen }) => seen)).toEqual([
        ...Array(3).fill(["failed cancelled"]),
      ]);
      expect(reply.sentence).toContain("The provider may have run.");
      expect(cancelled.json).toEqual({ cancelled: true, provider_told: false });
    }));

  it("is told to a provider that announced that it can be", () =>
    withRig(`${BASIC}${allow("files-announce", "files", '["callgate.tools.announce"]')}`, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      files.ask("callgate.tools.announce", { tools: [], cancellable: true });
      await rig.settle();
      agent.ask("free", {}, { call: 1n });
      await rig.settle();
      agent.ask("callgate.calls.cancel", { call: 1 });
      await rig.settle();
      expect(files.requests.map(({ body }) => [body.tool, body.session, body.call])).toEqual([
        ["free", "agent:s", 1n],
        ["callgate.calls.cancel", "agent:s", 1n],
      ]);
      expect(JSON.parse(files.requests[1]?.body.arguments ?? "")).toEqual({ session: "agent:s", call: "1" });
    }));

  it("by another user of the role is none, and by an operator is one", () =>
    withRig(BASIC.replace('users = ["agent"]', 'users = ["agent", "callgate-mail"]'), async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      const colleague = rig.peer("agent", { uid: 1004 });
      const reply = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      const foreign = colleague.ask("callgate.calls.cancel", { call: "1" });
      await rig.settle();
      expect([foreign.json["cancelled"], reply.end]).toEqual([false, "nothing yet"]);
      operator.ask("callgate.calls.cancel", { role: "agent", call: "1" });
      await rig.settle();
      expect([reply.end, files.requests.length]).toEqual(["failed cancelled", 1]);
    }));

  it("of what does not run, has ended, or is itself cancels nothing", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      agent.ask("free", {}, { call: 1n });
      await rig.settle();
      files.take().result("x");
      await rig.settle();
      const replies = ["1", "2", "3"].map((call) =>
        agent.ask("callgate.calls.cancel", { call }, { call: 3n, session: call }),
      );
      await rig.settle();
      for (const { json } of replies) expect(json["cancelled"]).toBe(false);
    }));

  it("of a call of the same id in another session works", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = agent.ask("free", {}, { call: 1n, session: "a" });
      await rig.settle();
      agent.ask("callgate.calls.cancel", { call: "1", session: "a" }, { call: 1n, session: "b" });
      await rig.settle();
      expect([reply.end, files.requests.length]).toEqual(["failed cancelled", 1]);
    }));
});

describe("a drain", () => {
  it("lets the running call finish, closes idle connections at once, takes nothing new", () =>
    withRig(BASIC, async (rig) => {
      const [agent, idle, files] = [rig.peer("agent"), rig.peer("agent"), rig.peer("files")];
      const reply = agent.ask("free");
      await rig.settle();
      const drained = rig.broker.drain(10_000);
      const refused = agent.ask("free");
      await rig.settle();
      const late = rig.peer("agent");
      await rig.settle();
      expect([idle.ended, agent.ended, files.ended, late.gone]).toEqual([true, false, false, true]);
      expect([refused.end, reply.end]).toEqual(["failed unavailable", "nothing yet"]);
      files.take().result("x");
      await rig.settle();
      expect([await drained, reply.end]).toEqual([{ unfinished: 0 }, "result public x"]);
      expect([agent.ended, files.ended]).toEqual([true, true]);
    }));

  it("ends with the last call, though that ends by its timeout", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files");
      const reply = agent.ask("read");
      await rig.settle();
      let unfinished: number | undefined;
      void rig.broker.drain(60_000).then((drained) => {
        unfinished = drained.unfinished;
      });
      await rig.pass(10_000);
      expect([unfinished, reply.end]).toEqual([0, "failed timeout"]);
    }));

  it("waits for answers that are still being written down", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      rig.store.mode = "held";
      const reply = agent.ask("nothing");
      await rig.settle();
      const drained = rig.broker.drain(60_000);
      await rig.settle();
      expect(agent.ended).toBe(false);
      rig.store.release();
      expect(await drained).toEqual({ unfinished: 0 });
      await rig.settle();
      expect([reply.end, agent.ended]).toEqual(["denied no_grant", true]);
    }));

  it("does not wait for an answer that nobody is there to get", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      rig.store.mode = "held";
      agent.ask("nothing");
      await rig.settle();
      const drained = rig.broker.drain(60_000);
      agent.reset();
      expect(await drained).toEqual({ unfinished: 0 });
    }));

  it("keeps the provider for a call whose intent is still being written down", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      rig.store.mode = "held";
      const reply = agent.ask("free");
      await rig.settle();
      const drained = rig.broker.drain(10_000);
      await rig.settle();
      expect(files.ended).toBe(false);
      rig.store.mode = "at_once";
      rig.store.release();
      await rig.settle();
      files.take().result("x");
      await rig.settle();
      expect([await drained, reply.end]).toEqual([{ unfinished: 0 }, "result public x"]);
    }));

  it("leaves what is asked meanwhile to the daemon that comes next, where one does", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = agent.ask("free");
      await rig.settle();
      const drained = rig.broker.drain(10_000, "left");
      const left = agent.ask("free");
      await rig.settle();
      files.take().result("x");
      await rig.settle();
      expect([await drained, reply.end, left.end]).toEqual([
        { unfinished: 0 },
        "result public x",
        "nothing yet",
      ]);
      expect([agent.ended, files.requests.length]).toEqual([true, 0]);
    }));

  it("counts what is unfinished after its time", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files");
      agent.ask("free");
      await rig.settle();
      const drained = rig.broker.drain(500);
      await rig.pass(500);
      expect(await drained).toEqual({ unfinished: 1 });
    }));
});

describe("a reload", () => {
  it("takes effect on open sessions at once", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      agent.ask("free");
      await rig.settle();
      await rig.reloadWith(NO_FREE);
      const denied = agent.ask("free");
      await rig.settle();
      expect([denied.end, files.requests.length]).toEqual(["denied denied_by_grant", 1]);
    }));

  it.each<[string, string]>([
    ["whose user it no longer names", BASIC.replace('users = ["agent"]', 'users = ["callgate-mail"]')],
    [
      "whose role is gone",
      `${ROLES.replace('[roles.agent]\nusers = ["agent"]\n', "")}${TOOLS}${allow("operator-operates", "operator", '["callgate.*"]')}`,
    ],
  ])("disconnects a peer %s, and the running call is recorded", (_, config) =>
    withRig(BASIC, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
      const reply = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      await rig.reloadWith(config);
      files.take().result("kept", { class: "internal" });
      await rig.pass(2000);
      expect([reply.seen, agent.gone, operator.gone, files.gone]).toEqual([[], true, false, false]);
      await rig.reloadWith(BASIC);
      const back = rig.peer("agent");
      const again = back.ask("free", {}, { call: 1n });
      await rig.settle();
      expect(again.end).toBe("result internal kept");
      const session = back.ask("callgate.sessions.show");
      await rig.settle();
      expect(session.json["taint"]).toEqual({ class: "internal", untrusted: false });
    }),
  );

  it("that fails keeps the policy, and status says that it is stale, to operators why", () =>
    withRig(BASIC, async (rig) => {
      const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
      rig.reload.answer = async () => {
        rig.broker.reloadRefused("line 3: no such key");
        return "line 3: no such key";
      };
      const { version } = rig.broker.policy;
      const reloaded = operator.ask("callgate.reload");
      await rig.settle();
      expect(reloaded.json).toEqual({ reloaded: false, policy: version, refused: "line 3: no such key" });
      const [seen, own] = [operator.ask("callgate.status"), agent.ask("callgate.status")];
      await rig.settle();
      expect(seen.json).toMatchObject({
        policy: version,
        policy_stale: true,
        policy_stale_because: "line 3: no such key",
      });
      expect([own.json["policy_stale"], own.content.includes("line 3")]).toEqual([true, false]);
      await rig.reloadWith(BASIC);
      const fresh = operator.ask("callgate.status");
      await rig.settle();
      expect(fresh.json).toMatchObject({ policy_stale: false, policy_stale_because: null });
    }));

  it("that throws is the caller's internal, and the broker goes on", () =>
    withRig(BASIC, async (rig) => {
      const [operator, other] = [rig.peer("operator"), rig.peer("operator")];
      rig.reload.answer = async () => Promise.reject(new Error("SECRET"));
      const reply = operator.ask("callgate.reload");
      await rig.settle();
      const status = other.ask("callgate.status");
      await rig.settle();
      expect([reply.end, status.json["role"]]).toEqual(["error internal", "operator"]);
    }));

  it("to another provider of a tool does not send a placed call to the old one", () =>
    withRig(`${ROLES}[roles.mail]\nusers = ["callgate-mail"]\n${TOOLS}${GRANTS}`, async (rig) => {
      const [agent, files, mail] = [rig.peer("agent"), rig.peer("files"), rig.peer("mail")];
      rig.store.mode = "held";
      const reply = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      const moved = TOOLS.replace('[tools.free]\nrole = "files"', '[tools.free]\nrole = "mail"');
      await rig.reloadWith(`${ROLES}[roles.mail]\nusers = ["callgate-mail"]\n${moved}${GRANTS}`);
      await rig.releaseAll();
      expect([reply.end, files.requests.length, mail.requests.length]).toEqual(["failed no_provider", 0, 0]);
    }));
});
