// What is done while the daemon may die, for every kind of outcome, and what must hold when it is back.

import { expect } from "vitest";
import type { Call, Story } from "./story.ts";
import { shown, wordsOf } from "./world.ts";

export interface Script {
  readonly name: string;
  /** Before anything can die. */
  prepare?(story: Story): Promise<unknown>;
  /** Dies anywhere in here, or nowhere. The calls that it makes are kept in `calls`. */
  live(story: Story, calls: Call[]): Promise<unknown>;
  /** On the daemon that is there then. */
  after(story: Story, calls: Call[]): Promise<unknown>;
}

const UNKNOWN = "failed outcome_unknown";
const RESULT = "result public three";

/** Nobody is asked in these. */
async function unasked(question: string): Promise<never> {
  throw new Error(`nobody should be asked about ${question}`);
}

/** A call that nobody is asked about: asked, heard, asked again. */
function plain(name: string, tool: string, does: string, outcome: string | RegExp): Script {
  return {
    name,
    live: async (story, calls) => {
      const call = story.call(tool, does);
      calls.push(call);
      await call.final();
    },
    after: async (story, [call]) => {
      if (call === undefined) return;
      const words = wordsOf(await story.again(call, unasked));
      if (words !== UNKNOWN) expect(words).toMatch(outcome);
      if (words.startsWith("result")) expect(story.runs(call)).toBe(1);
    },
  };
}

/** Asks and keeps the question. */
async function askQuestion(story: Story, calls: Call[], tool = "asked") {
  const call = story.call(tool, "one");
  calls.push(call);
  const asked = call.ask();
  const question = await asked.question;
  if (question === undefined) throw new Error(`no question but ${wordsOf(await asked.final)}`);
  story.question = question;
  return { call, asked, question };
}

/** What was heard of a question is never lost: it is still there, in one of these states. */
async function expectKept(story: Story, states: readonly string[]): Promise<void> {
  if (story.question !== undefined) expect(states).toContain(await story.stateOf(story.question));
}

async function approve(story: Story, question: string, more: object = {}): Promise<void> {
  await (await story.approving(question, more)).final();
}

function approved(name: string, more: object): Script {
  return {
    name,
    live: async (story, calls) => {
      const { call, asked, question } = await askQuestion(story, calls);
      const approving = await story.approving(question, more);
      calls.push(approving);
      story.approved = await approving.final();
      await call.final(asked);
    },
    after: async (story, [call, approving]) => {
      if (call === undefined) return;
      await expectKept(story, story.approved === undefined ? ["pending", "approved"] : ["approved"]);
      const mayAsk = story.approved === undefined;
      const words = wordsOf(
        await story.again(call, (question) => (mayAsk ? approve(story, question) : unasked(question))),
      );
      expect([RESULT, UNKNOWN]).toContain(words);
      expect(story.runs(call)).toBeLessThanOrEqual(1);
      if (words === RESULT) expect(story.runs(call)).toBe(1);
      if (approving === undefined) return;
      // The approver's own call, asked again: as it was heard, or lost against the one above.
      const heard = story.approved;
      const again = await approving.final();
      if (heard !== undefined) expect(again.bytes).toEqual(heard.bytes);
      if (wordsOf(again).startsWith("result")) await expectKept(story, ["approved"]);
    },
  };
}

const refused: Script = {
  name: "asked and refused",
  live: async (story, calls) => {
    const { call, asked, question } = await askQuestion(story, calls);
    const refusing = story.operating("approvals.refuse", () => ({ approval: question }));
    story.approved = await refusing.final();
    await call.final(asked);
  },
  after: async (story, [call]) => {
    if (call === undefined) return;
    const heard = story.approved !== undefined;
    await expectKept(story, heard ? ["refused"] : ["pending", "refused"]);
    const refuse = (question: string) =>
      heard ? unasked(question) : story.operating("approvals.refuse", () => ({ approval: question })).final();
    expect(wordsOf(await story.again(call, refuse))).toBe("denied approval_refused");
    expect(story.runs(call)).toBe(0);
  },
};

const expired: Script = {
  name: "asked and expired",
  live: async (story, calls) => {
    const { call, asked } = await askQuestion(story, calls, "fleeting");
    await call.final(asked);
  },
  after: async (story, [call]) => {
    if (call === undefined) return;
    expect(wordsOf(await story.again(call, async () => undefined))).toBe("denied approval_expired");
    await expectKept(story, ["expired"]);
    expect(story.runs(call)).toBe(0);
  },
};

const withdrawn: Script = {
  name: "asked and withdrawn",
  live: async (story, calls) => {
    const { call, asked } = await askQuestion(story, calls);
    await story.cancel(call);
    await call.final(asked);
  },
  after: async (story, [call]) => {
    if (call === undefined) return;
    await expectKept(story, call.heard === undefined ? ["pending", "withdrawn"] : ["withdrawn"]);
    expect(wordsOf(await story.again(call, () => story.cancel(call)))).toBe("failed cancelled");
    expect(story.runs(call)).toBe(0);
  },
};

const cancelled: Script = {
  name: "cancelled while it runs",
  live: async (story, calls) => {
    const call = story.call("run", "nothing");
    calls.push(call);
    const asked = call.ask();
    await Promise.race([story.world.given(story.session, call.id), asked.final]);
    await story.cancel(call);
    await call.final(asked);
  },
  after: async (story, [call]) => {
    if (call === undefined) return;
    const ran = story.runs(call);
    const asked = call.ask();
    // Where nothing of it was written it runs now, and is cancelled again.
    const given = story.world.given(story.session, call.id);
    if (ran === 0) await Promise.race([given.then(() => story.cancel(call)), asked.final]);
    expect(["failed cancelled", UNKNOWN]).toContain(wordsOf(await call.final(asked)));
    expect(story.runs(call)).toBeLessThanOrEqual(1);
  },
};

/** Nobody knows what became of the first call: an operator says so while everything may end once more. */
const settled: Script = {
  name: "settled",
  prepare: async (story) => {
    const call = story.call("run", "nothing");
    call.ask();
    await story.world.given(story.session, call.id);
    await story.world.restart();
    story.unknown = call;
  },
  live: async (story, calls) => {
    const call = story.unknown!;
    expect(wordsOf(await call.final())).toBe(UNKNOWN);
    const settling = settle(story, call);
    calls.push(call, settling);
    story.approved = await settling.final();
    await call.final();
  },
  after: async (story, [call]) => {
    if (call === undefined) return;
    const words = wordsOf(await story.again(call, unasked));
    if (story.approved !== undefined || words !== UNKNOWN) expect(words).toBe("result public settled");
    else await settle(story, call).final();
    expect(wordsOf(await story.again(call, unasked))).toBe("result public settled");
    expect(story.runs(call)).toBe(1);
  },
};

function settle(story: Story, call: Call): Call {
  const said = { as: "result", text: "settled", class: "public", untrusted: false };
  return story.operating("calls.settle", () => ({
    role: "agent",
    session: story.session,
    call: call.id.toString(),
    ...said,
  }));
}

const opened: Script = {
  name: "a session opened",
  live: async (story, calls) => {
    const opening = story.opening(`${story.session}-own`);
    calls.push(opening);
    await opening.final();
  },
  after: async (story, [opening]) => {
    if (opening === undefined) return;
    const heard = opening.heard;
    const again = wordsOf(await opening.final());
    if (heard === undefined) expect(again).toMatch(/^(?:result|failed outcome_unknown)/);
    const own = story.operating("sessions.show", () => ({ role: "agent", session: `${story.session}-own` }));
    expect(wordsOf(await own.final()).startsWith("result")).toBe(again.startsWith("result"));
  },
};

const SECRET = { class: "confidential", untrusted: true };
const CLEAN = { class: "public", untrusted: false };

const tainted: Script = {
  name: "a taint raised",
  live: async (story, calls) => {
    const call = story.call("secret", "one");
    calls.push(call);
    await call.final();
  },
  after: async (story, [call]) => {
    if (call === undefined) return;
    if (call.heard !== undefined) expect((await story.taint()).taint).toEqual(SECRET);
    const words = wordsOf(await story.again(call, unasked));
    expect(["result confidential untrusted three", UNKNOWN]).toContain(words);
    if (words !== UNKNOWN) expect((await story.taint()).taint).toEqual(SECRET);
  },
};

const endorsed: Script = {
  name: "a taint endorsed",
  prepare: async (story) => {
    await story.call("secret", "one").final();
    story.taintVersion = (await story.taint()).version;
  },
  live: async (story, calls) => {
    const endorsing = endorse(story);
    calls.push(endorsing);
    await endorsing.final();
  },
  after: async (story, [endorsing]) => {
    if (endorsing === undefined) return;
    const before = endorsing.heard;
    const { taint } = await story.taint();
    expect([SECRET, CLEAN]).toContainEqual(taint);
    if (before !== undefined) expect(taint).toEqual(CLEAN);
    const again = wordsOf(await endorsing.final());
    if (again.startsWith("result")) expect((await story.taint()).taint).toEqual(CLEAN);
  },
};

function endorse(story: Story): Call {
  const { session, taintVersion: version } = story;
  const reason = "it was looked at";
  return story.operating("sessions.endorse", () => ({
    role: "agent",
    session,
    version,
    ...CLEAN,
    reason,
  }));
}

const REMEMBER = { remember: { what: "tool", seconds: 600 } };
const remembers = approved("asked, approved and remembered", REMEMBER);

const remembered: Script = {
  ...remembers,
  after: async (story, calls) => {
    const heard = story.approved;
    await remembers.after(story, calls);
    if (heard === undefined) return;
    const { remembered: id } = shown(heard);
    const { grants } = await story.world.operate("grants.list", {});
    expect((grants as { id: string }[]).map(({ id: one }) => one)).toContain(id);
    const another = story.call("asked", "one", { other: "arguments" });
    expect(wordsOf(await another.final())).toBe(RESULT);
  },
};

/** The second has an id of its own and no question. */
const followed: Script = {
  name: "asked twice and approved once",
  live: async (story, calls) => {
    const { call, asked, question } = await askQuestion(story, calls);
    const equal = story.call("asked", "one");
    calls.push(equal);
    const askedToo = equal.ask();
    expect(await askedToo.question).toBe(question);
    story.approved = await (await story.approving(question)).final();
    await call.final(asked);
    await equal.final(askedToo);
  },
  after: async (story, calls) => {
    const decide = (question: string) => approve(story, question);
    for (const call of calls) {
      const words = wordsOf(await story.again(call, decide));
      expect([RESULT, UNKNOWN]).toContain(words);
    }
    const [call, equal] = calls;
    if (call !== undefined && call.heard !== undefined && story.approved !== undefined)
      expect(story.runs(call) + (equal === undefined ? 0 : story.runs(equal))).toBe(1);
  },
};

export const SCRIPTS: readonly Script[] = [
  plain("a result", "run", "one", RESULT),
  plain("a result in parts", "run", "parts", RESULT),
  plain("a failure of the provider", "run", "fail", "failed provider"),
  plain("a denial", "forbidden", "one", "denied no_grant"),
  plain("a timeout", "quick", "nothing", "failed timeout"),
  plain("a provider lost", "run", "vanish", "failed provider_lost"),
  approved("asked and approved", {}),
  refused,
  expired,
  withdrawn,
  cancelled,
  settled,
  opened,
  tainted,
  endorsed,
  remembered,
  followed,
];
