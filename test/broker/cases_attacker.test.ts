// The agent as attacker, against questions, taint and replay over days and restarts: what it would try once it
// was refused, once it was given a secret, or once a payment went wrong.

import { describe, expect, it } from "vitest";
import {
  Approver,
  ASKING,
  ASKING_ROLES,
  ASKING_TOOLS,
  askGrant,
  OPERATORS,
  PAYMENT,
  put,
} from "./approvals_rig.ts";
import { allow } from "./configs.ts";
import { DurableLives } from "./durable_lives.ts";
import { withRig } from "./rig.ts";

const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;

/** Spellings of one payment, none of them the same bytes. */
function spelling(n: number): string {
  const spaces = " ".repeat(n % 7);
  const amount = ["5", "5.0", "5e0", "0.5e1", "50e-1"][n % 5];
  const to = ['"bob"', '"b\\u006fb"', '"\\u0062ob"'][n % 3];
  const members = [`"to":${spaces}${to}`, `${spaces}"amount": ${amount}`];
  return `{${(n % 2 === 0 ? members : members.reverse()).join(",")}}`;
}

describe("a call that was refused for a week", () => {
  it("is one question, under whatever id, session, spelling, connection and day it is asked again", async () => {
    const lives = await DurableLives.begin(
      ASKING.replace('reason = "money"', 'reason = "money"\nrefuse_for = "7d"'),
    );
    lives.peer("files");
    await put(lives, lives.peer("agent"), "pay", spelling(0));
    await new Approver(lives).refuse(await new Approver(lives).look());
    for (let hour = 1; hour < 7 * DAY_HOURS; hour += 1) {
      await lives.pass(HOUR_MS);
      if (hour % DAY_HOURS === 0) {
        if (hour % (2 * DAY_HOURS) === 0) await lives.restart();
        else await lives.stopAndStart();
        lives.peer("files");
      }
      const agent = lives.peer("agent");
      const reply = await put(lives, agent, "pay", spelling(hour), { session: `s${hour % 5}` });
      expect([hour, reply.end]).toEqual([hour, "denied approval_refused"]);
      agent.reset();
    }
    expect(await new Approver(lives).list({ state: "all" })).toHaveLength(1);
    await lives.pass(HOUR_MS);
    const later = await put(lives, lives.peer("agent"), "pay", spelling(3));
    expect(later.seen).toEqual(["part: pending_approval"]);
  });
});

describe("a payment whose end nobody knows", () => {
  const DOING = `${ASKING_ROLES}${ASKING_TOOLS}${OPERATORS}${allow("agent-does", "agent", '["pay"]')}`;

  it("asked again in every spelling, session and life is one that an approver sees the first of", async () => {
    const lives = await DurableLives.begin(DOING);
    lives.peer("files");
    const first = await put(lives, lives.peer("agent"), "pay", spelling(0), { call: 1n });
    await lives.pass(HOUR_MS);
    expect(first.end).toBe("failed timeout");
    for (let n = 1; n <= 6; n += 1) {
      if (n % 2 === 0) await lives.restart();
      const files = lives.peer("files");
      const session = `s${n}`;
      const reply = await put(lives, lives.peer("agent"), "pay", spelling(n), { session });
      expect([reply.seen, files.requests]).toEqual([["part: pending_approval"], []]);
      const operator = new Approver(lives);
      const asked = (await operator.list()).find((one) => one["session"] === session);
      const shown = await operator.show(asked!.approval);
      expect(shown).toMatchObject({ row: "doubt", doubt: { call: "1", code: "timeout" } });
    }
  });
});

describe("an ask beside a plain allow", () => {
  const GUARDED = `${ASKING_ROLES}${ASKING_TOOLS}${OPERATORS}
${allow("agent-pays", "agent", '["pay", "free"]')}
${askGrant("large", "agent", '["pay"]', 'when = "args.amount > 100"').replace('taint_max = "restricted"', 'taint_max = "internal"')}`;

  it.each([
    ["a number above", '{"to":"bob","amount":101}'],
    ["a string", '{"to":"bob","amount":"1"}'],
    ["a list", '{"to":"bob","amount":[1]}'],
    ["nothing", '{"to":"bob"}'],
    ["null", '{"to":"bob","amount":null}'],
    ["true", '{"to":"bob","amount":true}'],
    ["more than a double holds", '{"to":"bob","amount":1e999}'],
  ])("does not let %s through to it", (_, args) =>
    withRig(
      GUARDED.replaceAll(
        'schema.properties.amount = { type = "number" }\n',
        "schema.properties.amount = {}\n",
      ),
      async (rig) => {
        const [agent, files] = [rig.peer("agent"), rig.peer("files")];
        const reply = await put(rig, agent, "pay", args);
        expect(files.requests).toEqual([]);
        expect(["nothing yet", "failed bad_arguments"]).toContain(reply.end);
      },
    ),
  );

  it("does not let a large payment through once the session's taint is above the ask's", () =>
    withRig(GUARDED, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      agent.ask("free");
      await rig.settle();
      files.take().result("x", { class: "confidential" });
      await rig.settle();
      const reply = await put(rig, agent, "pay", { to: "bob", amount: 101 });
      expect([reply.end, files.requests]).toEqual(["denied taint_too_high", []]);
    }));

  it("does not let it through once the ask has expired", () =>
    withRig(GUARDED, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const expires = new Date(rig.clock.nowMs() + HOUR_MS).toISOString();
      await rig.reloadWith(GUARDED.replace("when = ", `expires = ${expires}\nwhen = `));
      await rig.pass(HOUR_MS);
      const reply = await put(rig, agent, "pay", { to: "bob", amount: 101 });
      expect([reply.end, files.requests]).toEqual(["denied grant_expired", []]);
    }));
});

describe("a condition that cannot judge its argument", () => {
  const ODD = ["etc/passwd", "../etc", "/srv/../etc", "/etc\\u0000", "", "/srv/%2e%2e/etc", "//etc"];
  const PATHS = `${ASKING_ROLES}${ASKING_TOOLS}${allow("agent-reads", "agent", '["read"]')}
[[grants]]
id = "not-etc"
role = "agent"
tools = ["read"]
effect = "deny"
when = 'under(args.path, "/etc")'
`;

  it.each(ODD)("(a deny, %j) denies", (path) =>
    withRig(PATHS, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = await put(rig, agent, "read", `{"path":"${path}"}`);
      expect([reply.end, files.requests]).toEqual(["denied denied_by_grant", []]);
    }),
  );

  const HOSTS = `${ASKING_ROLES}${ASKING_TOOLS}${allow("agent-finds", "agent", '["search"]', `when = '!host_in(args.text, ["bank.example"])'`)}`;

  it.each([
    "bank.example",
    "//bank.example/",
    "http://bank.example@evil.test",
    "HTTP://x.test",
    "http://x.test\\u0000",
    "",
    "file:///etc",
  ])("(an allow that negates, %j) does not allow", (url) =>
    withRig(HOSTS, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = await put(rig, agent, "search", `{"text":"${url}"}`);
      expect([reply.end, files.requests]).toEqual(["denied no_grant", []]);
    }),
  );

  it("both let what they can judge through", () =>
    withRig(
      `${PATHS}${allow("agent-finds", "agent", '["search"]', `when = '!host_in(args.text, ["bank.example"])'`)}`,
      async (rig) => {
        const agent = rig.peer("agent");
        rig.peer("files").serve = (request) => request.result("x");
        const replies = [
          await put(rig, agent, "read", { path: "/srv/a" }),
          await put(rig, agent, "search", { text: "http://x.test/" }),
        ];
        expect(replies.map(({ end }) => end)).toEqual(["result public x", "result public x"]);
      },
    ));
});

describe("two roles with the same session and call id", () => {
  it("never hear each other's answer where humans are asked either, and the provider can tell them apart", () =>
    withRig(ASKING, async (rig) => {
      const [agent, other, files] = [rig.peer("agent"), rig.peer("other"), rig.peer("files")];
      const replies = [
        await put(rig, agent, "pay", PAYMENT, { call: 1n }),
        await put(rig, other, "pay", PAYMENT, { call: 1n }),
      ];
      const operator = new Approver(rig);
      const questions = await operator.list();
      expect(questions.map(({ role }) => role)).toEqual(["agent", "other"]);
      for (const { approval } of questions) await operator.approve(await operator.show(approval));
      const requests = files.requests.splice(0);
      expect(requests.map(({ body }) => `${body.session} ${body.call}`)).toEqual(["agent:s 1", "other:s 1"]);
      for (const request of requests) request.result(`for ${request.body.session}`);
      await rig.settle();
      const ends = ["result public for agent:s", "result public for other:s"];
      expect(replies.map(({ end }) => end)).toEqual(ends);
      const again = [
        await put(rig, agent, "pay", PAYMENT, { call: 1n }),
        await put(rig, other, "pay", PAYMENT, { call: 1n }),
      ];
      expect(again.map(({ end }) => end)).toEqual(ends);
    }));
});

describe("a secret", () => {
  it("put into a pending call taints the operator that shows or watches the question, too, over a restart", async () => {
    const lives = await DurableLives.begin(ASKING);
    const files = lives.peer("files");
    const agent = lives.peer("agent");
    agent.ask("free");
    await lives.settle();
    files.take().result("x", { class: "confidential", untrusted: true });
    await lives.settle();
    await put(lives, agent, "pay", { to: "bob", note: "SECRET" });
    await lives.restart();
    const operator = new Approver(lives);
    const [listed] = await operator.list();
    for (const [tool, args] of [
      ["list", {}],
      ["list", { state: "all" }],
      ["show", { approval: listed?.approval }],
      ["watch", { version: 0 }],
    ] as const) {
      expect([tool, (await operator.do(tool, args)).end]).toEqual([
        tool,
        expect.stringMatching(/^result confidential untrusted /),
      ]);
    }
  });
});
