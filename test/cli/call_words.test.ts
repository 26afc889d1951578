import { afterEach, describe, expect, it } from "vitest";
import { runProgram } from "../../src/cli/program.ts";
import { FakeBroker, result } from "../client/fake_broker.ts";
import { AnsweringBroker, type Answers, at, Desk } from "./desk.ts";

// What `callgate call` says of denials and questions, and when its person leaves.

let broker: AnsweringBroker | undefined;
afterEach(() => broker?.remove());

async function calling(answers: Answers, ...words: string[]) {
  broker = await AnsweringBroker.start(answers);
  const desk = new Desk();
  const ended = at(desk, broker, "call", ...words);
  return { desk, ended };
}

const never = () => new Promise<object>(() => {});

describe("callgate call", () => {
  it("tells refused, expired and denied apart, in words and in its exit status", async () => {
    const answers: Answers = {
      refused: { status: "denied", reason: "approval_refused" },
      expired: { status: "denied", reason: "approval_expired" },
      denied: { status: "denied", reason: "no_grant" },
    };
    const statuses: number[] = [];
    const words: string[] = [];
    for (const tool of Object.keys(answers)) {
      const { desk, ended } = await calling(answers, tool);
      statuses.push(await ended);
      words.push(desk.err_);
      await broker?.remove();
    }
    expect(statuses).toEqual([5, 6, 3]);
    expect(words[0]).toContain("refused: a person said no");
    expect(words[1]).toContain("expired: a person was asked and nobody answered in time");
    expect(words[2]).toContain("denied: no_grant");
  });

  it("left with ctrl-C says how to come back to the very same call", async () => {
    const { desk, ended } = await calling({ slow: never }, "slow", `{"text":"it's"}`, "--session", "s1");
    await desk.shows("[session s1, call ");
    desk.interrupt();
    expect(await ended).toBe(130);
    const call = /call (\d+)\]/.exec(desk.err_)?.[1];
    expect(desk.err_).toContain("the call itself goes on");
    expect(desk.err_).toContain(`  callgate call slow '{"text":"it'\\''s"}' --session s1 --call ${call}\n`);
  });

  it("does not write out arguments that would not come back as the same bytes", async () => {
    for (const args of ['{"a":"\u202e"}', '{"a":\n1}', JSON.stringify({ a: "x".repeat(5000) })]) {
      const { desk, ended } = await calling({ slow: never }, "slow", args);
      await desk.shows("[session ");
      desk.interrupt();
      await ended;
      expect(desk.err_).toContain("callgate call slow THE_SAME_ARGUMENTS --session cli --call ");
      await broker?.remove();
    }
  });

  it("says how an operator answers where a person is asked", async () => {
    const waiting = await FakeBroker.start();
    const desk = new Desk();
    const ended = runProgram(["call", "send_mail", "--socket", waiting.path], desk);
    const peer = await waiting.accept();
    const { id } = await peer.request();
    peer.answer(
      id,
      { status: "pending_approval", approval: "abc\u202e", expires: 1_796_040_000_000n },
      false,
    );
    await desk.shows("waiting for a person's answer until 2026-");
    expect(desk.err_).toContain("an operator answers with: callgate approvals approve abc\\u{202e}");
    peer.answer(id, { status: "denied", reason: "approval_expired" });
    const { id: why } = await peer.request();
    peer.answer(why, { status: "denied", reason: "no_grant" });
    expect(await ended).toBe(6);
    await waiting.remove();
  });

  it("keeps what a provider wrote from moving the cursor, with --json too", async () => {
    const { desk, ended } = await calling(
      { read: result("\u202e\u009b1m\u001b[2J") },
      "read",
      "{}",
      "--json",
    );
    await ended;
    expect(desk.out_).toMatch(/^[\x20-\x7e]+\n$/);
    expect((JSON.parse(desk.out_) as { content: string }).content).toBe("\u202e\u009b1m\u001b[2J");
  });
});
