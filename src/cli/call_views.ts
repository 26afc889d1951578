// How calls look: many as a table, one with its arguments, decision and messages.

import { counted, FOLDED, type Folding, quoted, shownJson, UNFOLDED } from "../base/json_text.ts";
import { moment, span } from "../base/time_text.ts";
import {
  type CallLine,
  type CallsPage,
  callText,
  labelsText,
  type WholeCall,
  type Why,
} from "../client/answers.ts";
import { fields } from "./operate.ts";
import { type Look, PLAIN } from "./paint.ts";
import { type Column, labelledLines, stated, textTable } from "./text_table.ts";
import { userText } from "./users.ts";

const CALL_COLUMNS: readonly Column[] = [
  { name: "ROLE" },
  { name: "SESSION" },
  { name: "CALL", whole: true },
  { name: "TOOL" },
  { name: "OUTCOME" },
  { name: "TOOK", yields: 2 },
  { name: "ASKED", yields: 1 },
];

export function callTable(value: unknown, nowMs: number, look: Look = PLAIN): string {
  const page = value as CallsPage;
  const { calls } = page;
  const more = moreCalls(page);
  if (calls.length === 0) return `no such calls\n${more}`;
  const rows = calls.map((one) => [
    one.role,
    one.session,
    one.call,
    one.tool,
    stated(one.state === "ended" ? outcome(one) : one.state),
    took(one, nowMs),
    asked(one.asked_at_ms, nowMs, look),
  ]);
  const unknown = calls.some(({ state }) => state === "unknown");
  return `${textTable(CALL_COLUMNS, rows, look)}${more}${unknown ? UNKNOWN_HINT : ""}`;
}

/** A terminal has no room for both. */
function asked(ms: number, nowMs: number, { columns }: Look): string {
  return columns === undefined ? moment(ms, nowMs) : `${span(nowMs - ms)} ago`;
}

function moreCalls({ calls, all_seen: whole, next }: CallsPage): string {
  if (next !== null && next !== undefined)
    return `${counted(calls.length, "call")} shown, and there are more: --limit NUMBER or --all\n`;
  return whole === false ? "older calls were not looked at: narrow it with --role or --of\n" : "";
}

const UNKNOWN_HINT =
  "unknown: the broker stopped before it heard how the call ended. Look at what the tool acts on, then:\n  callgate calls settle CALL --role ROLE --of SESSION --as failed --text 'what you found'\n";

function outcome({ status, code }: Pick<CallLine, "status" | "code">): string {
  if (status === null) return "-";
  return code === null ? status : `${status} ${code}`;
}

function took({ asked_at_ms, ended_at_ms }: CallLine, nowMs: number): string {
  const ms = (ended_at_ms ?? nowMs) - asked_at_ms;
  return ms < 1000 ? `${ms} ms` : span(ms);
}

/** `full` shows long arguments and messages whole. */
export function wholeCall(value: unknown, nowMs: number, full: boolean): string {
  const one = value as WholeCall;
  const folding = full ? UNFOLDED : FOLDED;
  const parts = [
    labelledLines([
      ["call", callText(one)],
      ["tool", one.tool],
      ["asked by", userText(one.uid)],
      ["asked", moment(one.asked_at_ms, nowMs)],
      ["ended", one.ended_at_ms === null ? undefined : moment(one.ended_at_ms, nowMs)],
      ["state", one.status === null ? one.state : `${one.state}: ${outcome(one)}`],
      ["labels", labelsText(one.labels)],
    ]),
    block("arguments", one.arguments, folding),
    one.decision === null ? "" : `decision\n${fields(one.decision, "  ")}`,
    ...one.messages.map((text, i) => block(`message ${i + 1}`, text, folding)),
    one.messages_cut === true ? "more messages are kept than are shown here\n" : "",
  ];
  return parts.join("");
}

function block(title: string, json: string, folding: Folding): string {
  const { lines, folded } = shownJson(json, folding);
  const note = folded ? "  (something is hidden: --full shows all of it)\n" : "";
  return `${title}\n${lines.map((line) => `  ${line}\n`).join("")}${note}`;
}

export function settledText(): string {
  return "settled: who asks for this call again hears what you wrote; it was not run again\n";
}

export function cancelledText(value: unknown): string {
  const { cancelled, provider_told: told } = value as {
    readonly cancelled: boolean;
    readonly provider_told?: boolean;
  };
  if (!cancelled) return "nothing to cancel: no such call of yours runs or waits\n";
  return told === true ? "cancelled; the provider was told\n" : "cancelled\n";
}

/** `value` is the content of `callgate.calls.why`. */
export function whyText(value: unknown, nowMs: number, look: Look = PLAIN): string {
  const why = value as Why;
  const { session, call, role } = why;
  const told = (why.counted ?? null) !== null && why.verdict === "unknown" ? [] : decisionRows(why, nowMs);
  const rows: readonly Labelling[] = [
    ["call", callText(role === undefined ? { session, call } : { role, session, call })],
    ...told,
  ];
  return `${labelledLines(rows, look)}${countedText(why, nowMs, look)}`;
}

type Labelling = readonly [name: string, text: string | undefined];

function decisionRows(why: Why, nowMs: number): readonly Labelling[] {
  const asking = why.grants?.length ? `the question of ${why.grants.join(", ")}` : "no grant";
  return [
    ["tool", why.tool ?? undefined],
    ["decided", why.verdict === undefined || why.verdict === "deny" ? undefined : why.verdict],
    ["denied", why.denied ?? (why.verdict === undefined ? "-" : undefined)],
    ["decided by", `${why.grant === null ? asking : `grant ${why.grant}`} (row ${why.row})`],
    ["condition", CONDITION_WORDS[why.condition ?? "none"]],
    ["reason", why.reason === null ? undefined : quoted(why.reason)],
    ["taint then", labelsText(why.taint)],
    ["when", why.at_ms === null || why.at_ms === undefined ? undefined : moment(why.at_ms, nowMs)],
    ["question", why.approval ?? undefined],
  ];
}

const CONDITION_WORDS: Readonly<Record<string, string | undefined>> = {
  match: "held",
  error: "could not be judged, so it did not allow",
};

/** A record that names other calls is no answer about this one, and this says so. */
function countedText({ counted: kinds }: Why, nowMs: number, look: Look): string {
  if (kinds === null || kinds === undefined) return "";
  const head =
    "No record names this call. Equal denials within a minute are counted after the first one, and what is kept of this\n" +
    "session's are these counts; it may be one of them, or may never have been denied:\n";
  const rows = kinds.map(({ tool, denied, grant, row, count, first_call, at_ms }) => [
    tool,
    stated(denied ?? "-", "denied"),
    `${grant === null ? "no grant" : `grant ${grant}`} (row ${row})`,
    `${count} after call ${first_call}`,
    moment(at_ms, nowMs),
  ]);
  return `${head}${textTable(["TOOL", "DENIED", "BY", "COUNTED", "UP TO"], rows, look)}`;
}
