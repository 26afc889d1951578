// The server of the conformance suite's tools: on standard input and output, or with `--http` on a free port of
// 127.0.0.1, which it prints. There with sessions for clients of before 2026, and whose streams can be resumed.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { conformanceServer } from "./tools.mjs";

if (process.argv.includes("--http")) serveHttp();
else serveStdio(() => conformanceServer());

function serveHttp() {
  const modern = createMcpHandler(() => conformanceServer(() => modern.notify.toolsChanged()), {
    legacy: "reject",
  });
  const sessions = new Map();
  const server = createServer(async (incoming, outgoing) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
      method: incoming.method,
      headers: incoming.headers,
      ...(body.length === 0 ? {} : { body }),
    });
    await pass(await answer(modern, sessions, request), outgoing);
  });
  server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
}

async function answer(modern, sessions, request) {
  const refused =
    hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
    originValidationResponse(request, localhostAllowedOrigins());
  if (refused !== undefined) return refused;
  const id = request.headers.get("mcp-session-id");
  if (id === null && !(await isLegacyRequest(request.clone()))) return modern.fetch(request);
  const known = sessions.get(id);
  if (known !== undefined) return known.handleRequest(request);
  return id === null ? begun(sessions, request) : new Response(null, { status: 404 });
}

async function begun(sessions, request) {
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
    eventStore: new Events(),
    retryInterval: 100,
  });
  await conformanceServer().connect(transport);
  return transport.handleRequest(request);
}

/** The streams of one session, for clients that come back for what they have missed. */
class Events {
  #kept = [];

  async storeEvent(streamId, message) {
    this.#kept.push({ streamId, message });
    return String(this.#kept.length - 1);
  }

  async getStreamIdForEventId(eventId) {
    return this.#kept[Number(eventId)]?.streamId;
  }

  async replayEventsAfter(lastEventId, { send }) {
    const last = Number(lastEventId);
    const { streamId } = this.#kept[last];
    for (const [at, one] of this.#kept.entries()) {
      const isMessage = Object.keys(one.message).length > 0;
      if (at > last && one.streamId === streamId && isMessage) await send(String(at), one.message);
    }
    return streamId;
  }
}

async function pass(response, outgoing) {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  const reader = response.body?.getReader();
  outgoing.on("close", () => void reader?.cancel().catch(() => undefined));
  for (let piece = await reader?.read(); piece !== undefined && !piece.done; piece = await reader.read())
    outgoing.write(piece.value);
  outgoing.end();
}
