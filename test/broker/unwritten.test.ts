// What becomes of a call where the store is slow, full or broken at each of its stages.

import { describe, expect, it } from "vitest";
import { BASIC } from "./configs.ts";
import { withRig } from "./rig.ts";

describe("a store that can't write", () => {
  it.each(["full", "held"] as const)(
    "runs nothing unrecorded (%s), and goes on without a restart once it can",
    (mode) =>
      withRig(BASIC, async (rig) => {
        const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
        rig.store.mode = mode;
        const [reply, joiner] = [agent.ask("free", {}, { call: 1n }), agent.ask("free", {}, { call: 1n })];
        const [denied, status] = [agent.ask("nothing"), operator.ask("callgate.status")];
        await rig.settle();
        rig.store.refuse();
        await rig.settle();
        expect([reply.end, joiner.end, denied.end]).toEqual([
          "failed unavailable",
          "failed unavailable",
          "denied no_grant",
        ]);
        expect(reply.sentence).toContain("Nothing ran.");
        expect(status.json["role"]).toBe("operator");
        expect(files.requests).toEqual([]);
        rig.store.mode = "at_once";
        const again = agent.ask("free", {}, { call: 1n });
        await rig.settle();
        files.take().result("ran");
        await rig.settle();
        expect(again.end).toBe("result public ran");
      }),
  );

  it("who joined a call whose intent could not be written hears that nothing ran", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files");
      rig.store.mode = "held";
      const [reply, joiner] = [agent.ask("free", {}, { call: 1n }), agent.ask("free", {}, { call: 1n })];
      await rig.settle();
      rig.store.refuse(1);
      await rig.releaseAll();
      expect([reply.seen, joiner.seen]).toEqual([["failed unavailable"], ["failed unavailable"]]);
      expect(joiner.sentence).toContain("Nothing ran.");
    }));

  it("an outcome that can't be written is outcome_unknown, for the retry too, and is not run again", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      rig.store.mode = "full";
      files.take().result("lost");
      await rig.settle();
      rig.store.mode = "at_once";
      const again = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      expect([reply.end, again.end, files.requests.length]).toEqual([
        "failed outcome_unknown",
        "failed outcome_unknown",
        0,
      ]);
    }));

  it("a result never arrives with a part missing in its middle", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      rig.store.mode = "held";
      const request = files.take();
      request.part("1");
      request.part("2");
      request.part("3");
      request.result("4");
      await rig.settle();
      rig.store.release(1);
      rig.store.refuse(1);
      await rig.releaseAll();
      expect(reply.seen).toEqual(["part: result public 1", "failed outcome_unknown"]);
      const again = agent.ask("free", {}, { call: 1n });
      await rig.releaseAll();
      expect(again.seen).toEqual(["failed outcome_unknown"]);
    }));

  it("a replay that can't be written down is not delivered", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      agent.ask("free", {}, { call: 1n });
      await rig.settle();
      files.take().result("CANARY");
      await rig.settle();
      rig.store.mode = "full";
      const again = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      expect(again.seen).toEqual(["failed unavailable"]);
    }));

  it("what a built-in would change does not take effect", () =>
    withRig(BASIC.replace('users = ["agent"]', 'users = ["agent"]\nsessions = "opened"'), async (rig) => {
      const [agent, operator] = [rig.peer("agent"), rig.peer("operator")];
      rig.peer("files");
      const open = { role: "agent", session: "s", expires_in_seconds: 60 };
      rig.store.mode = "held";
      const opened = operator.ask("callgate.sessions.open", open);
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      const early = agent.ask("free");
      await rig.settle();
      rig.store.refuse(1);
      await rig.releaseAll();
      expect([opened.end, early.end]).toEqual(["failed outcome_unknown", "denied no_grant"]);
      rig.store.mode = "at_once";
      const again = operator.ask("callgate.sessions.open", open);
      await rig.settle();
      expect(again.json["session"]).toBe("s");
    }));

  it("freezes all the same, and does not thaw", () =>
    withRig(BASIC, async (rig) => {
      const operator = rig.peer("operator");
      const freeze = async (frozen: boolean, stage: number) => {
        rig.store.mode = "held";
        const reply = operator.ask("callgate.freeze", { role: "agent", frozen });
        await rig.settle();
        rig.store.release(stage);
        await rig.settle();
        rig.store.refuse();
        await rig.settle();
        rig.store.mode = "at_once";
        return reply.end;
      };
      expect(await freeze(true, 1)).toBe("failed outcome_unknown");
      const refused = rig.peer("agent");
      await rig.settle();
      expect(refused.gone).toBe(true);
      expect(await freeze(false, 1)).toBe("failed outcome_unknown");
      const still = rig.peer("agent");
      await rig.settle();
      expect(still.gone).toBe(true);
    }));
});

describe("while commits wait", () => {
  it("a cancel waits behind the call that it cancels, whose caller hears one answer", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files");
      rig.store.mode = "held";
      const reply = agent.ask("free", {}, { call: 1n });
      const cancelled = agent.ask("callgate.calls.cancel", { call: "1" });
      await rig.releaseAll();
      expect([reply.seen, agent.strays, cancelled.json["cancelled"]]).toEqual([
        ["failed cancelled"],
        [],
        true,
      ]);
    }));

  it("a deny that comes by a reload stops a call that was not dispatched", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      rig.store.mode = "held";
      const reply = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      await rig.reloadWith(
        `${BASIC}[[grants]]\nid = "no"\nrole = "agent"\ntools = ["free"]\neffect = "deny"\n`,
      );
      await rig.releaseAll();
      expect([reply.end, files.requests]).toEqual(["denied denied_by_grant", []]);
    }));

  it("everything that a vanished peer held is given back", () =>
    withRig(BASIC, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const first = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      files.take().result("x");
      await rig.settle();
      expect(first.end).toBe("result public x");
      rig.store.mode = "held";
      agent.ask("free", {}, { call: 1n });
      agent.ask("free", {}, { call: 2n });
      agent.ask("free", {}, { call: 2n });
      agent.ask("nothing");
      await rig.settle();
      agent.reset();
      await rig.settle();
      const held = rig.broker.holdings().find(({ role }) => role === "agent");
      expect(held).toMatchObject({ calls_in_flight: 0, queued_bytes_in: 0, connections: 0 });
    }));
});

describe("a broken assumption", () => {
  it("of the store answers internal to the call, closes its connection, and the others go on", () =>
    withRig(BASIC, async (rig) => {
      const [agent, other, files] = [rig.peer("agent"), rig.peer("agent"), rig.peer("files")];
      rig.store.mode = "broken";
      const reply = agent.ask("free", {}, { call: 1n, id: 5n });
      await rig.settle();
      rig.store.mode = "at_once";
      expect(reply.seen).toEqual(["error internal"]);
      expect(agent.errors).toMatchObject([{ id: 5n, code: "internal" }]);
      expect([agent.ended, other.ended]).toEqual([true, false]);
      const next = other.ask("free", {}, { call: 1n });
      await rig.settle();
      files.take().result("ran");
      await rig.settle();
      expect(next.end).toBe("result public ran");
      expect(rig.events("broker.fault")).toHaveLength(1);
    }));

  it.each(["answer", "timeout", "loss", "cut part"] as const)(
    "at the end of a call (%s) leaves no call behind",
    (how) =>
      withRig(BASIC, async (rig) => {
        const [agent, files] = [rig.peer("agent"), rig.peer("files")];
        const reply = agent.ask("read", {}, { call: 1n });
        await rig.settle();
        const request = files.take();
        rig.store.mode = "broken";
        if (how === "answer") request.result("CANARY");
        else if (how === "cut part") request.part("CANARY");
        else if (how === "loss") files.vanish();
        await rig.pass(how === "timeout" ? 10_000 : 0);
        rig.store.mode = "at_once";
        expect(reply.seen).toEqual(["error internal"]);
        expect(rig.broker.runningCalls).toBe(0);
        const back = rig.peer("agent").ask("read", {}, { call: 1n });
        await rig.settle();
        expect(back.end).toBe("failed outcome_unknown");
      }),
  );

  it("behind a commit that waited is the call's own, and the store goes on", () =>
    withRig(BASIC, async (rig) => {
      const [agent, other, files] = [rig.peer("agent"), rig.peer("agent"), rig.peer("files")];
      rig.store.mode = "held";
      const reply = agent.ask("free", {}, { call: 1n });
      await rig.settle();
      const next = other.ask("free", {}, { call: 2n });
      await rig.settle();
      rig.clock.brokenTimer = new Error("SECRET");
      await rig.releaseAll();
      rig.store.mode = "at_once";
      for (const request of files.requests.splice(0)) request.result("x");
      await rig.settle();
      expect([reply.seen, next.end]).toEqual([["error internal"], "result public x"]);
      const again = rig.peer("agent").ask("free", {}, { call: 1n });
      await rig.settle();
      expect(again.end).toBe("failed outcome_unknown");
    }));

  it("of the clock is the call's own", () =>
    withRig(BASIC, async (rig) => {
      const [agent, other] = [rig.peer("agent"), rig.peer("agent")];
      await rig.settle();
      rig.clock.broken = new Error("SECRET");
      const reply = agent.ask("free");
      await rig.settle();
      expect([reply.seen, agent.ended, other.ended]).toEqual([["error internal"], true, false]);
    }));
});
