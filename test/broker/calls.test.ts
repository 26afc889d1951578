import { describe, expect, it } from "vitest";
import { allow, BASIC } from "./configs.ts";
import { Lives } from "./lives.ts";
import type { Reply } from "./rig_peer.ts";

const CONFIG = `${BASIC}${allow("other-operates", "files", '["callgate.calls.*"]')}`;
const WRITE = { path: "/a", text: "SECRET-words" };

/** Two calls of the agent that were with their provider when the broker died: `write` 1 and, after a part, `free` 2. */
async function withUnknown(): Promise<Lives> {
  const lives = await Lives.begin(CONFIG);
  const [agent, files] = [lives.peer("agent"), lives.peer("files")];
  agent.ask("write", WRITE, { call: 1n });
  agent.ask("free", {}, { call: 2n });
  await lives.settle();
  files.take();
  files.take().part("one ", { class: "internal" });
  await lives.settle();
  await lives.restart(CONFIG);
  return lives;
}

async function again(lives: Lives, call: bigint): Promise<Reply> {
  const agent = lives.peer("agent");
  return call === 1n ? lives.ask(agent, "write", WRITE, "s", 1n) : lives.ask(agent, "free", {}, "s", 2n);
}

async function settle(lives: Lives, more: object): Promise<Reply> {
  const args = { role: "agent", session: "s", call: "1", as: "failed", text: "it never arrived", ...more };
  return lives.ask(lives.peer("operator"), "callgate.calls.settle", args);
}

async function listed(lives: Lives, args: object = {}, role = "operator") {
  const reply = await lives.ask(lives.peer(role), "callgate.calls.list", args);
  const { calls } = reply.json as { calls: { call: string; state: string; tool: string }[] };
  return calls.map(({ call, state, tool }) => `${tool} ${call} ${state}`);
}

describe("a call whose outcome nobody knows", () => {
  it("is listed as such and counted, and is never run again", async () => {
    const lives = await withUnknown();
    expect(await listed(lives, { state: "unknown" })).toEqual(["free 2 unknown", "write 1 unknown"]);
    const status = await lives.ask(lives.peer("operator"), "callgate.status");
    expect(status.json).toMatchObject({ unknown_calls: 2, running_calls: 0 });
    const files = lives.peer("files");
    expect((await again(lives, 1n)).end).toBe("failed outcome_unknown");
    expect(files.requests).toHaveLength(0);
  });

  it("settled as failed, is that for its caller from then on, byte for byte, also after a restart", async () => {
    const lives = await withUnknown();
    const settled = await settle(lives, {});
    expect(settled.json).toMatchObject({ settled: true, as: "failed" });
    const heard = [await again(lives, 1n)];
    await lives.restart(CONFIG);
    heard.push(await again(lives, 1n));
    for (const reply of heard)
      expect(reply.sentence).toBe("provider: An operator has settled this call as failed: it never arrived");
    expect(heard[0]?.envelopes[0]?.msg).toEqual(heard[1]?.envelopes[0]?.msg);
  });

  it("settled as a result, carries the highest labels unless the operator names others", async () => {
    const lives = await withUnknown();
    await settle(lives, { as: "result", text: "done" });
    expect((await again(lives, 1n)).end).toBe("result restricted untrusted done");
    const shown = await lives.ask(lives.peer("agent"), "callgate.sessions.show");
    expect(shown.json["taint"]).toEqual({ class: "restricted", untrusted: true });
  });

  it("settled with lower labels, is still not below what its caller was given of it before", async () => {
    const lives = await withUnknown();
    await settle(lives, { call: "2", as: "result", text: "two", class: "public", untrusted: false });
    expect((await again(lives, 2n)).seen).toEqual(["part: result internal one ", "result internal two"]);
  });

  it("that was settled no longer makes an equal call doubtful", async () => {
    const lives = await withUnknown();
    const files = lives.peer("files");
    await settle(lives, {});
    await lives.ask(lives.peer("agent"), "write", WRITE, "s", 3n);
    expect(files.requests).toHaveLength(1);
  });

  it("is settled once: of two operators the second is told, and what is known is never touched", async () => {
    const lives = await withUnknown();
    lives.store.mode = "held";
    const operator = lives.peer("operator");
    const args = { role: "agent", session: "s", call: "1", as: "failed", text: "x" };
    const two = [operator.ask("callgate.calls.settle", args), operator.ask("callgate.calls.settle", args)];
    for (let i = 0; i < 4; i += 1) {
      await lives.settle();
      lives.store.release();
    }
    await lives.settle();
    expect(two.map(({ end }) => end.split(" ").slice(0, 2).join(" "))).toEqual([
      "result public",
      "failed conflict",
    ]);
    lives.store.mode = "at_once";
    expect((await settle(lives, {})).end).toBe("failed bad_arguments");
  });

  it("is not settled where that could not be written", async () => {
    const lives = await withUnknown();
    lives.store.mode = "held";
    const operator = lives.peer("operator");
    const args = { role: "agent", session: "s", call: "1", as: "result", text: "x" };
    const reply = operator.ask("callgate.calls.settle", args);
    await lives.settle();
    lives.store.release();
    await lives.settle();
    lives.store.refuse();
    await lives.settle();
    expect(reply.end).toBe("failed outcome_unknown");
    lives.store.mode = "at_once";
    expect((await again(lives, 1n)).end).toBe("failed outcome_unknown");
    expect((await settle(lives, { as: "result", text: "y" })).end).toContain("result");
    expect((await again(lives, 1n)).end).toBe("result restricted untrusted y");
  });

  it("is settled by an operator only, never for its own role or user, and told apart from none for nobody", async () => {
    const lives = await withUnknown();
    const args = { role: "agent", session: "s", call: "1", as: "failed", text: "x" };
    const replies = [
      await lives.ask(lives.peer("files"), "callgate.calls.settle", args),
      await lives.ask(lives.peer("files"), "callgate.calls.settle", { ...args, role: "nobody" }),
      await lives.ask(lives.peer("agent"), "callgate.calls.settle", args),
      await lives.ask(lives.peer("operator", { uid: 1002, gid: 1001 }), "callgate.calls.settle", {
        ...args,
        role: "operator",
      }),
      await settle(lives, { call: "9" }),
      await settle(lives, { text: "x".repeat(262_145) }),
    ];
    expect(new Set(replies.map(({ end }) => end))).toEqual(new Set(["failed bad_arguments"]));
    expect(replies[0]?.sentence).toBe(replies[1]?.sentence);
    expect((await again(lives, 1n)).end).toBe("failed outcome_unknown");
  });

  it("that runs is not settled", async () => {
    const lives = await Lives.begin(CONFIG);
    lives.peer("files");
    await lives.ask(lives.peer("agent"), "write", WRITE, "s", 1n);
    expect((await settle(lives, {})).end).toBe("failed bad_arguments");
  });
});

describe("calls.list and calls.show", () => {
  it("show what runs, waits and has ended, the newest first, filtered as asked", async () => {
    const asks = BASIC.replace(
      '[[grants]]\nid = "agent-uses"',
      `${allow("asks", "agent", '["whole"]').replace('"allow"', '"ask"')}\n[[grants]]\nid = "agent-uses"`,
    );
    const lives = await Lives.begin(asks);
    const [agent, files] = [lives.peer("agent"), lives.peer("files")];
    agent.ask("free", {}, { call: 1n });
    agent.ask("write", WRITE, { call: 2n });
    agent.ask("whole", {}, { call: 3n });
    await lives.settle();
    files.take().result("x");
    await lives.settle();
    expect(await listed(lives)).toEqual(["whole 3 waiting", "write 2 running", "free 1 ended"]);
    expect(await listed(lives, { state: "waiting" })).toEqual(["whole 3 waiting"]);
    expect(await listed(lives, { limit: 1 })).toEqual(["whole 3 waiting"]);
    expect(await listed(lives, { role: "files" })).toEqual([]);
    expect(await listed(lives, { session: "other" })).toEqual([]);
  });

  it("show an operator the exact arguments and answers, with the labels of the session", async () => {
    const lives = await Lives.begin(CONFIG);
    const [agent, files] = [lives.peer("agent"), lives.peer("files")];
    const args = '{"path" : "/a","text":"\\u0041"}';
    agent.ask("write", args, { call: 1n });
    await lives.settle();
    files.take().result("w", { class: "confidential", untrusted: true });
    await lives.settle();
    const shown = await lives.ask(lives.peer("operator"), "callgate.calls.show", {
      role: "agent",
      session: "s",
      call: "1",
    });
    expect(shown.end).toMatch(/^result confidential untrusted /);
    expect(shown.json).toMatchObject({
      role: "agent",
      call: "1",
      tool: "write",
      state: "ended",
      uid: 1001,
      arguments: args,
      labels: { class: "confidential", untrusted: true },
    });
    const [message] = shown.json["messages"] as string[];
    expect(JSON.parse(message ?? "")).toMatchObject({ body: { content: "w" } });
    const own = await lives.ask(lives.peer("operator"), "callgate.sessions.show");
    expect(own.json["taint"]).toEqual({ class: "confidential", untrusted: true });
  });

  it("show a role its own only, and of these what the same user asked", async () => {
    const lives = await Lives.begin(
      `${CONFIG.replace('users = ["agent"]', 'users = ["agent", "callgate-mail"]')}`,
    );
    lives.peer("files");
    await lives.ask(lives.peer("agent"), "write", WRITE, "s", 1n);
    const foreign = { role: "agent", session: "s", call: "1" };
    const replies = [
      await lives.ask(lives.peer("files"), "callgate.calls.show", foreign),
      await lives.ask(lives.peer("files"), "callgate.calls.show", { ...foreign, role: "nobody" }),
    ];
    expect(replies[0]?.sentence).toBe(replies[1]?.sentence);
    const otherUser = lives.peer("agent", { uid: 1004 });
    const [hidden, unknown] = [
      await lives.ask(otherUser, "callgate.calls.show", { call: "1" }),
      await lives.ask(otherUser, "callgate.calls.show", { call: "77" }),
    ];
    expect([hidden.end, hidden.sentence]).toEqual(["failed bad_arguments", unknown.sentence]);
    const list = await lives.ask(otherUser, "callgate.calls.list");
    expect(list.json["calls"]).toEqual([]);
    const own = await lives.ask(lives.peer("agent"), "callgate.calls.show", { call: "1" });
    expect(own.json).toMatchObject({ state: "running", arguments: JSON.stringify(WRITE) });
  });
});

describe("a cancelled call that waits for a human", () => {
  it("ends for its caller, its question is withdrawn, and nobody's approval runs it", async () => {
    const asks = BASIC.replace(
      '[[grants]]\nid = "agent-uses"',
      `${allow("asks", "agent", '["whole"]').replace('"allow"', '"ask"')}\n[[grants]]\nid = "agent-uses"`,
    );
    const lives = await Lives.begin(asks);
    const agent = lives.peer("agent");
    lives.peer("files");
    const waiting = await lives.ask(agent, "whole", {}, "s", 3n);
    expect(waiting.seen).toEqual(["part: pending_approval"]);
    const cancelled = await lives.ask(agent, "callgate.calls.cancel", { call: "3" });
    expect([cancelled.json["cancelled"], waiting.end]).toEqual([true, "failed cancelled"]);
    await lives.restart(asks);
    expect(lives.log[0]?.fields["approvals"]).toBe(0);
    expect((await lives.ask(lives.peer("agent"), "whole", {}, "s", 3n)).end).toBe("failed cancelled");
  });
});
