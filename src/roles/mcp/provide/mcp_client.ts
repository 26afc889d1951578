// The one file that imports the MCP client SDK: a session with a server, over a transport. Here the SDK's exceptions become
// values. A server's own requests are refused, and results come as the server gave them: nothing is checked against
// its schemas here, and nothing left out but what belongs to the protocol.

import {
  Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type StandardSchemaV1,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { visibleLine } from "../../../base/display.ts";
import { fault, ok, type Result } from "../../../base/faults.ts";
import type { McpTool } from "../definition.ts";
import type { ChildTransport } from "./child_transport.ts";

export interface SessionSettings {
  readonly version: string;
  /** No probe for newer protocols: the server has ended at one. */
  readonly oldOnly: boolean;
  /** For each step of the start, and each page of the list. */
  readonly stepMs: number;
  readonly onToolsChanged: () => void;
  /** Over HTTP: the server can't be heard any more. */
  readonly onUnheard?: (() => void) | undefined;
  /** A request of the server's own was refused; or something else is odd. Text of ours and of the server's. */
  readonly onTrouble: (words: string) => void;
}

export interface CallHow {
  /** As `ExactArguments` holds them. */
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  /** Without an answer or progress. */
  readonly idleMs: number;
  readonly totalMs: number;
  /** What the server says of the call meanwhile; untrusted. */
  readonly onProgress: (notice: object) => void;
}

/**
 * `gone`: the server went away, and the session with it. `forgotten`: it is there, but knows our session no more. `told`: its
 * own error. The words are escaped and bounded.
 */
export interface CallFault {
  readonly kind: "gone" | "forgotten" | "unsent" | "told" | "timeout" | "cancelled" | "invalid";
  readonly words: string;
}

export interface McpSession {
  readonly protocol: string;
  listTools(): Promise<Result<readonly unknown[]>>;
  /** The server's result, whose members are as they came; its inside is untrusted. */
  call(tool: McpTool, how: CallHow): Promise<Result<Readonly<Record<string, unknown>>, CallFault>>;
  close(): Promise<void>;
}

export type McpTransport = ChildTransport | StreamableHTTPClientTransport;

export interface HttpSettings {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof fetch;
}

/** Redirects to another origin are refused by the SDK; a stream that breaks is resumed where the server can. */
export function httpTransport({ url, headers, fetch }: HttpSettings): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    redirectPolicy: "same-origin",
    fetch,
  });
}

/** Tells the server that its session is over, where it has one, and hangs up; also in the middle of a start. */
export async function endHttp(transport: StreamableHTTPClientTransport): Promise<void> {
  let callOff = () => {};
  const late = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, GOODBYE_MS);
    callOff = () => clearTimeout(timer);
  });
  await Promise.race([transport.terminateSession().catch(() => undefined), late]);
  callOff();
  await transport.close();
}

const GOODBYE_MS = 1000;
const TOOLS_MAX = 1024;
const PAGES_MAX = 64;
const WORDS_CHARS_MAX = 400;
/** Of an HTTP session that the server does not know any more: what it should say, and what many say. */
const NO_SESSION: readonly number[] = [404, 400];

/** Starts the transport and agrees on a protocol. The fault is for the log. */
export async function openSession(
  transport: McpTransport,
  settings: SessionSettings,
): Promise<Result<McpSession>> {
  const client = new Client(
    { name: "callgate", version: settings.version },
    {
      capabilities: {},
      versionNegotiation: { mode: "auto", probe: { timeoutMs: settings.stepMs } },
      inputRequired: { autoFulfill: false },
      listChanged: {
        tools: { autoRefresh: false, debounceMs: 100, onChanged: () => settings.onToolsChanged() },
      },
    },
  );
  client.onerror = (error) => {
    if (UNHEARD.test(error.message)) settings.onUnheard?.();
    if (!LATE.test(error.message)) settings.onTrouble(`of the server: ${wordsOf(error)}`);
  };
  client.fallbackRequestHandler = async ({ method }) => {
    settings.onTrouble(`the server's own request ${visibleLine(method, 60)} was refused`);
    throw new ProtocolError(METHOD_NOT_FOUND, "Method not found");
  };
  const prior = settings.oldOnly ? ({ kind: "legacy" } as const) : undefined;
  try {
    // The SDK's transport interface has methods of one name twice, which a class of ours can't have exactly.
    await client.connect(transport as StreamableHTTPClientTransport, {
      timeout: settings.stepMs,
      ...(prior === undefined ? {} : { prior }),
    });
  } catch (error) {
    await client.close().catch(() => undefined);
    return fault(wordsOf(error));
  }
  return ok(sessionOf(client, settings));
}

/** What the SDK says of progress that comes when its call is over: many servers are so. */
const LATE = /^Received a progress notification for an unknown token/;
/** What the SDK says when it has given up the stream on which the server speaks unasked. */
const UNHEARD = /^Maximum reconnection attempts/;
const METHOD_NOT_FOUND = -32601;

function sessionOf(client: Client, { stepMs }: SessionSettings): McpSession {
  return {
    protocol: client.getNegotiatedProtocolVersion() ?? "unknown",
    listTools: () => listTools(client, stepMs),
    call: (tool, how) => callTool(client, tool, how),
    close: () => client.close().catch(() => undefined),
  };
}

async function listTools(client: Client, timeout: number): Promise<Result<readonly unknown[]>> {
  const tools: unknown[] = [];
  let cursor: string | undefined;
  if (client.getServerCapabilities()?.tools === undefined) return ok(tools);
  for (let page = 0; page < PAGES_MAX; page++) {
    try {
      const params = cursor === undefined ? {} : { cursor };
      const listed = await client.request({ method: "tools/list", params }, AS_IT_CAME, { timeout });
      if (!Array.isArray(listed["tools"])) return fault("the server's list of tools is none");
      tools.push(...(listed["tools"] as unknown[]));
      cursor = typeof listed["nextCursor"] === "string" ? listed["nextCursor"] : undefined;
    } catch (error) {
      return fault(wordsOf(error));
    }
    if (tools.length > TOOLS_MAX) return fault(`the server lists more than ${TOOLS_MAX} tools`);
    if (cursor === undefined) return ok(tools);
  }
  return fault(`the server's list of tools has more than ${PAGES_MAX} pages`);
}

async function callTool(
  client: Client,
  tool: McpTool,
  { args, signal, idleMs, totalMs, onProgress }: CallHow,
): Promise<Result<Readonly<Record<string, unknown>>, CallFault>> {
  const options = {
    signal,
    timeout: idleMs,
    maxTotalTimeout: totalMs,
    resetTimeoutOnProgress: true,
    onprogress: onProgress, // always asked for, so that a long call shows that it lives
  };
  const params = { name: tool.name, arguments: args };
  try {
    if (mirrorsHeaders(client, tool)) {
      const { outputSchema: _, ...toolDefinition } = tool;
      const how = { ...options, toolDefinition: toolDefinition as never };
      return ok(await client.callTool(params, how));
    }
    return ok(await client.request({ method: "tools/call", params }, AS_IT_CAME, options));
  } catch (error) {
    return fault(callFault(error, signal));
  }
}

/** Some servers of the newest protocol want arguments in headers too, which only the SDK's own way of calling does. */
function mirrorsHeaders(client: Client, { inputSchema }: McpTool): boolean {
  return client.getProtocolEra() === "modern" && JSON.stringify(inputSchema).includes('"x-mcp-header"');
}

/** Instead of a schema of the SDK's, which would leave out members that it does not know. */
const AS_IT_CAME: StandardSchemaV1<unknown, Record<string, unknown>> = {
  "~standard": {
    version: 1,
    vendor: "callgate",
    validate: (value: unknown) =>
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? { value: value as Record<string, unknown> } // any JSON object is one
        : { issues: [{ message: "it is no object" }] },
  },
};

function callFault(error: unknown, signal: AbortSignal): CallFault {
  const words = wordsOf(error);
  if (signal.aborted) return { kind: "cancelled", words };
  if (error instanceof ProtocolError) return { kind: "told", words };
  if (error instanceof SdkHttpError) {
    return { kind: NO_SESSION.includes(error.data.status ?? 0) ? "forgotten" : "told", words };
  }
  if (!(error instanceof SdkError)) return { kind: "unsent", words };
  if (error.code === SdkErrorCode.RequestTimeout) return { kind: "timeout", words };
  if (error.code === SdkErrorCode.UnsupportedResultType) return { kind: "invalid", words: WANTS_INPUT };
  const isGone = error.code === SdkErrorCode.ConnectionClosed || error.code === SdkErrorCode.NotConnected;
  return { kind: isGone ? "gone" : "invalid", words };
}

const WANTS_INPUT = "the server asked for something before it would answer, which is not passed on";

/** The SDK's words are its own programmers'; those of them that owners meet are said plainly. */
function wordsOf(error: unknown): string {
  if (error instanceof ProtocolError)
    return visibleLine(`${error.message} (code ${error.code})`, WORDS_CHARS_MAX);
  const message = error instanceof Error ? error.message : "unknown error";
  const status = error instanceof SdkHttpError ? error.data.status : undefined;
  const plain = message.replace(OF_THE_SDK, "");
  if (status === 401 || LOGIN.test(plain)) return WANTS_LOGIN;
  if (plain === FETCH_FAILED) return visibleLine(`no connection (${reasonOf(error)})`, WORDS_CHARS_MAX);
  const told = status === undefined || plain.includes("HTTP") ? plain : `HTTP ${status}: ${plain}`;
  return visibleLine(told, WORDS_CHARS_MAX);
}

const OF_THE_SDK = /^Version negotiation (?:probe )?failed: |^Error POSTing to endpoint(?: \(HTTP \d+\))?: /;
const LOGIN = /^the server requires authorization/;
const WANTS_LOGIN =
  "the server wants a login (HTTP 401), which callgate does not do for it: give it a token in a header, Authorization: Bearer TOKEN";
const FETCH_FAILED = "fetch failed";
const CAUSES_MAX = 8;

/** What the innermost cause is called: ECONNREFUSED, CERT_HAS_EXPIRED. */
function reasonOf(error: unknown): string {
  let reason = "unknown reason";
  for (let at = error, i = 0; at instanceof Error && i < CAUSES_MAX; at = at.cause, i++) {
    const { code } = at as NodeJS.ErrnoException;
    if (at.message !== FETCH_FAILED && !OF_THE_SDK.test(at.message))
      reason = typeof code === "string" ? code : at.message;
  }
  return reason;
}
