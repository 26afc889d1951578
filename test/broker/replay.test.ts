import { describe, expect, it } from "vitest";
import { encodeMessage } from "../../src/wire/envelope.ts";
import { allow, BASIC } from "./configs.ts";
import { REPLAY_FOR_MS, type Rig, withRig } from "./rig.ts";
import type { Reply, RigPeer } from "./rig_peer.ts";

const bytes = (reply: Reply) => reply.envelopes.map(({ msg }) => encodeMessage(msg).toString());

async function ran(
  rig: Rig,
  agent: RigPeer,
  files: RigPeer,
  call: bigint,
  content = "CANARY",
): Promise<Reply> {
  const reply = agent.ask("free", {}, { call });
  await rig.settle();
  const request = files.take();
  request.part("part, ");
  request.result(content, { class: "internal" });
  await rig.settle();
  return reply;
}

describe("the same call again", () => {
  it.each(["at_once", "held"] as const)("gets the recorded messages byte for byte, commits %s", (mode) =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const first = await ran(rig, agent, files, 1n);
      rig.store.mode = mode;
      const again = [agent, rig.peer("agent")].map((peer) => peer.ask("free", {}, { call: 1n, id: 99n }));
      await rig.releaseAll();
      for (const reply of again) expect(bytes(reply)).toEqual(bytes(first));
      expect(files.requests).toEqual([]);
    }),
  );

  it.each([0, 1, 2, 3, 4])(
    "joins the running one and gets everything from the first message, released after %i commits",
    (after) =>
      withRig(BASIC, async (rig) => {
        const [agent, files] = [rig.peer("agent"), rig.peer("files")];
        const first = agent.ask("free", {}, { call: 1n });
        await rig.settle();
        rig.store.mode = "held";
        const joiner = agent.ask("free", {}, { call: 1n });
        const request = files.take();
        request.part("1");
        await rig.settle();
        rig.store.release(Math.min(after, rig.store.waiting));
        await rig.settle();
        const second = rig.peer("agent").ask("free", {}, { call: 1n });
        request.part("2");
        request.result("3", { class: "internal" });
        await rig.settle();
        const late = agent.ask("free", {}, { call: 1n });
        await rig.releaseAll();
        expect(first.seen).toEqual(["part: result public 1", "part: result public 2", "result internal 3"]);
        for (const reply of [joiner, second, late]) expect(bytes(reply)).toEqual(bytes(first));
      }),
  );

  it("with the same id before its intent is written still runs once", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      rig.store.mode = "held";
      const replies = [agent.ask("free", {}, { call: 1n }), agent.ask("free", {}, { call: 1n })];
      await rig.releaseAll();
      expect(files.requests).toHaveLength(1);
      files.take().result("once");
      await rig.releaseAll();
      expect(replies.map(({ end }) => end)).toEqual(["result public once", "result public once"]);
    }));

  it.each<[string, string, string | object, object]>([
    ["other arguments", "free", { a: 1 }, {}],
    ["another spelling of the same arguments", "free", "{ }", {}],
    ["another tool", "read", {}, {}],
  ])("with %s is a conflict", (_, tool, args) =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await ran(rig, agent, files, 1n);
      const running = agent.ask("free", {}, { call: 2n });
      const replies = [agent.ask(tool, args, { call: 1n }), agent.ask(tool, args, { call: 2n })];
      await rig.settle();
      expect(replies.map(({ end }) => end)).toEqual(["failed conflict", "failed conflict"]);
      files.take().result("x");
      await rig.settle();
      expect(running.end).toBe("result public x");
    }),
  );

  it("by another user is denied, whether or not the arguments are the same", () =>
    withRig(BASIC.replace('users = ["agent"]', 'users = ["agent", "callgate-mail"]'), async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await ran(rig, agent, files, 1n);
      const foreign = rig.peer("agent", { uid: 1004 });
      const replies = [foreign.ask("free", {}, { call: 1n }), foreign.ask("free", { a: 1 }, { call: 1n })];
      await rig.settle();
      expect(replies.map(({ end }) => end)).toEqual(["denied denied_by_grant", "denied denied_by_grant"]);
    }));

  it("is denied by a deny that came since", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await ran(rig, agent, files, 1n);
      const running = agent.ask("free", {}, { call: 2n });
      await rig.settle();
      await rig.reloadWith(
        `${BASIC}[[grants]]\nid = "no"\nrole = "agent"\ntools = ["free"]\neffect = "deny"\n`,
      );
      const replies = [agent.ask("free", {}, { call: 1n }), agent.ask("free", {}, { call: 2n })];
      await rig.settle();
      expect(replies.map(({ end }) => end)).toEqual(["denied denied_by_grant", "denied denied_by_grant"]);
      files.take().result("x");
      await rig.settle();
      expect(running.end).toBe("result public x");
    }));

  it("after its record was pruned is a conflict, as is every older id of its session", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      await ran(rig, agent, files, 5n);
      await rig.pass(REPLAY_FOR_MS + 1);
      await ran(rig, agent, files, 6n);
      const replies = [3n, 5n, 6n].map((call) => agent.ask("free", {}, { call }));
      await rig.settle();
      expect(replies.map(({ end }) => end)).toEqual([
        "failed conflict",
        "failed conflict",
        "result internal CANARY",
      ]);
      expect(files.requests).toEqual([]);
    }));

  it("is not kept beyond the role's stored bytes", () =>
    withRig(
      BASIC.replace('users = ["agent"]', 'users = ["agent"]\n[roles.agent.limits]\nstored_bytes = 10000\n'),
      async (rig) => {
        const [agent, files] = [rig.peer("agent"), rig.peer("files")];
        for (let call = 1n; call <= 20n; call += 1n) await ran(rig, agent, files, call, "x".repeat(1000));
        const replies = [1n, 20n].map((call) => agent.ask("free", {}, { call }));
        await rig.settle();
        expect(replies.map(({ end }) => end.slice(0, 15))).toEqual(["failed conflict", "result internal"]);
      },
    ));

  it("after its caller had gone is joined while it runs and replayed after", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      agent.ask("free", {}, { call: 1n });
      agent.ask("free", {}, { call: 2n });
      await rig.settle();
      agent.vanish();
      await rig.settle();
      files.take().result("one");
      await rig.settle();
      const back = rig.peer("agent");
      const replies = [back.ask("free", {}, { call: 1n }), back.ask("free", {}, { call: 2n })];
      await rig.settle();
      files.take().result("two");
      await rig.settle();
      expect(replies.map(({ end }) => end)).toEqual(["result public one", "result public two"]);
      expect(files.requests).toEqual([]);
    }));

  it("of a half-closed caller is answered before it is let go", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const [reply, denied] = [agent.ask("free"), agent.ask("nothing")];
      rig.store.mode = "held";
      agent.halfClose();
      await rig.releaseAll();
      expect([denied.end, agent.ended]).toEqual(["denied no_grant", false]);
      files.take().result("x");
      await rig.releaseAll();
      expect([reply.end, agent.ended]).toEqual(["result public x", true]);
    }));

  it("of what only reads in the broker is asked afresh", () =>
    withRig(BASIC, async (rig) => {
      const operator = rig.peer("operator");
      const first = operator.ask("callgate.status", {}, { call: 1n });
      await rig.pass(5000);
      const second = operator.ask("callgate.status", {}, { call: 1n });
      await rig.settle();
      expect([first, second].map(({ json }) => json["uptime_ms"])).toEqual([0, 5000]);
    }));

  it("of what changes something in the broker changes it once", () =>
    withRig(`${BASIC}${allow("x", "operator", '["nothing.*"]')}`, async (rig) => {
      const operator = rig.peer("operator");
      let reloads = 0;
      rig.reload.answer = async () => {
        reloads += 1;
        return undefined;
      };
      const replies = [
        operator.ask("callgate.reload", {}, { call: 1n }),
        operator.ask("callgate.reload", {}, { call: 1n }),
      ];
      await rig.settle();
      const third = operator.ask("callgate.reload", {}, { call: 1n });
      await rig.settle();
      expect([reloads, ...replies.map((reply) => bytes(reply)[0])]).toEqual([
        1,
        bytes(third)[0],
        bytes(third)[0],
      ]);
    }));
});
