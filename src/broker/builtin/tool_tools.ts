// `callgate.tools.list|announce|diff|accept`: which tools there are, and how announced ones come into service.

import { fault } from "../../base/faults.ts";
import { type Json, jsonText } from "../../base/json.ts";
import type { Labels } from "../../base/labels.ts";
import { grantsOfRole, servesTool } from "../../policy/grant_index.ts";
import type { RolePolicy } from "../../policy/policy.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { Core } from "../core.ts";
import type { Resolved } from "../definitions.ts";
import { flag, objectSchema, text } from "./arguments.ts";
import type { BuiltinCall, BuiltinOutcome } from "./builtin.ts";
import { shown } from "./run.ts";
import type { BuiltinSource } from "./table.ts";

const ANNOUNCED_TOOLS_MAX = 256;

/** Exactly what the caller's grants could let through; operators see every tool. */
function list(core: Core, call: BuiltinCall): BuiltinOutcome {
  const { policy, index } = core.runtime;
  const prefix = text(call.args, "prefix") ?? "";
  const useful = grantsOfRole(index, call.role.name).filter((grant) => grant.effect !== "deny");
  const names = [
    ...new Set([...policy.tools.keys(), ...core.definitions.names(), ...core.builtins.keys()]),
  ].sort();
  const tools = names
    .filter((name) => name.startsWith(prefix))
    .filter((name) => call.role.operator || useful.some((grant) => servesTool(grant, name)))
    .map((name) => shownTool(core, call.role, name))
    .filter((tool) => tool !== undefined);
  return shown({ tools });
}

function shownTool(core: Core, viewer: RolePolicy, name: string) {
  const builtin = core.builtins.get(name);
  if (builtin !== undefined) {
    return {
      name,
      description: builtin.description,
      effect: builtin.effect,
      in_service: true,
      schema: plain(builtin.schema.source),
    };
  }
  const resolved = core.definitions.resolve(core.runtime.policy, name);
  if (resolved === undefined)
    return viewer.operator ? { name, in_service: false, announced: true } : undefined;
  const { tool, pin } = resolved;
  const inService = core.peers.leastLoaded(tool.role, name, pin?.definition.digest) !== undefined;
  const schema = tool.schema === undefined ? null : plain(tool.schema.source);
  return {
    name,
    description: description(resolved) ?? null,
    effect: tool.effect,
    in_service: inService,
    schema,
  };
}

/** The owner's words; a provider's only once an operator has looked at them. */
function description({ tool, pin }: Resolved): string | undefined {
  if (tool.description !== undefined || pin === undefined || pin.acceptedBy === "config")
    return tool.description;
  return pin.definition.description;
}

/** A parsed value as JSON again. */
function plain(value: Json): unknown {
  return JSON.parse(jsonText(value));
}

async function announce(core: Core, call: BuiltinCall): Promise<BuiltinOutcome> {
  const tools = call.args.get("tools");
  if (!Array.isArray(tools) || tools.length > ANNOUNCED_TOOLS_MAX) {
    return fault(
      callFault(
        "bad_arguments",
        `\`tools\` must be a list of at most ${ANNOUNCED_TOOLS_MAX} definitions. ${NOTHING_RAN}`,
      ),
    );
  }
  call.peer.cancellable = flag(call.args, "cancellable") ?? false;
  const answers: object[] = [];
  for (const announced of tools as readonly Json[]) answers.push(await takeDefinition(core, call, announced));
  return shown({ tools: answers });
}

async function takeDefinition(core: Core, call: BuiltinCall, announced: Json): Promise<object> {
  const definition = await core.definitions.read(core.runtime.policy, call.role, announced);
  if (typeof definition === "string") return { state: "refused", why: definition };
  call.peer.announced.set(definition.tool, definition.digest);
  const { state, pin } = core.definitions.offer(core.runtime.policy, definition);
  if (pin !== undefined) core.store.commit([{ kind: "pinned", pin }], () => undefined);
  core.log(state === "changed" ? "warn" : "info", "tool.announced", {
    role: call.role.name,
    tool: definition.tool,
    state,
    digest: definition.digest,
  });
  return { name: definition.tool, digest: definition.digest, state };
}

/** What waits for an operator beside what is pinned. The words are the provider's: never trusted. */
function diff(core: Core, call: BuiltinCall): BuiltinOutcome {
  const name = text(call.args, "tool") ?? "";
  const waiting = core.definitions.waiting(name);
  const pinned = core.definitions.pinned(name);
  if (waiting === undefined && pinned === undefined)
    return fault(callFault("bad_arguments", `No definition of that tool was announced. ${NOTHING_RAN}`));
  const role = waiting?.role ?? pinned?.definition.role ?? "";
  const labels: Labels = {
    class: core.runtime.policy.roles.get(role)?.classMax ?? "restricted",
    untrusted: true,
  };
  const content = {
    tool: name,
    role,
    pinned:
      pinned === undefined
        ? null
        : {
            digest: pinned.definition.digest,
            accepted_by: pinned.acceptedBy,
            definition: JSON.parse(pinned.definition.text),
          },
    announced:
      waiting === undefined ? null : { digest: waiting.digest, definition: JSON.parse(waiting.text) },
  };
  return shown(content, labels);
}

function accept(core: Core, call: BuiltinCall): BuiltinOutcome {
  const tool = text(call.args, "tool") ?? "";
  const waiting = core.definitions.waiting(tool);
  if (waiting?.role === call.role.name)
    return fault(callFault("bad_arguments", `A role can't accept its own tools. ${NOTHING_RAN}`));
  const pin = core.definitions.accept(tool, text(call.args, "digest") ?? "", call.role.name);
  if (pin === undefined)
    return fault(callFault("bad_arguments", `No definition with that digest waits. ${NOTHING_RAN}`));
  core.store.commit(
    [
      { kind: "pinned", pin },
      { kind: "audit", record: { kind: "change", what: "tool accepted", by: call.role.name, subject: tool } },
    ],
    () => undefined,
  );
  core.log("info", "tool.accepted", { tool, digest: pin.digest, by: call.role.name });
  return shown({ tool, digest: pin.digest, accepted: true });
}

const TOOL = { type: "string", description: "The tool's name." };

export const TOOL_TOOLS: readonly BuiltinSource[] = [
  {
    name: "callgate.tools.list",
    description: "The tools that the caller could be granted; for operators all.",
    effect: "read",
    schema: objectSchema({ prefix: { type: "string", description: "Only names that begin so." } }),
    run: list,
  },
  {
    name: "callgate.tools.announce",
    description:
      "A provider says which tools this connection serves: name, description, schema, annotations.",
    effect: "write",
    schema: objectSchema(
      {
        tools: { type: "array", description: "Definitions.", items: { type: "object" } },
        cancellable: { type: "boolean", description: "It can be told when a call of its was cancelled." },
      },
      "tools",
    ),
    run: announce,
  },
  {
    name: "callgate.tools.diff",
    description: "An announced definition beside the pinned one.",
    effect: "read",
    schema: objectSchema({ tool: TOOL }, "tool"),
    run: diff,
  },
  {
    name: "callgate.tools.accept",
    description: "Puts an announced definition into service: the one with this digest and no other.",
    effect: "write",
    schema: objectSchema(
      { tool: TOOL, digest: { type: "string", description: "As `callgate.tools.diff` shows it." } },
      "tool",
      "digest",
    ),
    run: accept,
  },
];
