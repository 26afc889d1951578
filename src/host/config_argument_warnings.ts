// Names of arguments that look as if they did something: a condition that asks for an argument no tool
// takes, words of a request that no session of the role has, a tool whose destinations nobody has named.
// Only about configs without faults.

import { toolPatternMatches } from "../base/ids.ts";
import { listed, quote } from "./config_faults.ts";
import { couldBeAnnounced, type GrantDraft, type Surroundings } from "./config_grants.ts";
import type { Warn } from "./config_reach.ts";
import { declaredArguments, type ToolDraft } from "./config_tools.ts";

/** `has(args.pth) && …` is false for ever: a deny that is written so protects nothing. */
export function warnOfUnknownArguments({ policy, read }: GrantDraft, around: Surroundings, warn: Warn): void {
  const names = policy.when?.argumentNames;
  const known = names && namesTaken(policy.tools, around);
  if (names === undefined || known === undefined) return;
  const unknown = [...names].filter((name) => !known.has(name)).map(quote);
  if (unknown.length === 0) return;
  warn(
    "unknown_argument",
    read.fields.when?.at ?? read.at,
    `the condition of ${policy.id} looks at ${listed(unknown)}, which none of its tools takes; they take ` +
      listed([...known].map(quote)),
  );
}

/** undefined: a tool that the grant serves, today or once it is announced, may take any. */
function namesTaken(patterns: readonly string[], around: Surroundings): ReadonlySet<string> | undefined {
  const names = new Set<string>();
  for (const pattern of patterns) {
    if (couldBeAnnounced(pattern, around)) return undefined;
    const served = [...around.tools].filter(([name]) => toolPatternMatches(pattern, name));
    // Of the broker's own tools nothing is known here.
    if (served.length === 0) return undefined;
    for (const [, tool] of served) {
      const taken = onlyArguments(tool);
      if (taken === undefined) return undefined;
      for (const name of taken) names.add(name);
    }
  }
  return names;
}

/** The arguments of a tool, where its schema lists all of them in one place. */
function onlyArguments({ policy }: ToolDraft): Iterable<string> | undefined {
  const source = policy.schema?.source;
  if (policy.schema === undefined || !(source instanceof Map)) return undefined;
  if (source.get("additionalProperties") !== false || source.has("patternProperties")) return undefined;
  return declaredArguments(policy.schema).keys();
}

/** A session that the caller names itself was opened with no words at all. */
export function warnOfNoRequest({ policy, read }: GrantDraft, { roles }: Surroundings, warn: Warn): void {
  const { when } = read.fields;
  if (when === undefined || roles.get(policy.role)?.policy.sessions !== "any") return;
  // These letters may also stand in a text within the condition: then this is said once for nothing.
  if (!/\bin_request\s*\(/.test(when.value)) return;
  const outcome = policy.effect === "allow" ? "does not match" : "matches always";
  warn(
    "no_request",
    when.at,
    `role ${policy.role} names its own sessions, which have no request: where the condition of ${policy.id} comes ` +
      `to in_request it cannot be judged, and the grant ${outcome}; give the role sessions = "opened"`,
  );
}

/** Whoever approves such a call sees its destinations first, and none of them may be a withheld text. */
export function warnOfNoDestinations({ policy, read, at }: ToolDraft, warn: Warn): void {
  if (policy.effect !== "send" && policy.effect !== "spend") return;
  if (read.keys.has("destinations") || policy.schema === undefined) return;
  const names = [...declaredArguments(policy.schema).keys()].map(quote);
  if (names.length === 0) return;
  warn(
    "no_destinations",
    read.fields.effect?.at ?? at,
    `${policy.name} has the effect "${policy.effect}" and does not say where to; write destinations with those of ` +
      `${listed(names)} that tell, or destinations = [] if none does`,
  );
}
