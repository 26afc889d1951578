// A look at an MCP server: it is started once as `callgate mcp provide` starts it, says which tools it has, and is ended.
// Invariant: what is handed on of it is names in the broker's grammar, hints, and words that are for showing only; when a look
// is over, nothing of the server is left that its keeper could find.

import { visibleLine } from "../base/display.ts";
import { fault, ok, type Result } from "../base/faults.ts";
import { serverEnvironment } from "../roles/mcp/provide/environment.ts";
import { ExactArguments } from "../roles/mcp/provide/exact_arguments.ts";
import type { McpSession } from "../roles/mcp/provide/mcp_client.ts";
import { notStarted } from "../roles/mcp/provide/server_life.ts";
import { addressSource, commandSource, type ServerSource } from "../roles/mcp/provide/server_source.ts";
import { readTools } from "../roles/mcp/provide/tool_table.ts";
import { type McpServerReach, variablesOf } from "./mcp_server_entry.ts";
import { packageVersion } from "./package_version.ts";

/** As a server says it of its tool. Nothing of it is known to be so. */
export interface SeenTool {
  /** The broker's. */
  readonly name: string;
  readonly hints: ToolHints;
  /** Its title or the beginning of its description, unescaped. */
  readonly words: string;
}

/** Each as the protocol has it where it is said, else undefined. */
export interface ToolHints {
  readonly readOnly: boolean | undefined;
  readonly destructive: boolean | undefined;
  readonly openWorld: boolean | undefined;
}

export interface Seen {
  readonly tools: readonly SeenTool[];
  /** Why tools are left out, a line each, escaped. */
  readonly leftOut: readonly string[];
}

export interface LookSettings {
  /** In front of the tools' names. */
  readonly prefix: string;
  /** For all of it. */
  readonly limitMs: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Files and directories that a command is not to see. */
  readonly hidden: readonly string[];
  /** Where a command runs that does not say where. */
  readonly home: string;
}

/** Lines of a server's that tell why it did not start. */
const LINES_KEPT = 3;

/** The fault is for people, escaped, in up to four lines. */
export async function lookAtServer(reach: McpServerReach, settings: LookSettings): Promise<Result<Seen>> {
  const said: string[] = [];
  const source = sourceOf(reach, settings, (line) => said.push(line));
  if (!source.ok) return source;
  const endAtMs = performance.now() + settings.limitMs;
  let seen = await lookOnce(source.value, settings, false, endAtMs);
  // Old servers end at a question of the newest protocol.
  if (!seen.ok && seen.fault.endedByItself) seen = await lookOnce(source.value, settings, true, endAtMs);
  if (seen.ok) return seen;
  return fault([seen.fault.words, ...said.slice(-LINES_KEPT)].join("\n"));
}

function sourceOf(
  reach: McpServerReach,
  { env: ours, home, hidden }: LookSettings,
  say: (line: string) => void,
): Result<ServerSource> {
  const effects = { exact: new ExactArguments(), say, monotonicMs: () => performance.now() };
  if (reach.kind === "url")
    return ok(addressSource({ url: new URL(reach.url), headers: reach.headers }, effects));
  const { command, args, cwd = home } = reach;
  const env = serverEnvironment(variablesOf(reach.env), ours);
  return env.ok
    ? ok(
        commandSource(
          { command, args, env: env.value, cwd, confinement: { socket: undefined, hidden } },
          effects,
        ),
      )
    : env;
}

interface LookFault {
  readonly words: string;
  readonly endedByItself: boolean;
}

async function lookOnce(
  source: ServerSource,
  { prefix, limitMs }: LookSettings,
  oldOnly: boolean,
  endAtMs: number,
): Promise<Result<Seen, LookFault>> {
  const leftMs = Math.max(1, endAtMs - performance.now());
  const opening = source.open({
    ...{ version: packageVersion(), oldOnly, stepMs: leftMs },
    onToolsChanged: () => undefined,
    onTrouble: () => undefined,
  });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    void opening.stop();
  }, leftMs);
  const opened = await opening.session;
  const listed = opened.ok ? await listedBy(opened.value, prefix) : opened;
  clearTimeout(timer);
  await opening.stop();
  const gone = await opening.gone;
  if (listed.ok) return listed;
  if (late)
    return fault({ words: `it did not answer in ${Math.ceil(limitMs / 1000)} s`, endedByItself: false });
  const words = gone.neverStarted
    ? notStarted(gone.words)
    : gone.byItself
      ? `it ended (${gone.words})`
      : listed.fault;
  return fault({ words, endedByItself: !opened.ok && gone.byItself && !gone.neverStarted });
}

async function listedBy(session: McpSession, prefix: string): Promise<Result<Seen>> {
  const listed = await session.listTools();
  if (!listed.ok) return listed;
  const { entries, leftOut } = readTools(listed.value, prefix, new Set(), new Map());
  const tools = [...entries].map(([name, { tool }]): SeenTool => {
    const { title, description = "", annotations = {} } = tool;
    const words = title ?? (typeof annotations["title"] === "string" ? annotations["title"] : description);
    return { name, hints: hintsIn(annotations), words };
  });
  return ok({ tools, leftOut });
}

function hintsIn(annotations: Readonly<Record<string, unknown>>): ToolHints {
  const hint = (name: string) => {
    const value = annotations[name];
    return typeof value === "boolean" ? value : undefined;
  };
  return {
    readOnly: hint("readOnlyHint"),
    destructive: hint("destructiveHint"),
    openWorld: hint("openWorldHint"),
  };
}

/** What was asked for, for people: the program without its arguments, which may hold secrets. */
export function reachWords(reach: McpServerReach): string {
  return visibleLine(reach.kind === "url" ? new URL(reach.url).origin : reach.command, 120);
}
