// How calls look: many as a table, one with its arguments, decision and messages.

import { FOLDED, type Folding, quoted, shownJson, UNFOLDED } from "../base/json_text.ts";
import { moment, span } from "../base/time_text.ts";
import { type CallLine, callText, labelsText, type WholeCall, type Why } from "../client/answers.ts";
import { fields } from "./operate.ts";
import { labelledLines, textTable } from "./text_table.ts";
import { userText } from "./users.ts";

export function callTable(value: unknown, nowMs: number): string {
  const { calls, all_seen: whole } = value as {
    readonly calls: readonly CallLine[];
    readonly all_seen?: boolean;
  };
  const note = whole === false ? "older calls were not looked at: narrow it with --role or --of\n" : "";
  if (calls.length === 0) return `no such calls\n${note}`;
  const rows = calls.map((one) => [
    one.role,
    one.session,
    one.call,
    one.tool,
    one.state,
    outcome(one),
    took(one, nowMs),
    moment(one.asked_at_ms, nowMs),
  ]);
  const table = textTable(["ROLE", "SESSION", "CALL", "TOOL", "STATE", "OUTCOME", "TOOK", "ASKED"], rows);
  const unknown = calls.some(({ state }) => state === "unknown");
  return `${table}${note}${unknown ? UNKNOWN_HINT : ""}`;
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

export function whyText(value: unknown): string {
  const why = value as Why;
  return labelledLines([
    ["call", callText({ session: why.session, call: why.call })],
    ["denied", why.denied ?? "-"],
    ["decided by", `${why.grant === null ? "no grant" : `grant ${why.grant}`} (row ${why.row})`],
    ["reason", why.reason === null ? undefined : quoted(why.reason)],
    ["taint then", labelsText(why.taint)],
  ]);
}
