import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { allow, BASIC } from "./configs.ts";
import { type Rig, withRig } from "./rig.ts";

const SRC = new URL("../../src/", import.meta.url);

/** What a line of the log can be about: the first half of every event's name. */
const SUBJECT =
  "accept|answer|approval|audit|broker|call|config|connection|daemon|descriptors|grant|limit|log|peer|role|session|socket|store|taint|tool";
const EVENT = new RegExp(`"((?:${SUBJECT})\\.[a-z_]+)"`, "g");

function eventsInSource(): string[] {
  const files = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((file) =>
    /^(?:main|(?:broker|session|host|store)\/.*)\.ts$/.test(file),
  );
  const texts = files.map((file) => readFileSync(new URL(file, SRC), "utf8"));
  return [
    ...new Set(texts.flatMap((text) => [...text.matchAll(EVENT)].map((match) => match[1] ?? ""))),
  ].sort();
}

interface Documented {
  readonly levels: readonly string[];
  readonly fields: readonly string[];
  readonly bounded: boolean;
}

function documented(): Map<string, Documented> {
  const text = readFileSync(new URL("../../docs/logs.md", import.meta.url), "utf8");
  const rows = [...text.matchAll(/^\| `([a-z._]+)`( †)? *\| ([a-z, ]+?) *\| (.*?) *\|/gm)];
  return new Map(
    rows.map(([, event = "", mark, levels = "", fields = ""]) => [
      event,
      {
        levels: levels.split(", "),
        fields: [...fields.matchAll(/`([a-z_]+)`/g)].map((match) => match[1] ?? ""),
        bounded: mark !== undefined,
      },
    ]),
  );
}

describe("docs/logs.md", () => {
  it("names every event of the source, and no other", () => {
    expect([...documented().keys()].sort()).toEqual(eventsInSource());
  });

  it("marks the events that are bounded", () => {
    const source = readFileSync(new URL("broker/log_budget.ts", SRC), "utf8");
    const bounded = [...source.slice(0, source.indexOf("]);")).matchAll(EVENT)].map((match) => match[1]);
    const marked = [...documented()].filter(([, row]) => row.bounded).map(([event]) => event);
    expect(marked.sort()).toEqual(bounded.sort());
  });
});

const CANARY = "CANARY-7f3a";
const EVERYTHING = BASIC.replace(
  'users = ["agent"]',
  'users = ["agent"]\n[roles.agent.limits]\ncalls_in_flight = 3',
)
  .replace('class_max = "confidential"', 'class_max = "confidential"\nprovides = ["files."]')
  .concat(allow("files-announce", "files", '["callgate.*"]'));

/** A little of everything that a peer can say, each text of it marked. */
async function sayEverything(rig: Rig): Promise<void> {
  const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), rig.peer("operator")];
  const args = { path: CANARY, [CANARY]: CANARY };
  for (const tool of [
    "free",
    "read",
    CANARY.toLowerCase(),
    `callgate.${CANARY.toLowerCase()}`,
    "callgate.calls.why",
  ])
    agent.ask(tool, args);
  agent.ask("free", `{"${CANARY}":`);
  await rig.settle();
  for (const request of files.requests.splice(0)) request.fail(CANARY);
  for (const content of [CANARY, "x"]) {
    agent.ask("free", args, { call: 9n });
    await rig.settle();
    for (const request of files.requests.splice(0)) request.result(content);
  }
  files.answer(77n, { status: "failed", message: CANARY });
  files.ask("callgate.tools.announce", {
    tools: [{ name: "files.x", description: CANARY }, { name: CANARY }],
  });
  operator.ask("callgate.sessions.open", {
    role: CANARY,
    session: "s",
    request: CANARY,
    expires_in_seconds: 5,
  });
  operator.ask("callgate.grants.explain", { tool: CANARY, arguments: `{"${CANARY}":1}` });
  operator.ask("callgate.freeze", { role: CANARY });
  for (let i = 0; i < 5; i += 1) agent.ask("free", args);
  await rig.settle();
  rig.store.mode = "broken";
  for (const request of files.requests.splice(0)) request.result(CANARY);
  await rig.settle();
  rig.store.mode = "at_once";
  files.error(0n, "internal", CANARY);
  for (const text of [`{"v":1,"${CANARY}":2}`, CANARY, `{"v":"${CANARY}"}`]) {
    const peer = rig.peer("agent");
    const body = Buffer.from(text);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(body.length);
    peer.write(Buffer.concat([head, body]));
  }
  await rig.pass(5000);
}

describe("the log", () => {
  it("holds no word of a peer's, and of each event only the fields that are documented", () =>
    withRig(EVERYTHING, async (rig) => {
      await sayEverything(rig);
      const known = documented();
      for (const { level, event, fields } of rig.log) {
        const row = known.get(event);
        expect(row?.levels, event).toContain(level);
        const given = Object.keys(fields).filter((name) => fields[name] !== undefined);
        expect(
          given.filter((name) => !row?.fields.includes(name)),
          event,
        ).toEqual([]);
      }
      const seen = new Set(rig.log.map(({ event }) => event));
      for (const event of [
        "call.denied",
        "call.refused",
        "call.ended",
        "broker.fault",
        "connection.refused",
        "peer.error",
        "answer.ignored",
        "tool.announced",
      ])
        expect(seen).toContain(event);
      expect(JSON.stringify(rig.log).toLowerCase()).not.toContain("canary");
    }));

  it("is not flooded by a caller far beyond its calls a second", () =>
    withRig(
      BASIC.replace('users = ["agent"]', 'users = ["agent"]\n[roles.agent.limits]\ncalls_per_second = 5'),
      async (rig) => {
        const agent = rig.peer("agent");
        const replies = Array.from({ length: 2000 }, () => agent.ask("nothing"));
        await rig.settle();
        expect(replies.filter(({ end }) => end === "failed capacity")).toHaveLength(1995);
        expect(rig.events("call.denied")).toHaveLength(5);
        expect(rig.log.length).toBeLessThan(120);
        await rig.pass(1000);
        agent.ask("nothing");
        for (let i = 0; i < 10; i += 1) agent.ask("nothing");
        await rig.settle();
        expect(rig.events("log.suppressed")).toMatchObject([
          { fields: { of: "call.turned_away", lines: 1895 } },
        ]);
      },
    ));

  it("has a line for every call, and is not flooded by what is no call", () =>
    withRig(BASIC, async (rig) => {
      const agent = rig.peer("agent");
      for (let i = 0; i < 3000; i += 1) agent.ask("nothing");
      for (let i = 0; i < 300; i += 1) rig.peer("files").error(0n, "internal");
      await rig.settle();
      expect(rig.events("call.denied")).toHaveLength(3000);
      expect(rig.events("call.turned_away")).toEqual([]);
      expect(rig.events("peer.error").length + rig.events("limit.reached").length).toBeLessThanOrEqual(200);
    }));
});
