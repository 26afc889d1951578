// `callgate.tools.list|announce|diff|accept`: which tools there are, and how announced ones come into service.

import { fault } from "../../base/faults.ts";
import { type Json, jsonText } from "../../base/json.ts";
import type { Labels } from "../../base/labels.ts";
import { grantsOfRole, servesTool } from "../../policy/grant_index.ts";
import type { RolePolicy, ToolPolicy } from "../../policy/policy.ts";
import type { Change } from "../../store/records.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { CONFIG, type Definition, pinRecord, type Resolved } from "../definitions.ts";
import { actorOf } from "../live.ts";
import { flag, objectSchema, text } from "./arguments.ts";
import { type BuiltinSource, changed, shown } from "./builtin.ts";
import { actsForItself } from "./visibility.ts";

const ANNOUNCED_TOOLS_MAX = 256;
/** Names that one connection may have announced in its life. */
const ANNOUNCED_NAMES_MAX = 1024;

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
  const looked = viewer.operator ? { definition: lookedAt(core, name) } : {};
  if (resolved === undefined)
    return viewer.operator ? { name, in_service: false, announced: true, ...looked } : undefined;
  const { tool, pin } = resolved;
  const { description, schema, annotations } = readable(core, resolved);
  return {
    name,
    description: description ?? null,
    effect: tool.effect,
    in_service: core.peers.leastLoaded(tool.role, name, pin?.definition.digest) !== undefined,
    schema: schema === undefined ? null : plain(schema.source),
    ...(annotations === undefined ? {} : { annotations }),
    ...looked,
  };
}

/** Whether somebody has looked at what was announced: null where nothing was. */
function lookedAt(core: Core, name: string): "waiting" | "unseen" | "accepted" | null {
  if (core.definitions.waiting(name) !== undefined) return "waiting";
  const pin = core.definitions.pinned(name);
  if (pin === undefined) return null;
  return pin.acceptedBy === CONFIG ? "unseen" : "accepted";
}

/** The owner's words; a provider's (its schema holds words too) only once an operator has looked at them. */
function readable(core: Core, { tool, pin }: Resolved): Readable {
  const configured = core.runtime.policy.tools.get(tool.name);
  const accepted = pin !== undefined && pin.acceptedBy !== CONFIG ? pin.definition : undefined;
  return {
    description: configured?.description ?? accepted?.description,
    schema: configured?.schema ?? accepted?.schema,
    annotations: annotationsFor(tool.name, pin, accepted !== undefined),
  };
}

function annotationsFor(name: string, pin: Resolved["pin"], isAccepted: boolean): unknown {
  if (pin === undefined) return undefined;
  const annotations = annotationsIn(pin.definition.text);
  return isAccepted ? annotations : kindsOf(annotations, name);
}

const KIND = /^[a-z]{1,16}$/;
const KINDS_MAX = 4;

/**
 * Of annotations that nobody has looked at: which kinds of them there are (`{"mcp": {"v": 1}}`), so that a caller can read
 * the tool's results. No word of the provider's: the name in them is ours.
 */
function kindsOf(annotations: unknown, name: string): unknown {
  const kinds = Object.entries(annotations ?? {}).flatMap(([kind, inside]) => {
    const v: unknown = (inside as { readonly v?: unknown } | null)?.v;
    return KIND.test(kind) && Number.isSafeInteger(v) ? [[kind, { v, name }] as const] : [];
  });
  return kinds.length === 0 ? undefined : Object.fromEntries(kinds.slice(0, KINDS_MAX));
}

interface Readable extends Pick<ToolPolicy, "description" | "schema"> {
  /** Hints of a provider's that an operator has looked at: they decide nothing here. */
  readonly annotations: unknown;
}

function annotationsIn(definition: string): unknown {
  return (JSON.parse(definition) as { readonly annotations?: unknown }).annotations;
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
  const pins: Definition[] = [];
  for (const announced of tools as readonly Json[]) {
    // A schema may take its time to compile: whoever else waits is served in between.
    if (answers.length > 0) await new Promise<void>((resolve) => core.clock.afterInput(resolve));
    const definition = await core.definitions.read(core.runtime.policy, call.role, announced);
    if (typeof definition === "string") answers.push({ state: "refused", why: definition });
    else answers.push(takeDefinition(core, call, definition, pins));
  }
  const unwritten = pins.length > 0 && !(await writePins(core, call, pins));
  if (unwritten) return fault(UNPINNED);
  // One that runs foreign code should have one connection: it is told, so that it can say so.
  return shown({ tools: answers, role: call.role.name, connections: call.role.limits.connections });
}

const UNPINNED = callFault(
  "unavailable",
  "The broker can't write its records now, so what the config names was not put into service. Announce again.",
);

async function writePins(core: Core, call: BuiltinCall, pins: readonly Definition[]): Promise<boolean> {
  const by = actorOf(call.peer);
  const changes = pins.map((one): Change => ({ kind: "pinned", pin: pinRecord(one, CONFIG), by }));
  const written = await new Promise<boolean>((resolve) =>
    core.store.commit(changes, (unwritten) => resolve(unwritten === undefined)),
  );
  if (written) for (const one of pins) core.definitions.pin(one, CONFIG);
  return written;
}

function takeDefinition(core: Core, call: BuiltinCall, definition: Definition, pins: Definition[]): object {
  const { tool, digest } = definition;
  const { announced } = call.peer;
  if (announced.size >= ANNOUNCED_NAMES_MAX && !announced.has(tool))
    return { state: "refused", why: "this connection has announced too many names" };
  announced.set(tool, digest);
  const state = core.definitions.offer(core.runtime.policy, definition);
  if (state === "pinnable") pins.push(definition);
  const said = state === "pinnable" ? "in_service" : state;
  const level = state === "changed" ? "warn" : "info";
  core.log(level, "tool.announced", { role: call.role.name, tool, state: said, digest });
  return { name: tool, digest, state: said };
}

/** What waits for an operator beside what is pinned. The words are the provider's: never trusted. */
function diff(core: Core, call: BuiltinCall): BuiltinOutcome {
  const name = text(call.args, "tool") ?? "";
  const { waiting, pinned, role } = ofTool(core, call, name);
  if (role === undefined)
    return fault(callFault("bad_arguments", `No definition of that tool was announced. ${NOTHING_RAN}`));
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

/** The definitions of a tool that the caller may look at. */
function ofTool(core: Core, call: BuiltinCall, name: string) {
  const waiting = core.definitions.waiting(name);
  const pinned = core.definitions.pinned(name);
  const role = waiting?.role ?? pinned?.definition.role;
  if (role === undefined || (!call.role.operator && role !== call.role.name)) return NO_DEFINITIONS;
  return { waiting, pinned, role };
}

const NO_DEFINITIONS = { waiting: undefined, pinned: undefined, role: undefined };

/** Of a definition that waits, or of one that only the config's naming of it put into service. */
function accept(core: Core, call: BuiltinCall): BuiltinOutcome {
  const tool = text(call.args, "tool") ?? "";
  const digest = text(call.args, "digest") ?? "";
  const definition = core.definitions.acceptable(tool, digest);
  if (definition === undefined || !call.role.operator)
    return fault(callFault("bad_arguments", `No definition with that digest waits. ${NOTHING_RAN}`));
  const provider = core.runtime.policy.roles.get(definition.role);
  if (provider === undefined || actsForItself(core, call, provider))
    return fault(
      callFault("bad_arguments", `Nobody accepts the tools of their own role or user. ${NOTHING_RAN}`),
    );
  const open = conditionalAllow(core, definition);
  if (open !== undefined)
    return fault(
      callFault(
        "bad_arguments",
        `Grant \`${open}\` allows the tool under a condition, so its schema must have additionalProperties false. ${NOTHING_RAN}`,
      ),
    );
  const by = call.role.name;
  const isAnother = core.definitions.pinned(tool)?.definition.digest !== digest;
  const forgotten = isAnother ? core.grants.forgetRemembered(tool, actorOf(call.peer)) : undefined;
  return changed(
    { tool, digest, accepted: true },
    {
      changes: [
        { kind: "pinned", pin: pinRecord(definition, by), by: actorOf(call.peer) },
        ...(forgotten?.changes ?? []),
      ],
      settled: (written) => {
        forgotten?.settled(written);
        if (!written) return;
        core.definitions.pin(definition, by);
        core.log("info", "tool.accepted", { tool, digest, by });
      },
    },
  );
}

/** The grant that an argument which its condition never looks at could get around. */
function conditionalAllow(core: Core, { tool, schema }: Definition): string | undefined {
  const configured = core.runtime.policy.tools.get(tool)?.schema;
  if ((configured ?? schema)?.closed === true) return undefined;
  const grants = [...core.runtime.policy.grants, ...core.grants.all()];
  return grants.find(
    (grant) => grant.effect === "allow" && grant.when !== undefined && servesTool(grant, tool),
  )?.id;
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
    effect: "read", // it is about this connection: asked again it is done again, never answered from a record
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
