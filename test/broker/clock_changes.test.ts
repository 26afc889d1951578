// The wall clock set forward and back by an hour, while the broker runs and between two runs. Whatever has a
// length is over at its end at the latest, and what was over stays over.

import { describe, expect, it } from "vitest";
import { NOW_MS } from "../host/config_fixture.ts";
import { Approver, ASKING, ASKING_TOOLS, askGrant, PAYMENT, put } from "./approvals_rig.ts";
import { allow, BASIC, ROLES } from "./configs.ts";
import { DurableLives } from "./durable_lives.ts";
import { REPLAY_FOR_MS, withRig } from "./rig.ts";

const HOUR_MS = 3_600_000;
const HALF_MS = HOUR_MS / 2;

const TOML = `${ROLES.replace('users = ["agent"]', 'users = ["agent"]\nlimits.sessions = 2')}
[roles.frontend]
users = ["callgate-frontend"]
[roles.mail]
users = ["callgate-mail"]
sessions = "opened"
taint_scope = "session"
${ASKING_TOOLS}
[[gives]]
role = "operator"
to = ["agent"]
tools = ["free"]
taint_max = "restricted"
taint_untrusted = true
longest = "1d"
effects = ["allow"]
${allow("agent-cuts-shortly", "agent", '["cut"]', `expires = ${new Date(NOW_MS + HALF_MS).toISOString()}`)}
${allow("agent-searches-once", "agent", '["search"]', 'max_calls = 1\nmax_calls_per = "30m"')}
${allow("agent-reads", "agent", '["read", "floor"]')}
${askGrant("agent-pays", "agent", '["pay"]', 'approval_ttl = "30m"\nrefuse_for = "30m"')}
${allow("mail-reads", "mail", '["read"]')}
${allow("frontend-opens", "frontend", '["callgate.sessions.open"]')}
${allow("operator-operates", "operator", '["callgate.*"]')}
`;

/** A broker over a disk, with a provider that answers at once and a count of what it ran. */
class World {
  readonly lives: DurableLives;
  readonly ran: string[] = [];

  static async begin(toml = TOML): Promise<World> {
    const world = new World(await DurableLives.begin(toml));
    world.#provide();
    return world;
  }

  private constructor(lives: DurableLives) {
    this.lives = lives;
  }

  #provide(): void {
    this.lives.peer("files").serve = (request) => {
      this.ran.push(request.body.arguments);
      request.result("done");
    };
  }

  async restart(setByMs: number, how: "killed" | "stopped" = "killed"): Promise<void> {
    if (how === "killed") await this.lives.restart(setByMs);
    else await this.lives.stopAndStart(setByMs);
    this.#provide();
  }

  /** How a call ends, asked over a connection of its own. */
  async ends(
    role: string,
    tool: string,
    args: object = {},
    options: { session?: string; call?: bigint } = {},
  ): Promise<string> {
    const reply = await put(this.lives, this.lives.peer(role), tool, args, options);
    return reply.end;
  }

  get operator(): Approver {
    return new Approver(this.lives, "operator");
  }
}

/** Something with a length: how it begins, and what shows whether it is over. */
interface Lasting {
  readonly what: string;
  readonly lengthMs: number;
  readonly begin: (world: World) => Promise<(world: World) => Promise<string>>;
  readonly during: string;
  readonly over: string;
}

const DONE = "result public done";

async function refuseOne(world: World, args: object): Promise<void> {
  await world.ends("agent", "pay", args);
  await world.operator.refuse(await world.operator.look());
}

const LASTING: readonly Lasting[] = [
  {
    what: "a grant of the config",
    lengthMs: HALF_MS,
    begin: async (world) => {
      await world.ends("agent", "cut");
      return (later) => later.ends("agent", "cut");
    },
    during: DONE,
    over: "denied grant_expired",
  },
  {
    what: "a grant given at run time",
    lengthMs: HALF_MS,
    begin: async (world) => {
      const grant = { role: "agent", tools: ["free"], effect: "allow", reason: "for a while" };
      const taint = { taint_max: "public", taint_untrusted: false, expires_in_seconds: HALF_MS / 1000 };
      await world.ends("operator", "callgate.grants.add", { ...grant, ...taint });
      return (later) => later.ends("agent", "free");
    },
    during: DONE,
    over: "denied grant_expired",
  },
  {
    what: "an approval that is remembered",
    lengthMs: HALF_MS,
    begin: async (world) => {
      await world.ends("agent", "pay", PAYMENT);
      const remember = { what: "arguments", seconds: HALF_MS / 1000, calls: 100 };
      await world.operator.letThrough({ remember });
      return (later) => later.ends("agent", "pay", PAYMENT);
    },
    during: DONE,
    over: "nothing yet",
  },
  {
    what: "the period of max_calls",
    lengthMs: HALF_MS,
    begin: async (world) => {
      await world.ends("agent", "search");
      return (later) => later.ends("agent", "search");
    },
    during: "denied grant_expired",
    over: DONE,
  },
  {
    what: "a question, at its answer",
    lengthMs: HALF_MS,
    begin: async (world) => {
      await world.ends("agent", "pay", PAYMENT, { call: 1n });
      const shown = await world.operator.look();
      return async (later) => {
        const answer = await later.operator.approve(shown);
        const caller = await later.ends("agent", "pay", PAYMENT, { call: 1n });
        const paid = later.ran.filter((args) => args === JSON.stringify(PAYMENT)).length;
        return `${answer.end.split(" ").slice(0, 2).join(" ")}, ${caller}, ran ${paid}`;
      };
    },
    during: `result public, ${DONE}, ran 1`,
    over: "failed conflict, denied approval_expired, ran 0",
  },
  {
    what: "a refusal of equal calls",
    lengthMs: HALF_MS,
    begin: async (world) => {
      await refuseOne(world, PAYMENT);
      return (later) => later.ends("agent", "pay", PAYMENT);
    },
    during: "denied approval_refused",
    over: "nothing yet",
  },
  {
    what: "the pause of a session's questions",
    lengthMs: HOUR_MS,
    begin: async (world) => {
      for (let amount = 0; amount < 5; amount += 1) await refuseOne(world, { amount });
      return (later) => later.ends("agent", "pay", { amount: 9 });
    },
    during: "denied approval_refused",
    over: "nothing yet",
  },
  {
    what: "an opened session",
    lengthMs: HALF_MS,
    begin: async (world) => {
      const session = { role: "mail", session: "m", request: "read a", expires_in_seconds: HALF_MS / 1000 };
      await world.ends("frontend", "callgate.sessions.open", session);
      return (later) => later.ends("mail", "read", { path: "a" }, { session: "m" });
    },
    during: DONE,
    over: "denied grant_expired",
  },
  {
    what: "what is kept for replay",
    lengthMs: REPLAY_FOR_MS + 1,
    begin: async (world) => {
      await world.ends("agent", "read", { path: "a" }, { call: 5n });
      return async (later) => {
        await later.ends("agent", "read", { path: "b" }); // what is too old goes with the next record
        const before = later.ran.length;
        const again = await later.ends("agent", "read", { path: "a" }, { call: 5n });
        return `${again}, ran again ${later.ran.length - before}`;
      };
    },
    during: `${DONE}, ran again 0`,
    over: "failed conflict, ran again 0",
  },
];

type Step = (world: World, lasting: Lasting) => Promise<void>;

const wholly: Step = (world, { lengthMs }) => world.lives.pass(lengthMs);
const nearly: Step = (world, { lengthMs }) => world.lives.pass(lengthMs - 1);
const back: Step = async (world) => world.lives.clock.set(-HOUR_MS);
const forward: Step = async (world, { lengthMs }) => world.lives.clock.set(Math.max(HOUR_MS, lengthMs));
/** Anything at all is written down. */
const noted: Step = async (world) => {
  expect(await world.ends("agent", "floor", { n: world.ran.length }, { session: "other" })).toContain("done");
};
const killedAndBack: Step = (world) => world.restart(-HOUR_MS);
const killedAndForward: Step = (world, { lengthMs }) => world.restart(Math.max(HOUR_MS, lengthMs));
const stoppedAndBack: Step = (world) => world.restart(-HOUR_MS, "stopped");

const TIMELINES: readonly (readonly [string, "during" | "over", readonly Step[]])[] = [
  ["lasts until its time", "during", [nearly]],
  ["ends with its time", "over", [wholly]],
  ["ends when the clock is set forward, though no timer has fired", "over", [forward]],
  ["loses nothing to a clock that is set back", "during", [back, nearly]],
  ["is not lengthened by a clock that is set back", "over", [back, wholly]],
  ["is not brought back by a clock that is set back after its end", "over", [wholly, back]],
  ["is not brought back by a clock that is set forward, and back again", "over", [forward, noted, back]],
  ["loses nothing to a kill and a clock that is set back", "during", [killedAndBack, nearly]],
  ["is not lengthened by a kill and a clock that is set back", "over", [killedAndBack, wholly]],
  ["is ended by a clock that is set forward while nothing runs", "over", [killedAndForward]],
  ["is not brought back by a kill and a clock that is set back", "over", [wholly, noted, killedAndBack]],
  ["is not brought back by an end and a clock that is set back", "over", [wholly, stoppedAndBack]],
];

describe.each(LASTING)("$what", (lasting) => {
  it.each(TIMELINES)("%s", async (_, expected, steps) => {
    const world = await World.begin();
    const probe = await lasting.begin(world);
    for (const step of steps) await step(world, lasting);
    expect(await probe(world)).toBe(lasting[expected]);
  });
});

const SET = [
  ["forward", HOUR_MS],
  ["back", -HOUR_MS],
] as const;

describe.each(SET)("a clock that is set %s by an hour", (_, byMs) => {
  it("gives a provider neither less nor more than its tool's timeout", () =>
    withRig(BASIC, async (rig) => {
      const [agent] = [rig.peer("agent"), rig.peer("files")];
      const reply = await put(rig, agent, "read", { path: "a" });
      rig.clock.set(byMs);
      await rig.pass(9_999);
      expect(reply.end).toBe("nothing yet");
      await rig.pass(1);
      expect(reply.end).toBe("failed timeout");
    }));

  it("gives a broker that asks a human no longer than its question and the timeout", () =>
    withRig(BASIC.replace("[roles.files]\n", "[roles.files]\nbroker = true\n"), async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = await put(rig, agent, "read", { path: "a" });
      const expires = BigInt(rig.clock.nowMs() + HALF_MS);
      files.take().answer({ status: "pending_approval", approval: "theirs", expires }, false);
      await rig.settle();
      rig.clock.set(byMs);
      await rig.pass(HALF_MS + 10_000);
      expect(reply.end).toBe("failed timeout");
    }));

  it("starves no caller of its calls a second, and gives it no more than one second's", () =>
    withRig(
      BASIC.replace('users = ["agent"]', 'users = ["agent"]\nlimits.calls_per_second = 2'),
      async (rig) => {
        const agent = rig.peer("agent");
        rig.peer("files").serve = (request) => request.result("x");
        const burst = async () => [
          (await put(rig, agent, "free", {})).end,
          (await put(rig, agent, "free", {})).end,
          (await put(rig, agent, "free", {})).end,
        ];
        const two = ["result public x", "result public x", "failed capacity"];
        expect(await burst()).toEqual(two);
        rig.clock.set(byMs);
        await rig.pass(1000);
        expect(await burst()).toEqual(two);
      },
    ));
});

describe("a clock that is set forward", () => {
  it("ends a question within a minute, though nobody asks and nobody answers", () =>
    withRig(ASKING, async (rig) => {
      const agent = rig.peer("agent");
      rig.peer("files");
      const reply = await put(rig, agent, "pay");
      rig.clock.set(HOUR_MS);
      await rig.pass(60_000);
      expect(reply.end).toBe("denied approval_expired");
    }));
});

describe("a clock that is set back", () => {
  it("neither forgets an idle session early, which would be a clean slate, nor keeps it for longer", () =>
    withRig(BASIC.replace('users = ["agent"]', 'users = ["agent"]\nlimits.sessions = 1'), async (rig) => {
      rig.peer("files").serve = (request) => request.result("x");
      const ends = async (session: string) =>
        (await put(rig, rig.peer("agent"), "free", {}, { session })).end;
      expect(await ends("a")).toBe("result public x");
      rig.clock.set(-HOUR_MS);
      await rig.pass(REPLAY_FOR_MS);
      expect(await ends("b")).toBe("failed capacity");
      await rig.pass(1000);
      expect(await ends("b")).toBe("result public x");
    }));

  it("lets nobody ask more questions an hour", () =>
    withRig(
      ASKING.replace('users = ["agent"]', 'users = ["agent"]\nlimits.questions_per_hour = 2'),
      async (rig) => {
        const agent = rig.peer("agent");
        rig.peer("files");
        const ask = async (amount: number) => (await put(rig, agent, "pay", { amount })).end;
        expect([await ask(1), await ask(2)]).toEqual(["nothing yet", "failed capacity"]);
        rig.clock.set(-HOUR_MS);
        await rig.pass(HOUR_MS - 1);
        expect(await ask(3)).toBe("failed capacity");
        await rig.pass(1);
        expect(await ask(4)).toBe("nothing yet");
      },
    ));

  it("before a start writes no audit record of an earlier time than the one before it", async () => {
    const world = await World.begin();
    await world.ends("agent", "read", { path: "a" });
    await world.restart(-HOUR_MS);
    await world.ends("agent", "read", { path: "b" });
    const { audit } = world.lives.store;
    const times = [...audit.lines(1n, 1000)].map(({ text }) => (JSON.parse(text) as { at_ms: number }).at_ms);
    expect(times.length).toBeGreaterThan(3);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });
});
