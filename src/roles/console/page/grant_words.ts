// A grant in words: what it lets through and until when, as one sentence that a person can check against what
// they meant. Pure. Names within are as they came: whoever shows the sentence makes them visible.

import { span } from "../../../base/time_text.ts";
import type { GrantLine } from "../../../client/answers.ts";

/** What a grant is about, whether it is there already or only being written. */
export interface GrantTerms {
  readonly role: string;
  readonly effect: string;
  readonly tools: readonly string[];
  /** Empty or `*`: all. */
  readonly sessions: readonly string[];
  readonly when: string | undefined;
  readonly taintMax: string | undefined;
  readonly taintUntrusted: boolean;
  readonly aboveTaint: string | undefined;
  readonly lastsMs: number | undefined;
  readonly maxCalls: number | undefined;
  readonly perMs: number | undefined;
}

export function termsOf(grant: GrantLine, nowMs: number): GrantTerms {
  const ends = grant.expires_at_ms;
  return {
    role: grant.role,
    effect: grant.effect,
    tools: grant.tools,
    sessions: grant.sessions,
    when: grant.when ?? undefined,
    taintMax: grant.taint_max ?? undefined,
    taintUntrusted: grant.taint_untrusted === true,
    aboveTaint: grant.above_taint ?? undefined,
    lastsMs: ends === null ? undefined : Math.max(0, ends - nowMs),
    maxCalls: grant.max_calls?.calls,
    perMs: grant.max_calls?.per_ms ?? undefined,
  };
}

export function grantSentence(terms: GrantTerms): string {
  const { role, tools, sessions, when, effect } = terms;
  const which = tools.length === 0 ? "…" : tools.map(toolWords).join(", ");
  const where = isAll(sessions) ? "in any session" : `in session ${sessions.join(", ")}`;
  const condition = when === undefined ? "" : ` where ${when}`;
  const head = `${VERBS[effect] ?? effect} ${role === "" ? "…" : role} to call ${which} ${where}${condition}`;
  if (effect === "deny") return `${head}, at any taint, whatever other grants say, until it is revoked.`;
  return `${head}, ${taintWords(terms)}${usesWords(terms)}${endWords(terms)}.`;
}

const VERBS: Readonly<Record<string, string>> = {
  allow: "Allows",
  ask: "Asks a person each time before it lets",
  deny: "Never allows",
};

function toolWords(pattern: string): string {
  if (pattern === "*") return "every tool";
  return pattern.endsWith("*") ? `every tool that begins with ${pattern.slice(0, -1)}` : pattern;
}

function isAll(sessions: readonly string[]): boolean {
  return sessions.length === 0 || sessions.includes("*");
}

function taintWords({ taintMax, taintUntrusted, aboveTaint, effect }: GrantTerms): string {
  const upTo = `as long as its taint is at most ${taintMax ?? "…"}`;
  const trust = taintUntrusted
    ? "also after it has read something untrusted"
    : "and nothing untrusted was read";
  const above =
    aboveTaint !== "ask"
      ? ""
      : effect === "ask"
        ? " (above that a person is asked too)"
        : " (above that a person is asked)";
  return `${upTo}, ${trust}${above}`;
}

function usesWords({ maxCalls, perMs }: GrantTerms): string {
  if (maxCalls === undefined) return "";
  const calls = `, for ${maxCalls} ${maxCalls === 1 ? "call" : "calls"}`;
  return perMs === undefined ? `${calls} in all` : `${calls} in every ${span(perMs)}`;
}

function endWords({ lastsMs }: GrantTerms): string {
  if (lastsMs === undefined) return "";
  return lastsMs === 0 ? "; it has ended" : `; it ends in ${span(lastsMs)}`;
}

/** Where a grant comes from. */
export type Origin = "config" | "added" | "remembered";

export function originOf(grant: GrantLine): Origin {
  if (grant.runtime !== true) return "config";
  return (grant.remembers ?? null) === null ? "added" : "remembered";
}

/** What a remembered answer stands in for; undefined for every other grant. */
export function rememberedWords(grant: GrantLine): string | undefined {
  const asked = grant.remembers ?? null;
  if (asked === null) return undefined;
  const which =
    grant.exact_arguments === true ? "calls with exactly the arguments that were approved" : "every call";
  const where = isAll(grant.sessions) ? "" : ` in session ${grant.sessions.join(", ")}`;
  return `It remembers an approval, and stands in for the question of grant ${asked} only: for ${which} of ${grant.tools.join(", ")}${where}. Where that grant does not ask, it allows nothing.`;
}

/** The field of the form that a refusal of `callgate.grants.add` is about, as far as its sentence tells. */
export function fieldOf(refusal: string): string | undefined {
  const hinted = HINTS.find(([words]) => words.test(refusal))?.[1];
  if (hinted !== undefined) return hinted;
  const named = /`([a-z_]+)`/.exec(refusal)?.[1];
  return FIELDS.find((field) => field === named);
}

const FIELDS: readonly string[] = [
  "id",
  "role",
  "tools",
  "sessions",
  "effect",
  "when",
  "taint_max",
  "taint_untrusted",
  "above_taint",
  "expires_in_seconds",
  "max_calls",
  "max_calls_per_seconds",
  "reason",
];

const HINTS: readonly (readonly [RegExp, string])[] = [
  [/^The condition|An allow with a condition/, "when"],
  [/to a role of that name|no role of that name|for their own role/, "role"],
  [/these tools to that role|There is no tool|broker's own tools/, "tools"],
  [/that effect for/, "effect"],
  [/up to that taint/, "taint_max"],
  [/asks above its taint/, "above_taint"],
  [/lasts so long|must end some time/, "expires_in_seconds"],
  [/names its own sessions/, "sessions"],
  [/There is a grant `/, "id"],
];
