// How `callgate status` reads: what is wrong first and loudly, then what waits for somebody, then load.

import { visibleLine } from "../base/display.ts";
import { counted } from "../base/json_text.ts";
import { span } from "../base/time_text.ts";
import { labelsText, type RoleLine, type Status } from "../client/answers.ts";
import { type Look, PLAIN, type Tone } from "./paint.ts";
import { type Cell, labelledLines, textTable } from "./text_table.ts";

const POLICY_CHARS = 12;

export function statusText(value: unknown, _: number, look: Look = PLAIN): string {
  const status = value as Status;
  const { pending_approvals: waiting, unknown_calls: unknown, audit } = status;
  const condition = status.store?.condition;
  const lines = labelledLines(
    [
      ["as role", status.role],
      ["version", status.version ?? undefined],
      ["up", `${span(status.uptime_ms)}${status.draining ? ", draining" : ""}`],
      [
        "policy",
        toned(
          `${status.policy.slice(0, POLICY_CHARS)}${policyText(status)}`,
          status.policy_stale ? "bad" : undefined,
        ),
      ],
      ["store", condition === undefined ? undefined : toned(condition, condition === "ok" ? "good" : "bad")],
      ["audit", audit === undefined ? undefined : `${audit.seq} records`],
      ["calls", status.running_calls === undefined ? undefined : `${status.running_calls} running`],
      [
        "questions",
        waiting === undefined ? undefined : toned(waits(waiting), waiting > 0 ? "waiting" : undefined),
      ],
      [
        "unknown",
        unknown === undefined ? undefined : toned(unknownText(unknown), unknown > 0 ? "bad" : undefined),
      ],
    ],
    look,
  );
  return `${warnings(status, look)}${lines}${roleTable(status.roles ?? [], look)}`;
}

function toned(text: string, tone: Tone | undefined): Cell {
  return { text, tone };
}

function policyText({ policy_stale, tools, grants }: Status): string {
  const size = tools === undefined ? "" : `, ${counted(tools, "tool")}, ${counted(grants ?? 0, "grant")}`;
  return `${size}${policy_stale ? ", STALE" : ", in force"}`;
}

function waits(count: number): string {
  return count === 0 ? "none wait" : `${count} wait for an answer (callgate approvals list)`;
}

function unknownText(count: number): string {
  if (count === 0) return "no calls with an unknown outcome";
  return `${counted(count, "call")} with an unknown outcome (callgate calls list --state unknown)`;
}

const CONDITIONS: Readonly<Record<string, string>> = {
  failing: "the store can't be written (is the disk full?): calls are answered `unavailable` until it can",
  stalled: "the store has been writing for too long: calls are answered `unavailable` until it is done",
};

function warnings(status: Status, { paint }: Look): string {
  const { store, roles = [] } = status;
  const frozen = roles.filter((role) => role.frozen).map(({ role }) => role);
  const found = [
    store === undefined || store.condition === "ok"
      ? undefined
      : (CONDITIONS[store.condition] ?? store.condition),
    status.policy_stale
      ? `the config was changed and refused, so the policy before it is in force${status.policy_stale_because ? `: ${status.policy_stale_because}` : ""}`
      : undefined,
    status.warning ?? undefined,
    frozen.length === 0 ? undefined : `frozen: ${frozen.join(", ")}`,
  ];
  return found
    .flatMap((text) =>
      text === undefined ? [] : [`${paint("loud", "WARNING:")} ${visibleLine(text, 2000)}\n`],
    )
    .join("");
}

function roleTable(roles: readonly RoleLine[], look: Look): string {
  if (roles.length === 0) return "";
  const rows = roles.map((one) => [
    one.role,
    String(one.connections),
    String(one.asking),
    String(one.serving),
    toned(`${labelsText(one.taint)}${frozenNote(one)}`, roleTone(one)),
  ]);
  return `\n${textTable(["ROLE", "CONNECTIONS", "ASKING", "SERVING", "TAINT"], rows, look)}`;
}

function roleTone({ frozen, frozen_sessions: sessions = 0, taint }: RoleLine): Tone | undefined {
  if (frozen || sessions > 0) return "bad";
  return taint.untrusted ? "untrusted" : undefined;
}

function frozenNote({ frozen, frozen_sessions: sessions = 0 }: RoleLine): string {
  if (frozen) return ", FROZEN";
  return sessions === 0 ? "" : `, ${counted(sessions, "session")} FROZEN`;
}

export function frozenText(value: unknown): string {
  const one = value as {
    readonly role: string;
    readonly session: string | null;
    readonly frozen: boolean;
    readonly stopped: { readonly calls: number; readonly connections: number };
  };
  const what = one.session === null ? `role ${one.role}` : `session ${one.session} of role ${one.role}`;
  if (!one.frozen) return `${visibleLine(what)} may go on\n`;
  const { calls, connections } = one.stopped;
  return `${visibleLine(what)} is frozen: ${counted(calls, "call")} ended, ${counted(connections, "connection")} closed (--thaw lets it go on)\n`;
}

export function reloadedText(value: unknown): string {
  const one = value as {
    readonly reloaded: boolean;
    readonly policy: string;
    readonly refused: string | null;
  };
  const policy = visibleLine(one.policy.slice(0, POLICY_CHARS));
  if (one.reloaded) return `reloaded: policy ${policy} is in force\n`;
  return `NOT reloaded: policy ${policy} stays in force${one.refused === null ? "" : `\n  ${visibleLine(one.refused, 2000)}`}\n`;
}
