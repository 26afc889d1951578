import { request as httpRequest } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { LOOK_MS } from "../../../../src/roles/mcp/serve/broker_side.ts";
import type { RunningHttp } from "../../../../src/roles/mcp/serve/http_front.ts";
import { SESSIONS_MAX } from "../../../../src/roles/mcp/serve/http_sessions.ts";
import { LINE_BYTES_MAX } from "../../../../src/roles/mcp/serve/lines.ts";
import { cleanUp } from "../../../daemon/daemon.ts";
import {
  configOf,
  grant,
  HOLD_MS,
  ManualTime,
  newClient,
  oldClient,
  overHttp,
  Scene,
  TOKEN,
  textOf,
} from "./rig.ts";

afterEach(cleanUp);

interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** Any bytes, with any headers: what fetch would not send. */
function send(
  { url }: RunningHttp,
  { method = "POST", path = "/mcp", body = "", ...headers }: Readonly<Record<string, string>>,
): Promise<Told> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const asking = httpRequest(
      { hostname, port, method, path, headers: { ...HEADERS, ...headers } },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (piece: string) => (text += piece));
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
      },
    );
    asking.on("error", reject);
    asking.end(body);
  });
}

const HEADERS = {
  Authorization: `Bearer ${TOKEN}`,
  "Content-Type": "application/json",
  Accept: "application/json, text/event-stream",
};
const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "0" } },
});

describe.each([
  ["2025-11-25", oldClient],
  ["2026-07-28", newClient],
] as const)("a client of %s over HTTP", (version, makeClient) => {
  it("lists and calls the tools of the role", async () => {
    const scene = await Scene.open();
    scene.served.answer = async (job) => job.arguments;
    const client = await overHttp(makeClient(), await scene.http());
    expect(client.getNegotiatedProtocolVersion()).toBe(version);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["echo", "write"]);
    expect(textOf(await client.callTool({ name: "echo", arguments: { a: 1 } }))).toBe('{"a":1}');
    await expect(client.callTool({ name: "secret", arguments: {} })).rejects.toMatchObject({ code: -32602 });
  });

  it("that goes away finds its call again, from another connection too", async () => {
    const scene = await Scene.open();
    let answer = (_: string) => {};
    scene.served.answer = () => new Promise((resolve) => (answer = resolve));
    const front = await scene.http();
    const first = await overHttp(makeClient(), front);
    const lost = first.callTool({ name: "echo", arguments: { a: 1 } }, { timeout: 300 });
    await expect(lost).rejects.toThrow();
    await scene.served.came(1);
    await first.close();
    const second = await overHttp(makeClient(), front);
    const heard = second.callTool({ name: "echo", arguments: { a: 1 } });
    answer("late");
    expect(textOf(await heard)).toBe("late");
    expect(scene.served.jobs.length).toBe(1);
    expect(new Set((await scene.calls()).map(({ session }) => session)).size).toBe(1);
  });

  it("is never given an old answer for a new call: only one that did not arrive", async () => {
    const scene = await Scene.open();
    scene.served.answer = async () => `answer ${scene.served.jobs.length}`;
    const client = await overHttp(makeClient(), await scene.http());
    const heard: string[] = [];
    for (let i = 0; i < 3; i += 1)
      heard.push(textOf(await client.callTool({ name: "echo", arguments: { a: 1 } })));
    expect(heard).toEqual(["answer 1", "answer 2", "answer 3"]);
  });

  it("hears of another list when the broker has one", async () => {
    const scene = await Scene.open();
    const time = new ManualTime();
    let heard = (_: readonly string[]) => {};
    const came = new Promise<readonly string[]>((resolve) => (heard = resolve));
    const onChanged = (_: unknown, tools: readonly { readonly name: string }[] | null) =>
      heard((tools ?? []).map(({ name }) => name));
    const client = await overHttp(
      makeClient({ listChanged: { tools: { onChanged } } }),
      await scene.http({ effects: time.effects }),
    );
    await client.listTools();
    scene.rewrite(configOf(grant("reads", "allow", "echo")));
    await scene.ask("operator", "callgate.reload", {});
    await time.passed(LOOK_MS);
    expect(await came).toEqual(["echo"]);
  });
});

describe("a person who is asked over HTTP", () => {
  it("is waited for in rounds by a client of 2026-07-28, also across a restart of the front", async () => {
    const scene = await Scene.open();
    scene.served.answer = async () => "written";
    const time = new ManualTime();
    const front = await scene.http({ effects: time.effects });
    const client = await overHttp(newClient({ inputRequired: { autoFulfill: false } }), front);
    const ask = { name: "write", arguments: { a: 1 } };
    const waiting = client.callTool(ask, { allowInputRequired: true } as never);
    await scene.question();
    await time.passed(HOLD_MS);
    const round = (await waiting) as { readonly resultType?: string; readonly requestState?: string };
    expect(round.resultType).toBe("input_required");
    await front.close();
    const again = await overHttp(newClient(), await scene.http());
    await scene.decide("approve");
    const state = { ...ask, requestState: round.requestState } as never;
    expect(textOf(await again.callTool(state))).toBe("written");
    expect(textOf(await again.callTool(state))).toBe("written"); // the same call, by its own words: never run again
    expect(scene.served.jobs.length).toBe(1);
    for (const forged of [
      { ...ask, arguments: { a: 2 }, requestState: round.requestState },
      { ...ask, requestState: `A${round.requestState?.slice(1)}` },
      { ...ask, requestState: "" },
      { ...ask, requestState: "x".repeat(100_000) },
    ])
      await expect(again.callTool(forged as never)).rejects.toMatchObject({ code: -32602 });
    expect(scene.served.jobs.length).toBe(1);
  });
});

describe("the gate of the HTTP front", () => {
  it("lets nobody in without the token, by another name, or from another page", async () => {
    const scene = await Scene.open();
    const front = await scene.http();
    const { host, port } = new URL(front.url);
    const asked: readonly (readonly [number, Readonly<Record<string, string>>])[] = [
      [200, { body: INITIALIZE }],
      [200, { body: INITIALIZE, Host: `localhost:${port}`, Origin: `http://localhost:${port}` }],
      [200, { body: INITIALIZE, Origin: `http://${host}` }],
      [401, { body: INITIALIZE, Authorization: "" }],
      [401, { body: INITIALIZE, Authorization: `Bearer ${TOKEN}x` }],
      [401, { body: INITIALIZE, Authorization: `Basic ${TOKEN}` }],
      [421, { body: INITIALIZE, Host: `evil.example:${port}` }],
      [421, { body: INITIALIZE, Host: "127.0.0.1" }],
      [403, { body: INITIALIZE, Origin: "http://evil.example" }],
      [403, { body: INITIALIZE, Origin: "null" }],
      [403, { body: INITIALIZE, Origin: `https://${host}` }],
      [404, { body: INITIALIZE, path: "/mcp/" }],
      [404, { body: INITIALIZE, path: "/mcp?x" }],
      [405, { method: "OPTIONS" }],
      [405, { method: "GET" }],
      [405, { method: "DELETE" }],
      [404, { method: "GET", "Mcp-Session-Id": "11111111-1111-4111-8111-111111111111" }],
      [415, { body: INITIALIZE, "Content-Type": "text/plain" }],
    ];
    for (const [status, how] of asked) expect([how, (await send(front, how)).status]).toEqual([how, status]);
  });

  it("answers what is no message, too long, or a list of messages, and goes on", async () => {
    const scene = await Scene.open();
    const front = await scene.http();
    const asked: readonly (readonly [number, number, string])[] = [
      [400, -32700, "{"],
      [400, -32700, ""],
      [400, -32600, `[${INITIALIZE}]`],
      [413, -32000, `"${"x".repeat(LINE_BYTES_MAX)}"`],
      [400, -32000, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'],
    ];
    for (const [status, code, body] of asked) {
      const told = await send(front, { body });
      expect([body.slice(0, 60), told.status, JSON.parse(told.text).error.code]).toEqual([
        body.slice(0, 60),
        status,
        code,
      ]);
    }
    const deep = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    expect((await send(front, { body: deep })).status).toBe(400);
    expect((await send(front, { body: INITIALIZE })).status).toBe(200);
  });

  it("holds a bounded number of older clients, and the one that was quiet longest makes room", async () => {
    const scene = await Scene.open();
    const front = await scene.http();
    const ids: unknown[] = [];
    for (let i = 0; i <= SESSIONS_MAX; i += 1)
      ids.push((await send(front, { body: INITIALIZE })).headers["mcp-session-id"]);
    expect(new Set(ids).size).toBe(SESSIONS_MAX + 1);
    const ping = { body: '{"jsonrpc":"2.0","id":2,"method":"ping"}' };
    expect((await send(front, { ...ping, "Mcp-Session-Id": String(ids[0]) })).status).toBe(404);
    expect((await send(front, { ...ping, "Mcp-Session-Id": String(ids.at(-1)) })).status).toBe(200);
  });

  it("hands on numbers as they were written", async () => {
    const scene = await Scene.open();
    scene.served.answer = async (job) => job.arguments;
    const front = await scene.http();
    const begun = await send(front, { body: INITIALIZE });
    const id = String(begun.headers["mcp-session-id"]);
    const text = '{"n":9007199254740993,"f":1.0,"e":1E3}';
    const body = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":${text}}}`;
    const told = await send(front, { body, "Mcp-Session-Id": id });
    expect(told.text).toContain(JSON.stringify(text));
  });
});
