// `[[grants]]`: each read and compiled on its own, then checked against roles and tools. A grant
// that could never mean what its owner wrote is a fault: a tool that does not exist, a condition on
// arguments that nothing closes, a bound that its effect has no use for.

import {
  BUILTIN_PREFIX,
  isGrantId,
  isSessionPattern,
  isToolPattern,
  type Pattern,
  patternMatches,
  toolPatternMatches,
} from "../base/ids.ts";
import { DATA_CLASSES } from "../base/labels.ts";
import type { Condition, ConditionCompiler } from "../policy/conditions.ts";
import type { Grant } from "../policy/policy.ts";
import { type Located, printable, quote, type Report, suggestion } from "./config_faults.ts";
import { checkQuestions, QUESTION_SHAPE, questionsOf, USES_SHAPE } from "./config_grant_questions.ts";
import type { RoleDraft } from "./config_roles.ts";
import { flag, instant, list, oneOf, readTable, type TableRead, text } from "./config_shape.ts";
import type { TomlTable } from "./config_toml.ts";
import type { ToolDraft } from "./config_tools.ts";

/** The broker's own tools that a grant may name. */
export const BUILTIN_TOOLS: readonly string[] = [
  "callgate.status",
  "callgate.tools.list",
  "callgate.tools.announce",
  "callgate.tools.diff",
  "callgate.tools.accept",
  "callgate.sessions.open",
  "callgate.sessions.list",
  "callgate.sessions.show",
  "callgate.sessions.endorse",
  "callgate.sessions.close",
  "callgate.grants.list",
  "callgate.grants.add",
  "callgate.grants.revoke",
  "callgate.grants.explain",
  "callgate.calls.list",
  "callgate.calls.show",
  "callgate.calls.why",
  "callgate.calls.cancel",
  "callgate.calls.settle",
  "callgate.approvals.list",
  "callgate.approvals.show",
  "callgate.approvals.watch",
  "callgate.approvals.approve",
  "callgate.approvals.refuse",
  "callgate.audit.checkpoint",
  "callgate.audit.verify",
  "callgate.audit.export",
  "callgate.freeze",
  "callgate.reload",
];

const GRANT_SHAPE = {
  id: text("a lower-case letter, then letters, digits, ., _ or - (at most 64)", isGrantId),
  role: text("the name of a role"),
  tools: list(
    text('a tool name, or a prefix and one * at its end, such as "files.*"', isToolPattern),
    "a list of tool names or prefixes that end in *",
    'name the tools, or write ["*"] for all of them',
  ),
  sessions: list(
    text('a session id, or a prefix and one * at its end, such as "mail-*"', isSessionPattern),
    "a list of session ids or prefixes that end in *",
    "leave it out for all sessions",
  ),
  effect: oneOf(["allow", "ask", "deny"]),
  when: text("a CEL condition in quotes"),
  taint_max: oneOf(DATA_CLASSES),
  taint_untrusted: flag,
  above_taint: oneOf(["deny", "ask"]),
  expires: instant,
  ...USES_SHAPE,
  ...QUESTION_SHAPE,
  reason: text(),
} as const;

export type GrantRead = TableRead<typeof GRANT_SHAPE>;

export interface GrantDraft {
  readonly policy: Grant;
  readonly read: GrantRead;
}

export interface Surroundings {
  readonly roles: ReadonlyMap<string, RoleDraft>;
  readonly tools: ReadonlyMap<string, ToolDraft>;
}

/** `loadConditions` is called once, and only where a grant has a condition. */
export async function readGrants(
  grants: readonly TomlTable[],
  around: Surroundings,
  loadConditions: () => Promise<ConditionCompiler>,
  report: Report,
): Promise<readonly GrantDraft[]> {
  const reads = grants.map((found) =>
    readTable(
      found,
      { name: "a grant", shape: GRANT_SHAPE, required: ["id", "role", "tools", "effect"] },
      report,
    ),
  );
  const conditional = reads.some((read) => read.fields.when !== undefined);
  const conditions = conditional ? await loadConditions() : undefined;
  checkIdsUnique(reads, report);
  return reads.map((read) => {
    checkId(read, report);
    checkBounds(read, report);
    checkQuestions(read, report);
    checkRole(read, around, report);
    checkTools(read, around, report);
    const when = read.fields.when && conditions && compileWhen(read.fields.when, conditions, report);
    return { read, policy: grantOf(read, when) };
  });
}

function grantOf(read: GrantRead, when: Condition | undefined): Grant {
  const { fields } = read;
  const effect = fields.effect?.value ?? "deny";
  const taintClass = fields.taint_max?.value;
  const bounded = effect !== "deny" && taintClass !== undefined && fields.taint_untrusted !== undefined;
  return {
    id: fields.id?.value ?? "",
    role: fields.role?.value ?? "",
    tools: (fields.tools?.value ?? []).map((pattern) => pattern.value),
    sessions: (fields.sessions?.value ?? []).map((pattern) => pattern.value),
    effect,
    when,
    taintMax: bounded ? { class: taintClass, untrusted: fields.taint_untrusted.value } : undefined,
    aboveTaint: fields.above_taint?.value ?? "deny",
    expiresAtMs: fields.expires?.value,
    ...questionsOf(read),
    remembers: undefined,
    equal: undefined,
    reason: fields.reason?.value,
  };
}

function compileWhen(
  when: Located<string>,
  conditions: ConditionCompiler,
  report: Report,
): Condition | undefined {
  const compiled = conditions.compile(when.value);
  if (compiled.ok) return compiled.value;
  return void report(when.at, `this condition does not compile: ${printable(compiled.fault)}`);
}

function checkIdsUnique(reads: readonly GrantRead[], report: Report): void {
  const lines = new Map<string, number>();
  for (const { fields } of reads) {
    if (fields.id === undefined) continue;
    const line = lines.get(fields.id.value);
    if (line === undefined) lines.set(fields.id.value, fields.id.at.line);
    else report(fields.id.at, `line ${line} has a grant ${quote(fields.id.value)} already; ids are unique`);
  }
}

/** Ids of grants that the broker makes itself: of a remembered approval, and of one that was added. */
const RESERVED_IDS = ["remembered.", "runtime."];

function checkId({ fields: { id } }: GrantRead, report: Report): void {
  const reserved = RESERVED_IDS.find((prefix) => id?.value.startsWith(prefix));
  if (id === undefined || reserved === undefined) return;
  const why = `ids that begin with ${quote(reserved)} are those of grants that are made at run time`;
  report(id.at, `${why}; give ${quote(id.value)} another`);
}

const ONLY_WITH_BOUNDS = ["taint_max", "taint_untrusted", "above_taint", "expires"] as const;

/** Up to which taint an allow or ask holds is always written down; a deny holds always. */
function checkBounds(read: GrantRead, report: Report): void {
  const effect = read.fields.effect?.value;
  if (effect === "deny") {
    for (const key of ONLY_WITH_BOUNDS) {
      const at = read.keys.get(key);
      if (at !== undefined) report(at, `a deny holds at any taint and for good; remove ${key}`);
    }
  } else if (effect !== undefined) {
    const words = { taint_max: `"public" (up to "restricted")`, taint_untrusted: "false (or true)" };
    for (const [key, example] of Object.entries(words)) {
      if (read.keys.has(key)) continue;
      report(read.at, `an ${effect} must say up to which taint it holds; add ${key} = ${example}`);
    }
  }
}

function checkRole(read: GrantRead, { roles }: Surroundings, report: Report): void {
  const { role, sessions } = read.fields;
  if (role === undefined) return;
  const draft = roles.get(role.value);
  if (draft === undefined) {
    report(role.at, `no role ${quote(role.value)}; ${suggestion(role.value, roles.keys(), "roles")}`);
  } else if (sessions !== undefined && draft.policy.sessions === "any") {
    report(
      read.keys.get("sessions") ?? sessions.at,
      `role ${role.value} names its own sessions, so a grant cannot tell them apart; ` +
        'remove this, or give the role sessions = "opened"',
    );
  }
}

function checkTools(read: GrantRead, around: Surroundings, report: Report): void {
  const { effect } = read.fields;
  const conditionalAllow = effect?.value === "allow" && read.keys.has("when");
  for (const pattern of read.fields.tools?.value ?? []) {
    if (!pattern.value.endsWith("*")) checkExists(pattern, around, report);
    if (conditionalAllow) checkClosed(pattern, around, report);
  }
}

/** Of a name without `*`: the broker's own, configured, or one that a role may announce. */
export function checkExists({ value, at }: Located<string>, around: Surroundings, report: Report): void {
  if (value.startsWith(BUILTIN_PREFIX)) {
    if (BUILTIN_TOOLS.includes(value)) return;
    report(at, `the broker has no tool ${quote(value)}; ${suggestion(value, BUILTIN_TOOLS, "ones")}`);
  } else if (!around.tools.has(value) && !mayBeAnnounced(value, around)) {
    const known = [...around.tools.keys(), ...BUILTIN_TOOLS];
    report(at, `no such tool ${quote(value)}; ${suggestion(value, known, "tools")}`);
  }
}

/** Whether some role's `provides` covers a tool of this name. */
export function mayBeAnnounced(tool: string, { roles }: Pick<Surroundings, "roles">): boolean {
  for (const { policy } of roles.values()) {
    if (policy.provides.some((prefix) => tool.startsWith(prefix))) return true;
  }
  return false;
}

/** Whether a tool that some role may announce could match. */
export function couldBeAnnounced(pattern: Pattern, around: Pick<Surroundings, "roles">): boolean {
  if (pattern.startsWith(BUILTIN_PREFIX)) return false;
  if (!pattern.endsWith("*")) return mayBeAnnounced(pattern, around);
  const base = pattern.slice(0, -1);
  return [...around.roles.values()].some(({ policy }) =>
    policy.provides.some((prefix) => patternMatches(pattern, prefix) || base.startsWith(prefix)),
  );
}

/** Otherwise an argument that the condition never looks at could carry the harm. */
function checkClosed({ value, at }: Located<string>, { tools }: Surroundings, report: Report): void {
  for (const [name, { policy, schemaRefused }] of tools) {
    if (!toolPatternMatches(value, name) || schemaRefused || policy.schema?.closed === true) continue;
    const lacks = policy.schema === undefined ? "no schema" : "a schema that lets unknown arguments through";
    report(
      at,
      `an allow with a condition needs a closed schema, and the tool ${quote(name)} has ${lacks}; ` +
        "give it one with additionalProperties = false",
    );
  }
}
