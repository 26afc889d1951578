// The tools that this role could be granted, as the broker tells them (`callgate.tools.list`), under the names that
// clients use. Invariant: what a client sees of a tool is what the owner wrote or an operator has accepted.

import { createHash } from "node:crypto";
import { fault, ok, type Result } from "../../../base/faults.ts";
import { BUILTIN_PREFIX } from "../../../base/ids.ts";
import { type BrokerTool, clientTool, clientToolName, type McpTool, mcpNotesOf } from "../definition.ts";
import { type HeaderParameter, headerParameters } from "./header_parameters.ts";

export interface ServedTool {
  /** The broker's name of it. */
  readonly tool: string;
  readonly isRead: boolean;
  /** An adapter serves it: its content is an MCP result. */
  readonly isMcp: boolean;
  readonly shown: McpTool;
  readonly headers: readonly HeaderParameter[];
}

export interface ToolTable {
  /** By the name that clients use. */
  readonly tools: ReadonlyMap<string, ServedTool>;
  /** Of all that a client sees: another one, another list. */
  readonly digest: string;
}

export const NO_TOOLS: ToolTable = { tools: new Map(), digest: "" };

/** Bounds what a broker's answer can make of us. */
const TOOLS_MAX = 4096;

/** `content`: of the broker's answer. The broker's own tools are this program's means, and no tools of a client's. */
export function toolTableOf(content: string): Result<ToolTable> {
  const listed = (JSON.parse(content) as { readonly tools?: readonly Listed[] }).tools;
  if (!Array.isArray(listed)) return fault("the broker's list of tools is none");
  const tools = new Map<string, ServedTool>();
  for (const one of listed.slice(0, TOOLS_MAX) as readonly Listed[]) {
    if (one.name.startsWith(BUILTIN_PREFIX)) continue;
    tools.set(clientToolName(one.name), servedTool(one));
  }
  return ok({ tools, digest: digestOf(tools) });
}

interface Listed extends BrokerTool {
  readonly effect: string;
}

function servedTool(listed: Listed): ServedTool {
  const isMcp = mcpNotesOf(listed) !== undefined;
  const shown = clientTool(listed);
  const isRead = listed.effect === "read";
  return {
    ...{ tool: listed.name, isRead, isMcp, shown: isMcp ? shown : withHints(shown, isRead) },
    headers: headerParameters(shown.inputSchema),
  };
}

/** Of a tool that no adapter serves the owner's `effect` says what the protocol has a hint for. */
function withHints(shown: McpTool, isRead: boolean): McpTool {
  return { ...shown, annotations: { readOnlyHint: isRead } };
}

function digestOf(tools: ReadonlyMap<string, ServedTool>): string {
  const shown = [...tools.values()].map((tool) => [tool.tool, tool.shown]);
  return createHash("sha256").update(JSON.stringify(shown)).digest("base64url");
}
