import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { addressSource, type SourceEffects } from "../../../../src/roles/mcp/provide/server_source.ts";
import { cleanUp, onCleanUp } from "../../../daemon/daemon.ts";
import { House, houseConfig, program } from "./house.ts";

// Servers over Streamable HTTP: one that people use, and one by hand that misbehaves.

afterEach(cleanUp);

async function freePort(): Promise<number> {
  const server = createSocketServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function everything(port: number): Promise<ChildProcess> {
  const child = spawn(
    process.execPath,
    [program("@modelcontextprotocol/server-everything"), "streamableHttp"],
    {
      stdio: ["ignore", "ignore", "pipe"],
      env: { PATH: process.env["PATH"] ?? "", PORT: String(port) },
    },
  );
  onCleanUp(() => stop(child));
  for await (const chunk of child.stderr!) if (String(chunk).includes("listening")) break;
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

async function provide(home: House, port: number, idleMs = 30_000): Promise<void> {
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  await home.provide([], { source: (effects) => addressSource({ url, headers: {} }, effects), idleMs });
}

describe("a server over HTTP", () => {
  it("that is started again is found again, and a call in between fails without being asked twice", async () => {
    const port = await freePort();
    const server = await everything(port);
    const home = await House.build(houseConfig(["echo", "get-sum"]));
    await provide(home, port);
    await home.hears(/^in service: 2 of/);
    expect(await home.text("echo", { message: "one" })).toBe("Echo: one");
    await stop(server);
    expect(await home.call("echo", { message: "two" })).toMatchObject({ status: "failed" });
    await everything(port);
    const from = home.said.length;
    // Either the call hears that its session is forgotten, or the stream is given up before.
    const answer = await home.call("echo", { message: "three" });
    if (answer.status === "failed") expect(answer.message).toMatch(/forgotten our session|nothing ran/);
    await home.hears(/the server is gone/, 0);
    while ((await home.call("echo", { message: "four" })).status !== "result") await home.hears(/./, from);
  });

  it("whose stream ends without the answer fails the call soon", async () => {
    const home = await House.build();
    const { port } = await byHand(() => undefined);
    await provide(home, port);
    await home.hears(/^in service/);
    expect(await home.call("echo")).toMatchObject({
      status: "failed",
      message: expect.stringContaining("went away while the call ran") as string,
    });
  });

  it("that does not answer does not keep the role from ending", async () => {
    const home = await House.build();
    const silent = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(silent, "listening");
    onCleanUp(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const asked = once(silent, "request");
    const { port } = silent.address() as AddressInfo;
    const url = new URL(`http://127.0.0.1:${port}/mcp`);
    const source = (effects: SourceEffects) => addressSource({ url, headers: {} }, effects);
    const provider = await home.provide([], { source, startMs: 600_000 });
    await asked;
    await provider.close();
    expect(await provider.ended).toBeUndefined();
  });

  it("that is not there, or wants a login, is told of in an owner's words", async () => {
    const home = await House.build();
    await provide(home, await freePort());
    await home.hears(/^the server is gone \(no connection \(ECONNREFUSED\)\)/);
    const locked = createServer((_, response) => response.writeHead(401).end()).listen(0, "127.0.0.1");
    await once(locked, "listening");
    onCleanUp(() => {
      locked.closeAllConnections();
      locked.close();
    });
    const other = await House.build();
    await provide(other, (locked.address() as AddressInfo).port);
    await other.hears(/wants a login \(HTTP 401\).* give it a token in a header/);
  });

  it("gets the arguments byte for byte", async () => {
    const home = await House.build();
    let seen = "";
    const { port } = await byHand((body, id) => {
      seen = body;
      return { jsonrpc: "2.0", id, result: { content: [] } };
    });
    await provide(home, port);
    await home.hears(/^in service/);
    const args = '{"a":9007199254740993, "b": 1.0}';
    expect(await home.result("echo", args)).toEqual({ content: [] });
    expect(seen).toContain(`"arguments":${args}`);
  });
});

/** Answers calls with events: one, or none at all. */
async function byHand(
  answer: (body: string, id: unknown) => object | undefined,
): Promise<{ readonly port: number }> {
  const server = createServer((request, response) => void handle(request, response, answer));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onCleanUp(() => {
    server.closeAllConnections();
    server.close();
  });
  return server.address() as AddressInfo;
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  answer: (body: string, id: unknown) => object | undefined,
): Promise<void> {
  if (request.method !== "POST") return void response.writeHead(405).end();
  const body = await text(request);
  const { id, method, params } = JSON.parse(body) as Readonly<Record<string, unknown>>;
  const json = (message: object) =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(message));
  if (method === "initialize") {
    const { protocolVersion } = params as { readonly protocolVersion: string };
    const serverInfo = { name: "by hand", version: "1" };
    json({ jsonrpc: "2.0", id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
  } else if (method === "tools/list") {
    json({ jsonrpc: "2.0", id, result: { tools: [{ name: "echo", inputSchema: { type: "object" } }] } });
  } else if (method === "tools/call") {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const given = answer(body, id);
    response.end(given === undefined ? ": nothing\n\n" : `data: ${JSON.stringify(given)}\n\n`);
  } else if (id === undefined) response.writeHead(202).end();
  else json({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
}
