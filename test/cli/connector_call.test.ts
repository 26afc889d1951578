import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runProgram } from "../../src/cli/program.ts";
import type { ProviderTurn } from "../../src/connector/backend.ts";
import type { Completed, EventPayload, Failed } from "../../src/connector/contract.ts";
import { frameBytesForPayload } from "../../src/connector/frame_arithmetic.ts";
import { MemoryReplay } from "../../src/connector/replay_memory.ts";
import { type ConnectorServer, serve } from "../../src/connector/serve.ts";
import { TransportService } from "../../src/connector/service.ts";
import { systemClock } from "../../src/host/clock.ts";
import { Desk } from "./desk.ts";

// What a person sees of a turn: the real service, in this process, with a backend that says what the test wants.

const SECRET = "a-secret-of-tests-0123456789abcdef-0123";

let directory = "";
let server: ConnectorServer | undefined;
let service: TransportService | undefined;
let turn: () => Promise<ProviderTurn>;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "callgate-call-"));
  writeFileSync(join(directory, "secret"), SECRET, { mode: 0o600 });
  // The desk's time stands still at a day of its own.
  const clock = { ...systemClock(), nowMs: () => new Desk().nowMs() };
  const config = {
    ...{ bind: "127.0.0.1", port: 0, max_frame_bytes: frameBytesForPayload(65_536), max_connections: 8 },
    ...{ socket_timeout_ms: 5000, expiry_horizon_ms: 300_000, retention_ms: 300_000 },
    callers: [
      {
        ...{ caller_runtime_id: "me", connection_secret: SECRET, allowed_models: ["m"] },
        ...{ max_concurrent_requests: 1, max_payload_bytes: 65_536, max_output_tokens: 2000 },
      },
    ],
  };
  const opened = await TransportService.open({
    config,
    backend: { transport: "test", execute: () => turn() },
    store: async () => ({ ok: true, value: new MemoryReplay() }),
    clock,
    random: randomBytes,
    log: () => undefined,
  });
  if (!opened.ok) throw new Error(JSON.stringify(opened.fault));
  service = opened.value;
  const served = await serve(service, { clock, log: () => undefined });
  if (!served.ok) throw new Error(JSON.stringify(served.fault));
  server = served.value;
});

afterEach(async () => {
  await server?.close(0);
  await service?.close();
  rmSync(directory, { recursive: true, force: true });
});

const USAGE = { input_tokens: 9, output_tokens: 5, reasoning_output_tokens: 3, cached_input_tokens: null };

function says(
  events: readonly EventPayload[],
  stop_reason: Completed["stop_reason"],
  usage: Completed["usage"] = USAGE,
) {
  const completed: ProviderTurn = {
    events,
    outcome: { Completed: { provider_response_id: null, stop_reason, usage } },
  };
  turn = async () => completed;
}

function fails(failed: Failed): void {
  turn = async () => ({ events: [{ TextDelta: { text: "so far" } }], outcome: { Failed: failed } });
}

function call(desk: Desk, ...words: readonly string[]): Promise<number> {
  const to = [
    "--connect",
    `127.0.0.1:${server?.port}`,
    "--caller",
    "me",
    "--secret-file",
    join(directory, "secret"),
  ];
  return runProgram(["connector", "call", "hello", "--model", "m", ...to, ...words], desk);
}

describe("callgate connector call", () => {
  it("shows what a model says, and escapes on a terminal what it would obey", async () => {
    says([{ TextDelta: { text: "red \u001b[31m" } }, { TextDelta: { text: "and \u202eback" } }], "EndTurn");
    const person = new Desk([]);
    expect(await call(person)).toBe(0);
    expect(person.out_).toBe("red \\u{1b}[31mand \\u{202e}back\n");
    expect(person.err_).toContain("[the answer is complete; 9 tokens read, 5 written (3 reasoning)]");
    const program = new Desk();
    expect(await call(program)).toBe(0);
    expect(program.out_).toBe("red \u001b[31mand \u202eback\n");
  });

  it("shows the tools that a model asks for, and reasoning as so many bytes", async () => {
    says(
      [
        { ReasoningState: { provider: "p", model: "m", opaque: Buffer.from("CANARY") } },
        { ToolCall: { call_id: "c1", name: "read", arguments: '{"path":"\u001b[2J"}' } },
      ],
      "ToolCalls",
      { input_tokens: null, output_tokens: null, reasoning_output_tokens: null, cached_input_tokens: null },
    );
    const desk = new Desk();
    expect(await call(desk)).toBe(0);
    expect(desk.out_).toBe("");
    expect(desk.err_).toContain("[reasoning: 6 bytes, for the next turn]");
    expect(desk.err_).toContain('[asks for the tool read as c1: {"path":"\\u{1b}[2J"}]');
    expect(desk.err_).toContain("[it waits for tool results; ? tokens read, ? written]");
  });

  it("begins what is no text on a line of its own on a terminal, and elsewhere leaves the text as it is", async () => {
    const asks = { ToolCall: { call_id: "c1", name: "read", arguments: "{}" } };
    says([{ TextDelta: { text: "I look." } }, asks], "ToolCalls");
    const person = new Desk([]);
    expect(await call(person)).toBe(0);
    expect(person.out_).toBe("I look.\n");
    const state = { ReasoningState: { provider: "p", model: "m", opaque: Buffer.from("x") } };
    says([{ TextDelta: { text: "one " } }, state, { TextDelta: { text: "text" } }, asks], "ToolCalls");
    const program = new Desk();
    expect(await call(program)).toBe(0);
    expect(program.out_).toBe("one text\n");
  });

  it("says where it looked for a connector that is not there, and what would lead elsewhere", async () => {
    const port = server?.port;
    await server?.close(0);
    const desk = new Desk();
    expect(await call(desk, "--connect", `127.0.0.1:${port}`)).toBe(1);
    expect(desk.err_).toContain("can't be reached: does it run?; nothing was started");
    expect(desk.err_).toContain(`looked for at 127.0.0.1:${port}: --connect leads elsewhere`);
  });

  it("names the file that holds no connection secret, and nothing of what it holds", async () => {
    writeFileSync(join(directory, "secret"), "CANARY-too-short", { mode: 0o600 });
    const desk = new Desk();
    expect(await call(desk)).toBe(2);
    expect(desk.err_).toContain('secret" holds no connection secret: the connection secret has 16 bytes');
    expect(desk.err_).not.toContain("CANARY");
  });

  it("takes no bound, model or instructions beside a whole request, which has them itself", async () => {
    const file = join(directory, "turn.json");
    const request = { model: "m", instructions: "i", input: [], max_output_tokens: 9 };
    writeFileSync(file, JSON.stringify(request));
    const words = ["connector", "call", "--request", file, "--connect", `127.0.0.1:${server?.port}`];
    const who = ["--caller", "me", "--secret-file", join(directory, "secret")];
    for (const [option, value] of [
      ["--model", "other"],
      ["--instructions", "Answer the user."],
      ["--max-output-tokens", "1024"],
    ] as const) {
      const desk = new Desk();
      expect(await runProgram([...words, ...who, option, value], desk)).toBe(2);
      expect(desk.err_).toContain(`--request has the whole request, so no ${option} goes with it`);
    }
    says([{ TextDelta: { text: "whole" } }], "EndTurn");
    const desk = new Desk();
    expect(await runProgram([...words, ...who], desk)).toBe(0);
    expect(desk.out_).toBe("whole\n");
  });

  it("says what to do about a request that is too large", async () => {
    const desk = new Desk();
    expect(await call(desk, "--max-payload-bytes", "4096", "--instructions", "x".repeat(9000))).toBe(2);
    expect(desk.err_).toMatch(/FrameSize: .*--max-payload-bytes.*; nothing was started/);
  });

  it("shows what came before a failure, and why it failed, with status 4", async () => {
    fails({ failure_kind: "RateLimited", message: "slow \u001b[2J down" });
    const desk = new Desk();
    expect(await call(desk)).toBe(4);
    expect(desk.out_).toBe("so far\n");
    expect(desk.err_).toContain("failed: RateLimited: slow \\u{1b}[2J down");
  });

  it.each([
    ["MaxOutputTokens", "cut: max_output_tokens"],
    ["ContentFilter", "on content grounds"],
  ] as const)("says what %s means", async (reason, words) => {
    says([{ TextDelta: { text: "half" } }], reason);
    const desk = new Desk();
    expect(await call(desk)).toBe(0);
    expect(desk.err_).toContain(words);
  });

  it("gives the whole result as one line of JSON, in which nothing can move a cursor", async () => {
    says([{ TextDelta: { text: "a\nb\u001b" } }], "EndTurn");
    const desk = new Desk([]);
    expect(await call(desk, "--json", "--request-id", "r")).toBe(0);
    expect(desk.err_).toBe("");
    expect(desk.out_.trimEnd()).not.toMatch(/[\u0000-\u001f]/);
    expect(JSON.parse(desk.out_)).toMatchObject({
      request_id: "r",
      disposition: {
        Transported: { events: [{ sequence: 0, payload: { TextDelta: { text: "a\nb\u001b" } } }] },
      },
    });
  });

  it("at ctrl-C says how to fetch the answer, which is the one of the turn that went on", async () => {
    let finish = (): void => undefined;
    let entered = (): void => undefined;
    const running = new Promise<void>((resolve) => {
      entered = resolve;
    });
    let runs = 0;
    turn = () =>
      new Promise((resolve) => {
        runs += 1;
        finish = () =>
          resolve({
            events: [{ TextDelta: { text: "late" } }],
            outcome: { Completed: { provider_response_id: null, stop_reason: "EndTurn", usage: USAGE } },
          });
        entered();
      });
    const desk = new Desk([]);
    const left = call(desk, "--request-id", "slow");
    await running;
    desk.interrupt();
    expect(await left).toBe(130);
    expect(desk.err_).toContain("the turn itself goes on");
    expect(desk.err_).toContain("with --request-id slow fetches the answer");
    finish();
    const again = new Desk([]);
    expect(await call(again, "--request-id", "slow")).toBe(0);
    expect(again.out_).toBe("late\n");
    expect(runs).toBe(1);
  });

  it("has no command of somebody else's in the line that it says to paste", async () => {
    const desk = new Desk([]);
    turn = () => {
      desk.interrupt();
      return new Promise(() => undefined);
    };
    expect(await call(desk, "--request-id", "x; 'rm' y")).toBe(130);
    expect(desk.err_).toContain(`with --request-id 'x; '\\''rm'\\'' y' fetches the answer`);
  });

  it("finds the connector by CALLGATE_CONNECTOR where no option says where it is", async () => {
    says([{ TextDelta: { text: "here" } }], "EndTurn");
    process.env["CALLGATE_CONNECTOR"] = `127.0.0.1:${server?.port}`;
    try {
      const desk = new Desk();
      const words = ["--model", "m", "--caller", "me", "--secret-file", join(directory, "secret")];
      expect(await runProgram(["connector", "call", "hello", ...words], desk)).toBe(0);
      expect(desk.out_).toBe("here\n");
    } finally {
      delete process.env["CALLGATE_CONNECTOR"];
    }
  });
});

describe("callgate connector secret", () => {
  it("makes another each time, which a connector takes, and never writes over one", async () => {
    const { connectionKey } = await import("../../src/connector/secret.ts");
    const made = [new Desk(), new Desk()];
    for (const desk of made) expect(await runProgram(["connector", "secret"], desk)).toBe(0);
    const secrets = made.map(({ out_ }) => out_.trimEnd());
    expect(new Set(secrets).size).toBe(2);
    for (const secret of secrets) expect(connectionKey(secret).ok).toBe(true);
    const desk = new Desk();
    expect(await runProgram(["connector", "secret", "--to", join(directory, "secret")], desk)).toBe(4);
    expect(desk.err_).toContain("is there already");
    expect(await runProgram(["connector", "secret", "--to", join(directory, "no/such")], desk)).toBe(4);
  });
});
