// Reading a grant out of the arguments of `callgate.grants.add`: that it means what its adder wrote. Whether
// the adder may give it is not looked at here (grant_changes.ts).

import { fault, ok, type Result } from "../../base/faults.ts";
import {
  BUILTIN_PREFIX,
  isGrantId,
  isSessionPattern,
  isToolPattern,
  type Pattern,
  toolPatternMatches,
} from "../../base/ids.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import { DATA_CLASSES, type Labels } from "../../base/labels.ts";
import { type Grant, type Policy, QUESTION_DEFAULTS } from "../../policy/policy.ts";
import type { Core } from "../core.ts";
import { flag, text } from "./arguments.ts";

const PATTERNS_MAX = 64;
const REASON_CHARS_MAX = 1024;
const WHEN_CHARS_MAX = 4096;
const CALLS_MAX = 1_000_000_000n;
const SECONDS_MAX = 31_622_400n; // 366 days, as in the config

/** Ids of added grants begin so; no grant of a config does. */
const ID_PREFIX = "runtime.";

/** A grant without what only the broker knows: id (where none is given), condition and time. */
export interface GivenGrant extends Omit<Grant, "id" | "when" | "expiresAtMs"> {
  readonly id: string | undefined;
  readonly when: string | undefined;
  readonly lastsMs: number | undefined;
}

/** The fault is a sentence for people, without its full stop. */
export function readGiven(args: JsonObject): Result<GivenGrant> {
  const given = givenOf(args);
  const wrong = wrongId(given.id) ?? wrongPatterns(args) ?? wrongNumbers(args) ?? wrongTexts(given, args);
  const misplaced = given.effect === "deny" ? boundedDeny(args) : unboundedGrant(args);
  const why = wrong ?? misplaced;
  return why === undefined ? ok(given) : fault(why);
}

function givenOf(args: JsonObject): GivenGrant {
  const id = text(args, "id");
  const effect = text(args, "effect") as Grant["effect"];
  return {
    id: id === undefined || id.startsWith(ID_PREFIX) ? id : `${ID_PREFIX}${id}`,
    role: text(args, "role") ?? "",
    tools: texts(args, "tools"),
    sessions: texts(args, "sessions"),
    effect,
    when: text(args, "when"),
    taintMax: effect === "deny" ? undefined : taintMaxOf(args),
    aboveTaint: text(args, "above_taint") === "ask" ? "ask" : "deny",
    lastsMs: milliseconds(args, "expires_in_seconds"),
    maxCalls: maxCallsOf(args),
    ...QUESTION_DEFAULTS,
    remember: true,
    remembers: undefined,
    equal: undefined,
    reason: text(args, "reason"),
  };
}

function taintMaxOf(args: JsonObject): Labels | undefined {
  const dataClass = DATA_CLASSES.find((one) => one === text(args, "taint_max"));
  const untrusted = flag(args, "taint_untrusted");
  return dataClass === undefined || untrusted === undefined ? undefined : { class: dataClass, untrusted };
}

function maxCallsOf(args: JsonObject): Grant["maxCalls"] {
  const calls = args.get("max_calls");
  if (typeof calls !== "bigint") return undefined;
  return { calls: Number(calls), perMs: milliseconds(args, "max_calls_per_seconds") };
}

function milliseconds(args: JsonObject, name: string): number | undefined {
  const seconds = args.get(name);
  return typeof seconds === "bigint" ? Number(seconds) * 1000 : undefined;
}

function texts(args: JsonObject, name: string): readonly string[] {
  const list = args.get(name);
  return isList(list) ? list.filter((item) => typeof item === "string") : [];
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function wrongId(id: string | undefined): string | undefined {
  if (id === undefined || isGrantId(id)) return undefined;
  return "`id` must be a lower-case letter, then letters, digits, `.`, `_` or `-`, at most 56 characters";
}

function wrongPatterns(args: JsonObject): string | undefined {
  const [tools, sessions] = [texts(args, "tools"), texts(args, "sessions")];
  if (tools.length === 0) return '`tools` must name at least one tool; write ["*"] for all of them';
  if (tools.length > PATTERNS_MAX || sessions.length > PATTERNS_MAX)
    return `\`tools\` and \`sessions\` hold at most ${PATTERNS_MAX} entries each`;
  if (!tools.every(isToolPattern))
    return "`tools` must be tool names, or prefixes that end in `*`, such as `files.*`";
  if (tools.some((pattern) => pattern.startsWith(BUILTIN_PREFIX)))
    return "The broker's own tools are given in the config only; name others";
  if (args.has("sessions") && sessions.length === 0)
    return "`sessions` names no session; leave it out for all of them";
  return sessions.every(isSessionPattern)
    ? undefined
    : "`sessions` must be session ids, or prefixes that end in `*`";
}

const NUMBERS = [
  ["expires_in_seconds", SECONDS_MAX],
  ["max_calls", CALLS_MAX],
  ["max_calls_per_seconds", SECONDS_MAX],
] as const;

function wrongNumbers(args: JsonObject): string | undefined {
  for (const [name, max] of NUMBERS) {
    const value = args.get(name);
    if (value === undefined || (typeof value === "bigint" && value >= 1n && value <= max)) continue;
    return `\`${name}\` must be a whole number from 1 to ${max}`;
  }
  if (args.has("max_calls_per_seconds") && !args.has("max_calls"))
    return "`max_calls_per_seconds` is the period of `max_calls`, which is missing";
  return undefined;
}

function wrongTexts({ reason = "", when }: GivenGrant, args: JsonObject): string | undefined {
  if (reason.trim() === "" || reason.length > REASON_CHARS_MAX)
    return `\`reason\` must say why, in at most ${REASON_CHARS_MAX} characters`;
  if (when !== undefined && when.length > WHEN_CHARS_MAX)
    return `\`when\` must be at most ${WHEN_CHARS_MAX} characters`;
  return args.has("when") && when === "" ? "`when` is empty; leave it out for all arguments" : undefined;
}

const ONLY_WITH_BOUNDS = [
  "taint_max",
  "taint_untrusted",
  "above_taint",
  "expires_in_seconds",
  "max_calls",
] as const;

function boundedDeny(args: JsonObject): string | undefined {
  const odd = ONLY_WITH_BOUNDS.find((name) => args.has(name));
  return odd && `A deny holds for every call, at any taint and until it is revoked; leave out \`${odd}\``;
}

function unboundedGrant(args: JsonObject): string | undefined {
  if (taintMaxOf(args) === undefined)
    return "An allow or ask must say up to which taint it holds; add `taint_max` and `taint_untrusted`";
  return args.has("expires_in_seconds")
    ? undefined
    : "An allow or ask must end some time; add `expires_in_seconds`";
}

/**
 * Whether every tool that a conditional allow reaches refuses arguments that its schema does not know:
 * otherwise one that the condition never looks at could carry the harm. The fault is a sentence.
 */
export function openSchema(core: Core, tools: readonly Pattern[]): string | undefined {
  const { policy } = core.runtime;
  if (tools.some((pattern) => pattern.endsWith("*") && couldBeAnnounced(policy, pattern)))
    return "An allow with a condition can't be given for tools that a provider may yet announce; name each tool in full";
  const known = [...policy.tools.keys(), ...core.definitions.names()];
  const open = known.find((name) => {
    if (!tools.some((pattern) => toolPatternMatches(pattern, name))) return false;
    return core.definitions.resolve(policy, name)?.tool.schema?.closed !== true;
  });
  if (open === undefined) return undefined;
  return `An allow with a condition needs a schema that refuses unknown arguments, and tool \`${open}\` has none`;
}

/** Whether a tool that some role may announce could match the prefix. */
function couldBeAnnounced({ roles }: Policy, pattern: Pattern): boolean {
  const base = pattern.slice(0, -1);
  return [...roles.values()].some(({ provides }) =>
    provides.some((prefix) => prefix.startsWith(base) || base.startsWith(prefix)),
  );
}
