// The agent as attacker, against questions: what an approver is shown beside what runs, whose questions can be
// seen, and who can keep others from seeing theirs.

import { describe, expect, it } from "vitest";
import { Approver, ASKING, PAYMENT, put } from "./approvals_rig.ts";
import { serving } from "./grants_rig.ts";
import { withRig } from "./rig.ts";

const TTL_MS = 900_000;
const MAIL = 'users = ["callgate-mail"]\noperator = true';
const MAIL_ONLY = 'users = ["callgate-mail"]';
const TWO_USERS = ASKING.replace(
  '[roles.agent]\nusers = ["agent"]',
  '[roles.agent]\nusers = ["agent", "callgate-frontend"]',
);

describe("an approver's answer", () => {
  it.each([
    ["moved to another provider", 'role = "files"', 'role = "mail"'],
    ["of another effect", 'effect = "spend"', 'effect = "execute"'],
    ["with other destinations", 'destinations = ["to"]', 'destinations = ["to", "note"]'],
  ])("is none for a tool that a reload has %s since it was shown", (_, before, after) =>
    withRig(ASKING, async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      const reply = await put(rig, agent, "pay");
      const shown = await approver.look();
      const at = ASKING.indexOf("[tools.pay]");
      await rig.reloadWith(ASKING.slice(0, at) + ASKING.slice(at).replace(before, after));
      rig.peer("mail").serve = (request) => {
        ran.push("mail");
        request.result("stolen");
      };
      const answer = await approver.approve(shown);
      expect([answer.end, reply.seen, ran]).toEqual(["failed conflict", ["part: pending_approval"], []]);
      await approver.refuse(await approver.look());
    }),
  );

  it("that is written only after the expiry runs nothing", () =>
    withRig(ASKING, async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      const reply = await put(rig, agent, "pay", PAYMENT, { call: 1n });
      const { approval, digest } = await approver.look();
      await rig.pass(TTL_MS - 1);
      rig.store.mode = "held";
      const answer = approver.peer.ask("callgate.approvals.approve", { approval, digest });
      await rig.settle();
      rig.store.release(1);
      await rig.settle();
      await rig.pass(10);
      await rig.releaseAll();
      rig.store.mode = "at_once";
      const [record] = await approver.list({ state: "all" });
      expect([answer.end.slice(0, 6), reply.end, ran]).toEqual(["result", "denied approval_expired", []]);
      expect(record?.["state"]).toBe("approved");
    }));
});

describe("a question of another user of the same role", () => {
  it("is not shown: its arguments are that user's", () =>
    withRig(TWO_USERS, async (rig) => {
      serving(rig);
      const [mine, theirs, operator] = [
        rig.peer("agent"),
        rig.peer("agent", { uid: 1005 }),
        new Approver(rig),
      ];
      await put(rig, mine, "pay", { to: "CANARY" });
      const { approval } = await operator.look();
      const listed = await put(rig, theirs, "callgate.approvals.list", {});
      const shown = await put(rig, theirs, "callgate.approvals.show", { approval });
      expect([listed.json["approvals"], shown.end]).toEqual([[], "failed bad_arguments"]);
      const own = await put(rig, mine, "callgate.approvals.show", { approval });
      expect(own.json["approval"]).toBe(approval);
      await operator.refuse(await operator.look());
    }));
});

describe("an agent that looks for questions of others", () => {
  it("does not learn that there are any: not by the version, nor by a watch that ends", () =>
    withRig(TWO_USERS, async (rig) => {
      serving(rig);
      const [mine, theirs, operator] = [
        rig.peer("agent"),
        rig.peer("agent", { uid: 1005 }),
        new Approver(rig),
      ];
      const before = await put(rig, theirs, "callgate.approvals.list", {});
      const version = before.json["version"];
      const watching = theirs.ask("callgate.approvals.watch", { version, timeout_seconds: 30 });
      await put(rig, mine, "pay", { to: "CANARY" });
      await operator.refuse(await operator.look());
      const after = await put(rig, theirs, "callgate.approvals.list", {});
      expect([watching.end, after.json["version"]]).toEqual(["nothing yet", version]);
      await rig.pass(30_000);
      expect([watching.json["approvals"], watching.json["version"]]).toEqual([[], version]);
    }));

  it("hears of each change of its own", () =>
    withRig(TWO_USERS, async (rig) => {
      serving(rig);
      const [mine, operator] = [rig.peer("agent"), new Approver(rig)];
      const asking = mine.ask("callgate.approvals.watch", {});
      await put(rig, mine, "pay");
      expect(asking.json["approvals"]).toHaveLength(1);
      const { version } = asking.json;
      const ending = mine.ask("callgate.approvals.watch", { version, state: "ended" });
      await operator.refuse(await operator.look());
      await rig.settle();
      expect(ending.json["approvals"]).toMatchObject([{ state: "refused" }]);
      expect(ending.json["version"]).not.toBe(version);
    }));
});

describe("an agent that watches as often as it can", () => {
  it("keeps no operator from watching", () =>
    withRig(ASKING, async (rig) => {
      serving(rig);
      const peers = Array.from({ length: 5 }, () => rig.peer("agent"));
      for (const peer of peers) for (let i = 0; i < 100; i += 1) peer.ask("callgate.approvals.watch", {});
      await rig.settle();
      const operator = rig.peer("operator");
      const watching = operator.ask("callgate.approvals.watch", {});
      await rig.settle();
      expect(watching.end).toBe("nothing yet");
      await rig.pass(60_000);
      expect(watching.json["approvals"]).toEqual([]);
    }));
});

describe("who watches", () => {
  it("sees nothing of others once a reload has taken the operator's rights away", () =>
    withRig(ASKING, async (rig) => {
      serving(rig);
      const watching = rig.peer("mail").ask("callgate.approvals.watch", {});
      await rig.settle();
      await rig.reloadWith(ASKING.replace(MAIL, MAIL_ONLY));
      await put(rig, rig.peer("agent"), "pay", { to: "CANARY" });
      await rig.settle();
      expect(watching.json["approvals"]).toEqual([]);
    }));

  it("hears nothing once its grant is gone", () =>
    withRig(ASKING, async (rig) => {
      serving(rig);
      const watching = rig.peer("mail").ask("callgate.approvals.watch", {});
      await rig.settle();
      await rig.reloadWith(
        `${ASKING}[[grants]]\nid = "no"\nrole = "mail"\ntools = ["callgate.*"]\neffect = "deny"\n`,
      );
      await put(rig, rig.peer("agent"), "pay", { to: "CANARY" });
      await rig.settle();
      expect(watching.end).toBe("denied denied_by_grant");
    }));
});

describe("who was an operator when it asked", () => {
  it("freezes nobody once a reload has taken that away while its call was being written", () =>
    withRig(ASKING, async (rig) => {
      const { ran } = serving(rig);
      const [agent, mail] = [rig.peer("agent"), rig.peer("mail")];
      rig.store.mode = "held";
      const frozen = mail.ask("callgate.freeze", { role: "agent" });
      await rig.settle();
      await rig.reloadWith(ASKING.replace(MAIL, MAIL_ONLY));
      await rig.releaseAll();
      rig.store.mode = "at_once";
      await put(rig, agent, "free", {});
      expect([frozen.end, ran]).toEqual(["failed bad_arguments", ["free {}"]]);
    }));
});

describe("a question that is void", () => {
  it("does not show the arguments of a later call under the same id as its own", () =>
    withRig(ASKING, async (rig) => {
      const { ran } = serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await put(rig, agent, "pay", { to: "eve", amount: 1_000_000 }, { call: 1n });
      const shown = await approver.look();
      await rig.reloadWith(
        `${ASKING}[[grants]]\nid = "no"\nrole = "agent"\ntools = ["pay"]\neffect = "deny"\n`,
      );
      await approver.approve(shown);
      await rig.reloadWith(ASKING);
      await put(rig, agent, "free", { to: "harmless" }, { call: 1n });
      expect(ran).toEqual(['free {"to":"harmless"}']);
      const old = await approver.show(shown.approval);
      expect(JSON.stringify(old)).not.toContain("harmless");
    }));
});

describe("a follower of a refused question", () => {
  it("can be told why, as the first can", () =>
    withRig(ASKING, async (rig) => {
      serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      await put(rig, agent, "pay", PAYMENT, { call: 1n });
      await put(rig, agent, "pay", PAYMENT, { call: 2n });
      await approver.refuse(await approver.look());
      const whys = [];
      for (const call of ["1", "2"]) whys.push(await put(rig, agent, "callgate.calls.why", { call }));
      expect(whys.map(({ json }) => json["row"])).toEqual(["refused", "refused"]);
    }));
});

describe("a question whose destination is long", () => {
  it.each([
    ["a destination", { to: "x".repeat(600_000) }],
    ["a key", { ["k".repeat(600_000)]: 1 }],
    ["other than Latin", { to: "b", note: "漢".repeat(330_000) }],
    ["many numbers", `{"to":[${Array(60_000).fill("1e20").join(",")}]}`],
  ])("(%s) that is put can be shown", (_, args) => {
    const at = ASKING.indexOf("[tools.pay]");
    const open = ASKING.slice(0, at) + ASKING.slice(at).replace(/schema\..*\n/g, "");
    return withRig(open, async (rig) => {
      serving(rig);
      const [agent, approver] = [rig.peer("agent"), new Approver(rig)];
      const reply = await put(rig, agent, "pay", args);
      if (reply.end !== "nothing yet") {
        expect(reply.end).toBe("failed too_large");
        return;
      }
      const [first] = await approver.list();
      const shown = await approver.do("show", { approval: first?.approval });
      expect(shown.end.slice(0, 60)).toContain("result");
      await approver.refuse(await approver.look());
    });
  });
});
