// All tools that the broker serves itself.

import type { Json, JsonObject } from "../../base/json.ts";
import { compileArgumentsSchema } from "../../policy/schema.ts";
import type { ApprovalRecord } from "../../store/records.ts";
import type { Builtin } from "../core.ts";
import { APPROVAL_TOOLS } from "./approval_tools.ts";
import { text } from "./arguments.ts";
import { AUDIT_TOOLS } from "./audit_tools.ts";
import type { BuiltinSource } from "./builtin.ts";
import { CALL_TOOLS } from "./call_tools.ts";
import { GRANT_TOOLS } from "./grant_tools.ts";
import { SESSION_TOOLS } from "./session_tools.ts";
import { STATUS_TOOLS } from "./status_tools.ts";
import { TOOL_TOOLS } from "./tool_tools.ts";

const SOURCES: readonly BuiltinSource[] = [
  ...STATUS_TOOLS,
  ...TOOL_TOOLS,
  ...SESSION_TOOLS,
  ...GRANT_TOOLS,
  ...CALL_TOOLS,
  ...APPROVAL_TOOLS,
  ...AUDIT_TOOLS,
];

/** What each of them does, for whoever looks at a policy without a broker. */
export function builtinEffects(): ReadonlyMap<string, Builtin["effect"]> {
  return new Map(SOURCES.map(({ name, effect }) => [name, effect]));
}

/** Finds the question that an id names. */
type FindApproval = (id: string) => ApprovalRecord | undefined;

export async function loadBuiltins(
  findApproval: FindApproval = () => undefined,
): Promise<ReadonlyMap<string, Builtin>> {
  const ofApproval = approvalTarget(findApproval);
  const builtins = new Map<string, Builtin>();
  for (const source of SOURCES) {
    const schema = await compileArgumentsSchema(asJson(source.schema));
    if (!schema.ok) throw new Error(`the schema of ${source.name} is wrong: ${schema.fault[0]?.message}`);
    const { actsOn, ...rest } = source;
    const acting = actsOn === "approval" ? ofApproval : target;
    builtins.set(source.name, { ...rest, schema: schema.value, target: acting });
  }
  return builtins;
}

/** What a question's tools act on is the call that was asked: a grant can look at its role, tool and session. */
function approvalTarget(findApproval: FindApproval): Builtin["target"] {
  return (args, role) => {
    const question = findApproval(text(args, "approval") ?? "");
    if (question === undefined) return { role };
    return { role: question.key.role, tool: question.tool, session: question.key.session };
  };
}

/** Every other built-in names what it acts on by these arguments; the role left out is the caller's own. */
function target(args: JsonObject, role: string) {
  const tool = text(args, "tool");
  const session = text(args, "session");
  return {
    role: text(args, "role") ?? role,
    ...(tool === undefined ? {} : { tool }),
    ...(session === undefined ? {} : { session }),
  };
}

/** A schema written in code, as the parser would give it. */
function asJson(value: unknown): Json {
  if (Array.isArray(value)) return value.map(asJson);
  if (typeof value === "number") return BigInt(value);
  if (typeof value === "object" && value !== null) {
    return new Map(Object.entries(value).map(([name, member]) => [name, asJson(member)]));
  }
  return value as null | boolean | string;
}
