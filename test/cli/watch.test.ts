import { afterEach, describe, expect, it } from "vitest";
import type { Question } from "../../src/client/answers.ts";
import { AnsweringBroker, at, Desk, NOW_MS } from "./desk.ts";
import { ID, question } from "./questions.ts";

/** A broker's questions as `approvals.watch` tells of them: when they change. */
class Questions {
  version = 1;
  pageMax = 200;
  #all: readonly Question[];
  #changed: (() => void)[] = [];

  constructor(...all: Question[]) {
    this.#all = all;
  }

  become(...all: Question[]): void {
    this.#all = all;
    this.version += 1;
    const changed = this.#changed;
    this.#changed = [];
    for (const wake of changed) wake();
  }

  /** In pages of `pageMax`: as the broker's are, each named by the last question of the one before. */
  list({ state, after }: Readonly<Record<string, unknown>>): object {
    const fits = this.#all.filter((one) => (state === "ended") === (one.state !== "pending"));
    const rest = fits.slice(fits.findIndex(({ approval }) => approval === after) + 1);
    const approvals = rest.slice(0, this.pageMax);
    const more = approvals.length < rest.length;
    return { approvals, version: this.version, more, next: more ? approvals.at(-1)?.approval : null };
  }

  async watch(args: Readonly<Record<string, unknown>>): Promise<object> {
    if (args["version"] === this.version) await new Promise<void>((resolve) => this.#changed.push(resolve));
    return this.list({});
  }
}

let broker: AnsweringBroker;
afterEach(() => broker.remove());

async function watching(questions: Questions, ...words: string[]) {
  broker = await AnsweringBroker.start({
    "approvals.watch": (args) => questions.watch(args),
    "approvals.list": (args) => questions.list(args),
  });
  const desk = new Desk([]);
  return { desk, ended: at(desk, broker, "approvals", "watch", ...words) };
}

const DECIDED = { decided_by: { role: "boss", uid: 0 }, decided_at_ms: NOW_MS } as const;

describe("callgate approvals watch", () => {
  it("shows what waits with the command that answers it, then what becomes of it, and ends on ctrl-C with 0", async () => {
    const questions = new Questions(question());
    const { desk, ended } = await watching(questions);
    await desk.shows(`callgate approvals approve ${ID}\n`);
    expect(desk.out_).toContain('asked     send_mail to="bob@example.org"\n');
    expect(desk.out_).toContain("role agent, session one, root (uid 0), pid 4242; 14 min left\n");
    questions.become(question({ state: "approved", ...DECIDED }));
    await desk.shows("approved  send_mail of agent by boss, root (uid 0)");
    desk.interrupt();
    expect(await ended).toBe(0);
  });

  it("says nothing twice", async () => {
    const other = question({ approval: "b".repeat(32), tool: "pay" });
    const questions = new Questions(question());
    const { desk, ended } = await watching(questions);
    await desk.shows(ID);
    questions.become(question(), other);
    await desk.shows("asked     pay");
    expect(desk.out_.match(/asked {5}send_mail/g)).toHaveLength(1);
    desk.interrupt();
    await ended;
  });

  it("tells a refusal, an expiry and a withdrawal apart", async () => {
    const ids = ["a", "b", "c"].map((letter) => letter.repeat(32));
    const [a = "", b = "", c = ""] = ids;
    const questions = new Questions(...ids.map((approval) => question({ approval })));
    const { desk, ended } = await watching(questions);
    await desk.shows(c);
    questions.become(
      question({ approval: a, state: "refused", ...DECIDED }),
      question({ approval: b, state: "expired" }),
      question({ approval: c, state: "withdrawn" }),
    );
    await desk.shows(`(${c})`);
    expect(desk.out_).toContain(`refused   send_mail of agent by boss, root (uid 0)  (${a})`);
    expect(desk.out_).toContain(`expired   send_mail of agent  (${b})`);
    expect(desk.out_).toContain(`withdrawn send_mail of agent  (${c})`);
    desk.interrupt();
    await ended;
  });

  it("goes on with the broker that comes after a restart", async () => {
    const questions = new Questions(question());
    const { desk, ended } = await watching(questions);
    await desk.shows(ID);
    await broker.restart();
    questions.become(question(), question({ approval: "e".repeat(32) }));
    await desk.shows("e".repeat(32));
    expect(desk.out_.match(new RegExp(`approve ${ID}`, "g"))).toHaveLength(1);
    desk.interrupt();
    expect(await ended).toBe(0);
  });

  it("gives programs a line of JSON for each event", async () => {
    const questions = new Questions(question({ destinations: { to: "\u202e" } }));
    const { desk, ended } = await watching(questions, "--json");
    await desk.shows(ID);
    questions.become(question({ state: "void" }));
    await desk.shows("void");
    desk.interrupt();
    await ended;
    const lines = desk.out_.trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual(["asked", "void"]);
    expect(desk.out_).not.toContain("\u202e");
    expect(desk.err_).toBe("");
  });

  it("says so while nothing waits", async () => {
    const { desk, ended } = await watching(new Questions());
    await desk.shows("no questions wait; new ones are shown as they come");
    desk.interrupt();
    expect(await ended).toBe(0);
  });

  it("knows of questions behind the first page that they wait, and of their ends", async () => {
    const ids = Array.from({ length: 7 }, (_, i) => String(i).repeat(32));
    const questions = new Questions(...ids.map((approval) => question({ approval })));
    questions.pageMax = 2;
    const { desk, ended } = await watching(questions);
    await desk.shows(`approve ${ids[6]}`);
    questions.become(
      ...ids.map((approval, i) =>
        question({ approval, ...(i === 3 ? {} : { state: "refused", ...DECIDED }) }),
      ),
    );
    for (const id of ids)
      if (id !== ids[3]) await desk.shows(`refused   send_mail of agent by boss, root (uid 0)  (${id})`);
    expect(desk.out_.match(/asked {5}send_mail/g)).toHaveLength(7);
    expect(desk.out_).not.toContain("gone");
    desk.interrupt();
    expect(await ended).toBe(0);
  });

  it("ends with the status of a denial where the role may not watch", async () => {
    broker = await AnsweringBroker.start({});
    const desk = new Desk([]);
    expect(await at(desk, broker, "approvals", "watch")).toBe(3);
    expect(desk.err_).toMatch(
      /^denied: no_grant\n {2}This socket's role .* callgate\.approvals\.list\. .*--socket/,
    );
  });

  it.each([
    ["--exec-on without --exec", ["--exec-on", "all"]],
    ["an empty command", ["--exec", " "]],
  ])("refuses %s", async (_, words) => {
    broker = await AnsweringBroker.start({});
    expect(await at(new Desk([]), broker, "approvals", "watch", ...words)).toBe(2);
    expect(broker.asked).toEqual([]);
  });

  it("runs the command of --exec for each question, with the socket to answer on", async () => {
    const questions = new Questions(question());
    const { desk, ended } = await watching(
      questions,
      "--json",
      "--exec",
      'echo "$CALLGATE_EVENT on $CALLGATE_SOCKET"',
    );
    await desk.shows(`callgate: --exec: asked on ${broker.path}\n`);
    questions.become(question({ state: "approved", ...DECIDED }), question({ approval: "c".repeat(32) }));
    await desk.shows("c".repeat(32));
    desk.interrupt();
    expect(await ended).toBe(0);
    for (const line of desk.out_.trimEnd().split("\n")) expect(JSON.parse(line)).toHaveProperty("event");
  });
});
