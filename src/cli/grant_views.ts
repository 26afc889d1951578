// How grants look: a few lines each, those of the config and those that were added.

import { visibleLine } from "../base/display.ts";
import { moment, span } from "../base/time_text.ts";
import type { GrantLine } from "../client/answers.ts";
import { actorText } from "./approval_views.ts";
import { type Look, PLAIN, toneOf } from "./paint.ts";

export function grantList(value: unknown, nowMs: number, look: Look = PLAIN): string {
  const { grants } = value as { readonly grants: readonly GrantLine[] };
  if (grants.length === 0) return "no grants: everything is denied\n";
  const width = Math.max(...grants.map(({ id }) => id.length));
  return grants.map((grant) => grantLines(grant, width, nowMs, look)).join("");
}

function grantLines(grant: GrantLine, width: number, nowMs: number, { paint }: Look): string {
  const id = visibleLine(grant.id).padEnd(width);
  const effect = paint(grant.expired ? "quiet" : toneOf(grant.effect), visibleLine(grant.effect).padEnd(5));
  const what = visibleLine(`${grant.role}: ${grant.tools.join(", ")}`, 1000);
  const lines = [bounds(grant), uses(grant), ends(grant, nowMs), origin(grant, nowMs)];
  const told = [
    lines.filter((line) => line !== undefined).join("; ") || undefined,
    grant.when === null ? undefined : `when ${grant.when}`,
    grant.reason === null ? undefined : `reason: ${grant.reason}`,
  ];
  const below = told.flatMap((line) => (line === undefined ? [] : [`    ${visibleLine(line, 2000)}\n`]));
  return `${id}  ${effect}  ${what}\n${below.join("")}`;
}

function bounds({ sessions, effect, taint_max, taint_untrusted, above_taint }: GrantLine): string {
  const where = sessions.join(",") === "*" ? "all sessions" : `sessions ${sessions.join(", ")}`;
  if (effect === "deny" || taint_max === null) return where;
  const above = above_taint === "ask" ? ", above that a person is asked" : "";
  return `${where}; taint up to ${taint_max}, ${taint_untrusted === true ? "untrusted" : "trusted"}${above}`;
}

function uses({ max_calls: limit }: GrantLine): string | undefined {
  if (limit === null || limit === undefined) return undefined;
  return `used ${limit.used} of ${limit.calls}${limit.per_ms === null ? "" : ` per ${span(limit.per_ms)}`}`;
}

function ends({ expires_at_ms, expired }: GrantLine, nowMs: number): string | undefined {
  if (expires_at_ms === null) return undefined;
  return `${expired ? "EXPIRED" : "expires"} ${moment(expires_at_ms, nowMs)}`;
}

function origin(grant: GrantLine, nowMs: number): string | undefined {
  if (grant.runtime !== true) return undefined;
  const at =
    grant.added_at_ms === null || grant.added_at_ms === undefined
      ? ""
      : `, ${moment(grant.added_at_ms, nowMs)}`;
  const by = grant.by === undefined ? "-" : actorText(grant.by);
  const what = grant.remembers ?? null;
  const which = grant.exact_arguments === true ? " about those very arguments" : "";
  return what === null
    ? `added by ${by}${at}`
    : `remembers an answer to ${what}${which}, given by ${by}${at}`;
}

export function addedText(value: unknown, nowMs: number): string {
  const { grant, expires_at_ms: ends } = value as {
    readonly grant: string;
    readonly expires_at_ms: number | null;
  };
  const until = ends === null ? "until it is revoked" : `until ${moment(ends, nowMs)}`;
  return `added grant ${visibleLine(grant)}, ${until}\n`;
}

export function revokedText(value: unknown): string {
  return `revoked grant ${visibleLine((value as { readonly grant: string }).grant)}\n`;
}
