import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { LINE_BYTES_MAX, UNANSWERED_MAX } from "../../../../src/roles/mcp/serve/lines.ts";
import { callgate, cleanUp, onCleanUp } from "../../../daemon/daemon.ts";
import { newClient, oldClient, overHttp, Scene, TOKEN, textOf } from "./rig.ts";

afterEach(cleanUp);

/** The program with its standard input and output in our hands. */
class Raw {
  readonly child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;

  constructor(words: readonly string[]) {
    this.child = spawn(process.execPath, [callgate(), "mcp", "serve", ...words]);
    onCleanUp(() => this.child.kill("SIGKILL"));
    this.child.stdin.on("error", () => undefined);
    this.#lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  say(...lines: readonly string[]): void {
    for (const line of lines) this.child.stdin.write(`${line}\n`);
  }

  /** The next message. */
  async hear(): Promise<Heard> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error("it has ended");
    return JSON.parse(value) as Heard;
  }

  async ended(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
    return this.child.exitCode;
  }
}

interface Heard {
  readonly id?: number | string | null;
  readonly result?: { readonly content?: readonly { readonly text: string }[] };
  readonly error?: { readonly code: number };
}

const HELLO = [
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"0"}}}',
  '{"jsonrpc":"2.0","method":"notifications/initialized"}',
];

function callLine(id: number, args: string, name = "echo"): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`;
}

describe("callgate mcp serve", () => {
  it.each([
    ["2025-11-25", oldClient],
    ["2026-07-28", newClient],
  ] as const)("serves a client of %s that has started it, and ends with it", async (version, makeClient) => {
    const scene = await Scene.open();
    scene.served.answer = async (job) => job.arguments;
    const client = makeClient();
    const transport = await scene.program(client);
    expect(client.getNegotiatedProtocolVersion()).toBe(version);
    expect(textOf(await client.callTool({ name: "echo", arguments: { a: 1 } }))).toBe('{"a":1}');
    const pid = transport.pid!;
    await client.close();
    await scene.daemon.event("peer.disconnected", ({ role }) => role === "agent");
    while (isAlive(pid)) await new Promise((turned) => setImmediate(turned));
  });

  it("hands on numbers as they were written, and answers what is asked before the end of its input", async () => {
    const scene = await Scene.open();
    scene.served.answer = async (job) => job.arguments;
    const raw = new Raw(["--socket", scene.daemon.socket("agent")]);
    const args = '{"n":9007199254740993,"f":1.0, "\\u0061":[{"arguments":"}"}]}';
    raw.say(...HELLO, callLine(7, args));
    raw.child.stdin.end();
    expect((await raw.hear()).id).toBe(0);
    const heard = await raw.hear();
    expect([heard.id, heard.result?.content?.[0]?.text]).toEqual([7, args]);
    expect(await raw.ended()).toBe(0);
  });

  it("answers a line that is no message, and goes on", async () => {
    const scene = await Scene.open();
    const raw = new Raw(["--socket", scene.daemon.socket("agent")]);
    raw.say(...HELLO);
    expect((await raw.hear()).id).toBe(0);
    const wrong: readonly (readonly [number, string])[] = [
      [-32700, "{"],
      [-32700, "\u0000"],
      [-32600, "[]"],
      [-32600, `[${callLine(1, "{}")}]`],
      [-32600, "7"],
      [-32600, '{"id":1,"method":"ping"}'],
      [-32600, '{"jsonrpc":"2.0","id":{},"method":"ping"}'],
      [-32600, `"${"x".repeat(LINE_BYTES_MAX)}"`],
      [-32602, callLine(1, "[]")],
      [-32602, callLine(1, '"x"')],
      [-32602, '{"jsonrpc":"2.0","id":1,"method":"tools/call"}'],
      [-32602, '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["echo"]}}'],
      [-32602, '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}'],
      [-32601, '{"jsonrpc":"2.0","id":1,"method":"resources/list"}'],
      [-32601, '{"jsonrpc":"2.0","id":1,"method":"__proto__"}'],
    ];
    for (const [code, line] of wrong) {
      raw.say(line);
      expect([line.slice(0, 80), (await raw.hear()).error?.code]).toEqual([line.slice(0, 80), code]);
    }
    raw.child.stdin.write(Buffer.from([0xff, 0xfe, 0x0a]));
    expect((await raw.hear()).error?.code).toBe(-32700);
    raw.say("", " ", '{"jsonrpc":"2.0","id":9,"method":"ping"}');
    expect(await raw.hear()).toEqual({ jsonrpc: "2.0", id: 9, result: {} });
  });

  it("gives the broker's word on arguments that it does not take", async () => {
    const scene = await Scene.open();
    const raw = new Raw(["--socket", scene.daemon.socket("agent")]);
    raw.say(...HELLO);
    await raw.hear();
    for (const args of [
      '{"a":1,"\\u0061":2}',
      `{"a":${"[".repeat(1000)}${"]".repeat(1000)}}`,
      '{"a":"\\ud800"}',
    ]) {
      raw.say(callLine(1, args));
      expect((await raw.hear()).result?.content?.[0]?.text).toMatch(/^`echo` failed: bad_arguments: /);
    }
    raw.say(callLine(2, `{"a":"${"x".repeat(2_000_000)}"}`));
    expect((await raw.hear()).result?.content?.[0]?.text).toMatch(
      /too_large: the request does not fit a frame.* Nothing ran/,
    );
    expect(scene.served.jobs.length).toBe(0);
  });

  it("goes on after any number of calls that were cancelled", async () => {
    const scene = await Scene.open();
    const raw = new Raw(["--socket", scene.daemon.socket("agent")]);
    raw.say(...HELLO);
    await raw.hear();
    for (let i = 1; i <= 2 * UNANSWERED_MAX; i += 1) {
      raw.say(callLine(i, `{"i":${i}}`));
      raw.say(
        `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${i},"reason":"stop"}}`,
      );
    }
    raw.say('{"jsonrpc":"2.0","id":"p","method":"ping"}');
    expect((await raw.hear()).id).toBe("p");
  });

  it("has a question withdrawn by a client that cancels, and leaves it where its time was over", async () => {
    const scene = await Scene.open();
    const raw = new Raw(["--socket", scene.daemon.socket("agent")]);
    raw.say(...HELLO);
    await raw.hear();
    for (const [id, reason] of [
      [1, ""],
      [2, ',"reason":"the user pressed stop"'],
      [3, ',"reason":"McpError: MCP error -32001: Request timed out"'],
    ] as const) {
      raw.say(callLine(id, `{"i":${id}}`, "write"));
      await scene.question();
      raw.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}${reason}}}`);
      if (id < 3) await scene.noQuestion();
    }
    raw.say('{"jsonrpc":"2.0","id":"p","method":"ping"}');
    expect((await raw.hear()).id).toBe("p");
    scene.served.answer = async () => "written";
    await scene.decide("approve");
    raw.say(callLine(4, '{"i":3}', "write"));
    expect((await raw.hear()).result?.content?.[0]?.text).toBe("written");
    expect(scene.served.jobs.length).toBe(1);
  });

  it("gives of a server's result what no library knows yet, too", async () => {
    const definition = {
      name: "srv.t",
      description: "",
      schema: { type: "object" },
      annotations: { mcp: { v: 1, name: "t" } },
    };
    const scene = await Scene.open(undefined, [definition]);
    await scene.accept("srv.t");
    const content = [
      { type: "hologram", depth: 1, "\u2028": [null] },
      { type: "text", text: "t", later: { x: 1 } },
    ];
    scene.served.answer = async () => JSON.stringify({ content });
    const raw = new Raw(["--socket", scene.daemon.socket("agent")]);
    raw.say(...HELLO, callLine(1, "{}", "srv__t"));
    await raw.hear();
    expect((await raw.hear()).result).toEqual({ content });
  });

  it("leaves nothing behind when it or its client is killed while it calls or begins, twenty times over", {
    timeout: 240_000,
  }, async () => {
    const scene = await Scene.open();
    let answer = () => {};
    const gate = new Promise<string>((resolve) => (answer = () => resolve("late")));
    scene.served.answer = () => gate;
    for (let i = 0; i < 20; i += 1) {
      const raw = new Raw(["--socket", scene.daemon.socket("agent")]);
      raw.say(...HELLO, callLine(1, `{"i":${i}}`));
      if (i % 2 === 0) await scene.served.came(scene.served.jobs.length + 1);
      if (i % 4 < 2) raw.child.kill("SIGKILL");
      else {
        raw.child.stdin.destroy(); // as the kernel does for a client that was killed
        raw.child.stdout.destroy();
      }
      await raw.ended();
    }
    answer();
    await scene.untilGone("agent");
    expect(scene.served.jobs.length).toBe((await scene.calls()).length);
  });

  it("says that there is no broker, and what is wrong with its options", async () => {
    const scene = await Scene.open();
    const socket = scene.daemon.socket("agent");
    const asked: readonly (readonly [number, RegExp, readonly string[]])[] = [
      [
        1,
        /unreachable: no connection to the broker \(ENOENT\)\n {2}Does the broker run, and is "[^"]+" its socket\?/,
        ["--socket", `${socket}x`],
      ],
      [2, /--http needs --token-file/, ["--socket", socket, "--http", "127.0.0.1:0"]],
      [2, /--token-file goes with --http/, ["--socket", socket, "--token-file", "x"]],
      [2, /--http takes 127\.0\.0\.1:PORT/, ["--socket", socket, "--http", "0.0.0.0:1", "--token-file", "x"]],
      [
        1,
        /the token can't be read \(ENOENT\)/,
        ["--socket", socket, "--http", "127.0.0.1:0", "--token-file", "/nowhere"],
      ],
    ];
    for (const [status, sentence, words] of asked) {
      const raw = new Raw(words);
      const errors = text(raw.child.stderr);
      expect([words, await raw.ended()]).toEqual([words, status]);
      expect(await errors).toMatch(sentence);
    }
  });

  it("tells of no outage where a client is gone before it has asked for anything", async () => {
    const scene = await Scene.open();
    const raw = new Raw(["--socket", scene.daemon.socket("agent")]);
    const errors = text(raw.child.stderr);
    raw.child.stdin.end();
    expect(await raw.ended()).toBe(0);
    expect(await errors).toBe("");
  });

  it("serves over HTTP until it is stopped", async () => {
    const scene = await Scene.open();
    scene.served.answer = async (job) => job.arguments;
    const tokenFile = join(scene.daemon.place.directory, "mcp.token");
    writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
    const raw = new Raw([
      "--socket",
      scene.daemon.socket("agent"),
      "--http",
      "127.0.0.1:0",
      "--token-file",
      tokenFile,
    ]);
    const [line] = (await once(createInterface({ input: raw.child.stderr }), "line")) as [string];
    const url = /^callgate: serving MCP at (http:\S+)$/.exec(line)?.[1] ?? "";
    const client = await overHttp(newClient(), { url });
    expect(textOf(await client.callTool({ name: "echo", arguments: { a: 1 } }))).toBe('{"a":1}');
    raw.child.kill("SIGTERM");
    expect(await raw.ended()).toBe(0);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
