// How sessions look: many as a table, one with what raised its taint.

import { moment } from "../base/time_text.ts";
import {
  callText,
  labelsText,
  type SessionLine,
  type Tainted,
  type WholeSession,
  type WholeStore,
} from "../client/answers.ts";
import { labelledLines, textTable } from "./text_table.ts";

export function sessionTable(value: unknown, nowMs: number): string {
  const { sessions } = value as { readonly sessions: readonly SessionLine[] };
  if (sessions.length === 0) return "no such sessions\n";
  const when = (ms: number | null | undefined) => (ms === null || ms === undefined ? "-" : moment(ms, nowMs));
  const rows = sessions.map((one) => [
    one.role,
    one.session,
    one.state,
    labelsText(one.taint),
    String(one.running),
    String(one.waiting),
    one.opened_by ?? "-",
    when(one.last_used_at_ms),
    when(one.expires_at_ms),
  ]);
  return textTable(
    ["ROLE", "SESSION", "STATE", "TAINT", "RUNNING", "WAITING", "OPENED BY", "LAST USED", "EXPIRES"],
    rows,
  );
}

/** `value` is the content of `callgate.sessions.show`: of a session, or of a store. */
export function wholeSession(value: unknown, nowMs: number): string {
  const one = value as WholeSession | WholeStore;
  return "store" in one ? wholeStore(one) : sessionLines(one, nowMs);
}

function taintText({ taint, version }: Tainted): string {
  return `${labelsText(taint)} (version ${version})`;
}

function raisedText({ raised_by: by }: Tainted): string | undefined {
  return by === null ? undefined : callText(by);
}

function sessionLines(one: WholeSession, nowMs: number): string {
  const paused = one.questions_paused_until_ms ?? null;
  const watermark = one.watermark ?? null;
  const role = one.taint_scope === "session" ? one.role_taint : undefined;
  return labelledLines([
    ["session", `${one.session} of role ${one.role}`],
    ["state", one.state],
    ["taint", `${taintText(one)}${one.taint_scope === "role" ? ", shared by all sessions of the role" : ""}`],
    ["raised by", raisedText(one) ?? "nothing that is known"],
    [
      "role's taint",
      role === undefined ? undefined : `${taintText(role)}, below which the session's never is`,
    ],
    ["opened by", one.opened_by ?? undefined],
    ["expires", one.expires_at_ms === null ? undefined : moment(one.expires_at_ms, nowMs)],
    ["request", one.request ?? undefined],
    ["oldest calls", watermark === null ? undefined : `ids up to ${watermark} are never run again`],
    [
      "questions",
      paused === null ? undefined : `paused until ${moment(paused, nowMs)}: too many were refused`,
    ],
  ]);
}

function wholeStore(one: WholeStore): string {
  const lines = labelledLines([
    ["store", one.item === null ? one.store : `${one.store}, item ${one.item}`],
    ["taint", taintText(one)],
    ["raised by", raisedText(one) ?? "nothing that is known"],
    ["whole store", one.item === null ? undefined : labelsText(one.whole_taint)],
  ]);
  const items = one.items ?? [];
  if (items.length === 0) return lines;
  const rows = items.map(({ item, taint, version }) => [labelsText(taint), String(version), item]);
  const more = one.items_total > items.length ? `and ${one.items_total - items.length} more items\n` : "";
  return `${lines}\n${textTable(["TAINT", "VERSION", "ITEM"], rows)}${more}`;
}

export function openedText(value: unknown, nowMs: number): string {
  const one = value as { readonly role: string; readonly session: string; readonly expires_at_ms: number };
  return labelledLines([
    ["opened", `session ${one.session} of role ${one.role}`],
    ["expires", moment(one.expires_at_ms, nowMs)],
  ]);
}

export function closedText(value: unknown): string {
  const one = value as { readonly role: string; readonly session: string };
  return labelledLines([["closed", `session ${one.session} of role ${one.role}; its id is not used again`]]);
}

export function endorsedText(value: unknown): string {
  const { scope, taint, version } = value as Tainted & { readonly scope?: string };
  const whose = scope === undefined ? "the taint" : `the ${scope}'s taint`;
  return labelledLines([["endorsed", `${whose} is now ${labelsText(taint)} (version ${version})`]]);
}
