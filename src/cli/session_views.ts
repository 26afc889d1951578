// How sessions look: many as a table, one with what raised its taint.

import { moment, span } from "../base/time_text.ts";
import {
  callText,
  type Labelled,
  labelsText,
  type SessionLine,
  type Tainted,
  type WholeSession,
  type WholeStore,
} from "../client/answers.ts";
import { type Look, PLAIN } from "./paint.ts";
import { type Cell, labelledLines, textTable } from "./text_table.ts";

export function sessionTable(value: unknown, nowMs: number, look: Look = PLAIN): string {
  const { sessions } = value as { readonly sessions: readonly SessionLine[] };
  if (sessions.length === 0) return "no such sessions\n";
  const told = look.columns === undefined ? moment : away;
  const when = (ms: number | null) => (ms === null ? "-" : told(ms, nowMs));
  const rows = sessions.map((one) => [
    one.role,
    one.session,
    one.state,
    labels(one.taint),
    String(one.running),
    String(one.waiting),
    one.opened_by ?? "-",
    when(one.last_used_at_ms),
    when(one.expires_at_ms),
  ]);
  return textTable(SESSION_COLUMNS, rows, look);
}

const SESSION_COLUMNS = [
  "ROLE",
  "SESSION",
  { name: "STATE", whole: true },
  { name: "TAINT", whole: true },
  { name: "RUNNING", whole: true, yields: 2 },
  { name: "WAITING", whole: true, yields: 1 },
  { name: "OPENED BY", yields: 4 },
  { name: "LAST USED", whole: true, yields: 3 },
  { name: "EXPIRES", whole: true, yields: 5 },
] as const;

/** How far it is away, where there is no room for the moment. */
function away(ms: number, nowMs: number): string {
  return ms <= nowMs ? `${span(nowMs - ms)} ago` : `in ${span(ms - nowMs)}`;
}

function labels(of: Labelled): Cell {
  return { text: labelsText(of), tone: of.untrusted ? "untrusted" : undefined };
}

/** `value` is the content of `callgate.sessions.show`: of a session, or of a store. */
export function wholeSession(value: unknown, nowMs: number, look: Look = PLAIN): string {
  const one = value as WholeSession | WholeStore;
  return "store" in one ? wholeStore(one, look) : sessionLines(one, nowMs, look);
}

/** `more`: what else is to be said of it. */
function taintCell({ taint, version }: Tainted, more = ""): Cell {
  const text = `${labelsText(taint)} (version ${version})${more}`;
  return { text, tone: taint.untrusted ? "untrusted" : undefined };
}

function raisedText({ raised_by: by }: Tainted): string | undefined {
  return by === null ? undefined : callText(by);
}

function sessionLines(one: WholeSession, nowMs: number, look: Look): string {
  const paused = one.questions_paused_until_ms ?? null;
  const watermark = one.watermark ?? null;
  const role = one.taint_scope === "session" ? one.role_taint : undefined;
  return labelledLines(
    [
      ["session", `${one.session} of role ${one.role}`],
      ["state", one.state],
      ["taint", taintCell(one, one.taint_scope === "role" ? ", shared by all sessions of the role" : "")],
      ["raised by", raisedText(one) ?? "nothing that is known"],
      [
        "role's taint",
        role === undefined ? undefined : taintCell(role, ", below which the session's never is"),
      ],
      ["opened by", one.opened_by ?? undefined],
      ["expires", one.expires_at_ms === null ? undefined : moment(one.expires_at_ms, nowMs)],
      ["request", one.request ?? undefined],
      ["oldest calls", watermark === null ? undefined : `ids up to ${watermark} are never run again`],
      [
        "questions",
        paused === null ? undefined : `paused until ${moment(paused, nowMs)}: too many were refused`,
      ],
    ],
    look,
  );
}

function wholeStore(one: WholeStore, look: Look): string {
  const lines = labelledLines(
    [
      ["store", one.item === null ? one.store : `${one.store}, item ${one.item}`],
      ["taint", taintCell(one)],
      ["raised by", raisedText(one) ?? "nothing that is known"],
      ["whole store", one.item === null ? undefined : labels(one.whole_taint)],
    ],
    look,
  );
  const items = one.items ?? [];
  if (items.length === 0) return lines;
  const rows = items.map(({ item, taint, version }) => [labels(taint), String(version), item]);
  const more = one.items_total > items.length ? `and ${one.items_total - items.length} more items\n` : "";
  return `${lines}\n${textTable(["TAINT", "VERSION", "ITEM"], rows, look)}${more}`;
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
