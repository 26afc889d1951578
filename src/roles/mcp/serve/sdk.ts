// The one file that knows the protocol's library: what its server side is given, and what comes back from it, in types of
// our own. Which versions there are, their handshakes and the forms of their messages are the library's; which tools
// there are and what a call is answered are ours. A `tools/call` comes to us as it was sent: the library's own handler
// would take from a tool's result what it does not know.

import { randomUUID } from "node:crypto";
import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  isLegacyRequest,
  type JSONRPCMessage,
  type McpHttpHandler,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  Server,
  type ServerContext,
  type Transport,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { McpTool } from "../definition.ts";
import type { ProgressNotice } from "../progress.ts";
import type { CallToolResult } from "./call_result.ts";
import { exactArguments } from "./exact_arguments.ts";

/** What clients are answered with. */
export interface Answering {
  readonly version: string;
  /** @throws McpFault */
  readonly listTools: () => Promise<readonly McpTool[]>;
  /** @throws McpFault */
  readonly callTool: (request: ToolRequest) => Promise<ToolReply>;
  /** Over HTTP, before a call is taken: why its headers and it do not agree, as a sentence. */
  readonly headerFault: (
    name: string,
    argumentsText: string,
    headers: Headers,
  ) => Promise<string | undefined>;
}

export interface ToolRequest {
  readonly name: string;
  /** The text of a JSON object. */
  readonly argumentsText: string;
  /** Whether the client can be told to come again for the same call (2026-07-28). */
  readonly canComeAgain: boolean;
  /** Whether the client can ask its user something between two rounds. */
  readonly canElicit: boolean;
  /** What the client was given to come again with. */
  readonly state: string | undefined;
  /** What the client's user said to the question of the last round. */
  readonly said: "accept" | "decline" | "cancel" | undefined;
  /** Keeps a client that wants to hear of progress waiting. */
  readonly report: ((notice: ProgressNotice) => void) | undefined;
  /** Aborted where the client waits no more. */
  readonly signal: AbortSignal;
  /** Aborted where the client goes before the reply has reached it; never because of the reply itself. */
  readonly lost: AbortSignal;
  /** Whether the reason of that is the client's wish, and not a lost connection or its impatience. */
  readonly isWish: () => boolean;
}

export type ToolReply =
  | { readonly kind: "result"; readonly result: CallToolResult; readonly outputSchema?: object | undefined }
  | { readonly kind: "again"; readonly state: string; readonly question?: string }
  | { readonly kind: "gone" };

/** An error of the protocol's: its sentence goes to the client. */
export class McpFault extends Error {
  readonly code: "bad_params" | "internal";

  constructor(code: "bad_params" | "internal", sentence: string) {
    super(sentence);
    this.code = code;
  }
}

type Era = "legacy" | "modern";

const INSTRUCTIONS =
  "The tools here are behind callgate, which decides about every call. A denial or a wait for a person's approval comes as a tool error that says what happened and what would help; asking again with exactly the same arguments goes on waiting for the same call.";

/** `takes`: whether calls are among what it is asked; then the library can't tell a method that there is not. */
function makeServer(answering: Answering, era: Era, takes: "all" | "no_calls" = "all"): Server {
  const server = new Server(
    { name: "callgate", title: "callgate", version: answering.version },
    { capabilities: { tools: { listChanged: true } }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler("tools/list", async ({ params }) => {
    if (params?.cursor !== undefined)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        "There is no such cursor: the list has one page.",
      );
    const tools = await asked(() => answering.listTools());
    return { tools: [...tools] as never }; // unchecked by the library too: they are what was pinned
  });
  if (takes === "no_calls") return server;
  server.fallbackRequestHandler = async (request, ctx) => {
    if (request.method !== "tools/call")
      throw new ProtocolError(ProtocolErrorCode.MethodNotFound, "Method not found");
    const reply = await asked(() => answering.callTool(toolRequest(request.params, ctx, era)));
    return replyOf(server, reply) as never; // the library's type has an index signature
  };
  return server;
}

/** An error of ours, as the library has it. */
async function asked<T>(what: () => Promise<T>): Promise<T> {
  try {
    return await what();
  } catch (error) {
    if (!(error instanceof McpFault)) throw error;
    const code =
      error.code === "internal" ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams;
    throw new ProtocolError(code, error.message);
  }
}

function toolRequest(params: unknown, ctx: ServerContext, era: Era): ToolRequest {
  const { name, arguments: given, _meta } = (params ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof name !== "string") throw new McpFault("bad_params", "`name` must be a tool's name.");
  const argumentsText = exactArguments(given);
  if (argumentsText === undefined) throw new McpFault("bad_params", "`arguments` must be a JSON object.");
  const state = ctx.mcpReq.requestState();
  if (state !== undefined && typeof state !== "string") throw new McpFault("bad_params", BAD_STATE);
  const token = (_meta as { readonly progressToken?: unknown } | undefined)?.progressToken;
  const { signal, lost, isWish } = ending(ctx);
  return {
    ...{ name, argumentsText, state, signal, lost, isWish },
    canComeAgain: era === "modern",
    canElicit: era === "modern" && hasForms(ctx),
    said: saidIn(ctx),
    report: typeof token === "string" || typeof token === "number" ? reporter(ctx, token) : undefined,
  };
}

export const BAD_STATE = "Invalid or expired requestState";

function hasForms({ mcpReq }: ServerContext): boolean {
  const envelope = mcpReq.envelope as Readonly<Record<string, unknown>> | undefined; // checked by the library, not typed
  const capabilities = envelope?.[CLIENT_CAPABILITIES_META_KEY] as
    | { readonly elicitation?: object }
    | undefined;
  const elicitation = capabilities?.elicitation;
  if (elicitation === undefined) return false;
  return "form" in elicitation || !("url" in elicitation); // without either it is forms, as it was before there were two
}

const QUESTION = "approval";

function saidIn({ mcpReq: { inputResponses } }: ServerContext): ToolRequest["said"] {
  const action = (inputResponses?.[QUESTION] as { readonly action?: unknown } | undefined)?.action;
  return action === "accept" || action === "decline" || action === "cancel" ? action : undefined;
}

function reporter({ mcpReq }: ServerContext, progressToken: string | number): ToolRequest["report"] {
  return (notice) => {
    const params = { ...notice, progressToken };
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined); // the client has gone
  };
}

/** Clients cancel what they have no more patience for, with these words of their library's. */
const IMPATIENCE = /tim(?:ed?|ing)[ -]?out/i;

/** When the client waits no more, and whether it said that it does not want the answer. */
function ending({ mcpReq, http }: ServerContext): Pick<ToolRequest, "signal" | "lost" | "isWish"> {
  const { signal } = mcpReq;
  return {
    signal: eitherOf(signal, http?.req?.signal),
    lost: http?.req?.signal ?? signal, // over HTTP the library aborts its own when it has answered, too
    // A lost connection has an error of the library's for a reason, a client its own words or none.
    isWish: () =>
      signal.aborted && !(signal.reason instanceof SdkError) && !IMPATIENCE.test(String(signal.reason)),
  };
}

/** As AbortSignal.any, which the runtime would hold on to for as long as somebody listens. */
function eitherOf(signal: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  if (other === undefined) return signal;
  const either = new AbortController();
  const abort = () => either.abort();
  for (const one of [signal, other]) {
    if (one.aborted) abort();
    else one.addEventListener("abort", abort, { once: true });
  }
  return either.signal;
}

function replyOf(server: Server, reply: ToolReply): object {
  switch (reply.kind) {
    case "gone":
      return { content: [] }; // the library sends nothing for a request that was aborted
    case "again":
      return { resultType: "input_required", requestState: reply.state, ...question(reply.question) };
    case "result":
      return server.projectCallToolResult(reply.result as never, reply.outputSchema as never);
  }
}

function question(message: string | undefined): object {
  if (message === undefined) return {};
  const requestedSchema = { type: "object", properties: {} };
  const params = { mode: "form", message, requestedSchema };
  return { inputRequests: { [QUESTION]: { method: "elicitation/create", params } } };
}

export interface ServedStdio {
  /** Tells the client that there is another list. */
  changed(): void;
  close(): Promise<void>;
}

/** A message as the library knows it; what it holds is checked there. */
export type McpMessage = JSONRPCMessage;
export type McpTransport = Transport;

/** Serves the one client at the other end of `transport`. */
export function serveConnection(answering: Answering, transport: Transport): ServedStdio {
  let current: Server | undefined;
  const handle = serveStdio(
    ({ era }) => {
      current = makeServer(answering, era);
      return current;
    },
    { transport, maxSubscriptions: SUBSCRIPTIONS_MAX, onerror: () => undefined },
  );
  return { changed: () => tellChanged(current), close: () => handle.close() };
}

const SUBSCRIPTIONS_MAX = 16;

function tellChanged(server: Server | undefined): void {
  server?.sendToolListChanged().catch(() => undefined); // not connected yet, or not any more
}

/** A session over HTTP of a version before 2026. */
export interface HttpSession {
  /** undefined: it has not begun. */
  readonly id: string | undefined;
  fetch(request: Request, body: unknown): Promise<Response>;
  changed(): void;
  close(): Promise<void>;
}

/** `onClosed`: told where the client ends it. */
export async function newSession(answering: Answering, onClosed: (id: string) => void): Promise<HttpSession> {
  const server = makeServer(answering, "legacy");
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessionclosed: onClosed,
  });
  await server.connect(transport);
  return {
    get id() {
      return transport.sessionId;
    },
    fetch: (request, parsedBody) => transport.handleRequest(request, { parsedBody }),
    changed: () => tellChanged(server),
    close: () => server.close(),
  };
}

/** Whether a request is of a version before 2026. */
export function isOldRequest(request: Request, body: unknown): Promise<boolean> {
  return isLegacyRequest(request, body);
}

/** Versions from 2026 on over HTTP: every request stands alone. */
export class NewHttp {
  readonly #answering: Answering;
  readonly #calls: McpHttpHandler;
  /** Of all but calls: here the library answers 404 to methods that there are not. */
  readonly #others: McpHttpHandler;

  constructor(answering: Answering) {
    this.#answering = answering;
    const legacy = "reject";
    this.#calls = createMcpHandler(() => makeServer(answering, "modern"), { legacy });
    this.#others = createMcpHandler(() => makeServer(answering, "modern", "no_calls"), {
      ...{ legacy, maxSubscriptions: SUBSCRIPTIONS_HTTP_MAX },
    });
  }

  async fetch(request: Request, parsedBody: unknown): Promise<Response> {
    const { method, id, params } = (parsedBody ?? {}) as Sent;
    if (method !== "tools/call") return this.#others.fetch(request, { parsedBody });
    const sentence = await this.#headerFault(request, params);
    if (sentence === undefined) return this.#calls.fetch(request, { parsedBody });
    const error = { code: HEADER_MISMATCH, message: sentence };
    return Response.json({ jsonrpc: "2.0", id, error }, { status: 400 });
  }

  changed(): void {
    this.#others.notify.toolsChanged();
  }

  async close(): Promise<void> {
    await Promise.all([this.#calls.close(), this.#others.close()]);
  }

  async #headerFault({ headers }: Request, params: Sent["params"]): Promise<string | undefined> {
    const text = exactArguments(params?.arguments);
    if (typeof params?.name !== "string" || text === undefined) return undefined;
    return this.#answering.headerFault(params.name, text, headers);
  }
}

/** As far as it is looked at before the library does. */
interface Sent {
  readonly method?: unknown;
  readonly id?: unknown;
  readonly params?: { readonly name?: unknown; readonly arguments?: unknown } | undefined;
}

/** The protocol's own code. */
const HEADER_MISMATCH = -32020;

const SUBSCRIPTIONS_HTTP_MAX = 128;
