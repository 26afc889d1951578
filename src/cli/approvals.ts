// `callgate approvals show|approve|refuse`: one question, named by the beginning of its id. Nothing is
// approved but what has been shown: its digest goes with the answer, and the broker holds it to that.

import { visibleLine } from "../base/display.ts";
import { FOLDED, shownJson } from "../base/json_text.ts";
import { localTime, moment, span } from "../base/time_text.ts";
import type { Question, Questions, WholeQuestion } from "../client/answers.ts";
import type { Caller } from "../client/caller.ts";
import { wholeQuestion } from "./approval_views.ts";
import { UsageFault, withCaller } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import { askBroker, show } from "./operate.ts";
import type { Look } from "./paint.ts";
import { type Dialogue, EXIT, type Terminal } from "./terminal.ts";

const PREFIX_CHARS_MIN = 6;
/** Pages of questions that are looked through for an id. */
const PAGES_MAX = 100;

export async function showApproval(terminal: Dialogue, [given]: Words, flags: Flags): Promise<number> {
  return withCaller(terminal, flags, async (caller) => {
    const found = await look(terminal, caller, flags, given);
    if (typeof found === "number") return found;
    show(terminal, flags, found, wholeView(flags), terminal.nowMs());
    return EXIT.ok;
  });
}

export async function approve(terminal: Dialogue, [given]: Words, flags: Flags): Promise<number> {
  const remember = rememberOf(flags);
  const digest = textFlag(flags, "digest");
  if (digest === undefined && flags["yes"] !== true && !terminal.canAsk) {
    throw new UsageFault(
      "nobody can be asked here (no terminal): give --digest DIGEST of what was shown, or --yes for what is shown now",
    );
  }
  return withCaller(terminal, flags, async (caller) => {
    if (digest !== undefined) {
      const id = await idOf(terminal, caller, flags, given);
      if (typeof id === "number") return id;
      return settle(terminal, caller, flags, "approve", { approval: id, digest, remember });
    }
    const found = await look(terminal, caller, flags, given);
    if (typeof found === "number") return found;
    const question = found.value;
    show(terminal, flags, found, wholeView(flags), terminal.nowMs());
    const refused = cannotApprove(question, remember);
    if (refused !== undefined) {
      terminal.err(`callgate: ${refused}\n`);
      return EXIT.failed;
    }
    if (
      flags["yes"] !== true &&
      !(await confirmed(terminal, approvalPrompt(question, remember, flags["full"] === true)))
    ) {
      terminal.err("nothing was decided: the question still waits\n");
      return EXIT.failed;
    }
    const args = { approval: question.approval, digest: question.digest, remember };
    return settle(terminal, caller, flags, "approve", args);
  });
}

/** Needs no confirmation: it runs nothing. */
export async function refuse(terminal: Dialogue, [given]: Words, flags: Flags): Promise<number> {
  return withCaller(terminal, flags, async (caller) => {
    const id = await idOf(terminal, caller, flags, given);
    if (typeof id === "number") return id;
    const args = { approval: id, digest: flags["digest"], reason: flags["reason"] };
    return settle(terminal, caller, flags, "refuse", args);
  });
}

/** Only the whole word counts. */
export async function confirmed(terminal: Dialogue, question: string): Promise<boolean> {
  const line = await terminal.ask(question);
  if (line === undefined) terminal.err("\n");
  return line?.trim().toLowerCase() === "yes";
}

interface Remember {
  readonly what: string;
  readonly seconds: number;
  readonly calls?: number;
}

function rememberOf(flags: Flags): Remember | undefined {
  const what = textFlag(flags, "remember");
  const seconds = flags["for"];
  const calls = flags["times"];
  if (what === undefined) {
    if (seconds !== undefined || calls !== undefined)
      throw new UsageFault("--for and --times go with --remember arguments or --remember tool");
    return undefined;
  }
  if (typeof seconds !== "number") throw new UsageFault("say how long it is remembered: --for 1h");
  return { what, seconds, ...(typeof calls === "number" ? { calls } : {}) };
}

function textFlag(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === "string" ? value : undefined;
}

/** What the broker would say too, before anybody is asked to type. */
function cannotApprove(question: WholeQuestion, remember: Remember | undefined): string | undefined {
  if (question.state !== "pending") return "this question no longer waits; nothing was decided now";
  if (remember === undefined) return undefined;
  const why = question.remember.why ?? undefined;
  if (!question.remember.allowed)
    return `this can't be remembered; approve it without --remember${why === undefined ? "" : ` (${visibleLine(why, 1000)})`}`;
  if (question.remember.number_needed && remember.calls === undefined)
    return "say how many calls it may cover: --times N";
  return undefined;
}

function approvalPrompt(question: WholeQuestion, remember: Remember | undefined, full: boolean): string {
  const hidden = !full && shownJson(question.arguments, FOLDED).folded;
  const what =
    remember === undefined
      ? ""
      : `Remembers it too: ${covers(question, remember)}${remember.calls === undefined ? "" : `, ${remember.calls} times`}, for ${span(remember.seconds * 1000)}.\n`;
  const part = hidden ? "Part of the arguments is hidden above; --full shows all.\n" : "";
  return `\n${part}${what}Approve this call? It runs as stored. Type yes to approve; anything else decides nothing: `;
}

function covers(question: WholeQuestion, { what }: Remember): string {
  const { arguments: exact, tool } = question.remember;
  return visibleLine((what === "tool" ? tool : exact).covers, 1000);
}

function wholeView(flags: Flags) {
  return (value: unknown, nowMs: number, look: Look) =>
    wholeQuestion(value as WholeQuestion, nowMs, flags["full"] === true, look);
}

async function settle(
  terminal: Dialogue,
  caller: Caller,
  flags: Flags,
  verb: "approve" | "refuse",
  args: Readonly<Record<string, unknown>>,
): Promise<number> {
  const answer = await askBroker(caller, flags, `callgate.approvals.${verb}`, args);
  if ("fault" in answer) return answer.fault(terminal);
  show(terminal, flags, answer, verb === "approve" ? approvedText : refusedText, terminal.nowMs());
  return EXIT.ok;
}

interface Approved {
  readonly role: string;
  readonly session: string;
  readonly call: string;
  readonly remembered: string | null;
}

function approvedText(value: unknown): string {
  const { role, session, call, remembered } = value as Approved;
  const grant = remembered === null ? undefined : visibleLine(remembered);
  const kept =
    grant === undefined
      ? ""
      : `remembered as grant ${grant} (callgate grants revoke ${grant} takes it back)\n`;
  return `approved: ${visibleLine(`role ${role}, session ${session}, call ${call}`)} is released\n${kept}`;
}

function refusedText(value: unknown, nowMs: number): string {
  const { until_ms: untilMs } = value as { readonly until_ms: number | null };
  const equal =
    untilMs === null
      ? ""
      : `; an equal call of the role is refused without asking until ${moment(untilMs, nowMs)}`;
  return `refused${equal}\n`;
}

/** The one question that the text begins; its content, or the exit status after saying why there is none. */
async function look(
  terminal: Dialogue,
  caller: Caller,
  flags: Flags,
  given: string | undefined,
): Promise<number | { readonly text: string; readonly value: WholeQuestion }> {
  const id = await idOf(terminal, caller, flags, given);
  if (typeof id === "number") return id;
  const answer = await askBroker(caller, flags, "callgate.approvals.show", { approval: id });
  if ("fault" in answer) return answer.fault(terminal);
  return { text: answer.text, value: answer.value as WholeQuestion };
}

/** The whole id of an abbreviated one, or the exit status after saying why there is none. */
async function idOf(
  terminal: Terminal,
  caller: Caller,
  flags: Flags,
  given: string | undefined,
): Promise<number | string> {
  const prefix = given ?? "";
  if (prefix.length < PREFIX_CHARS_MIN)
    throw new UsageFault(`an id may be cut short, but not below ${PREFIX_CHARS_MIN} characters`);
  const fits = await beginningSo(caller, flags, prefix);
  const [only] = fits;
  // Whole; or older than what is listed, or none, or not to be listed: the broker says so.
  if (only === undefined || fits.some(({ approval }) => approval === prefix)) return prefix;
  if (fits.length === 1) return only.approval;
  terminal.err(`callgate: ${fits.length} questions begin so; give more of the id:\n`);
  terminal.err(fits.slice(0, 10).map(candidate).join(""));
  return EXIT.failed;
}

/** The questions whose id begins so, page by page; whoever gives an id whole need not wait for all. */
async function beginningSo(caller: Caller, flags: Flags, prefix: string): Promise<readonly Question[]> {
  const found = new Map<string, Question>();
  for (let after: string | undefined, pages = 0; pages < PAGES_MAX; pages += 1) {
    const answer = await askBroker(caller, flags, "callgate.approvals.list", { state: "all", after });
    if ("fault" in answer) break;
    const { approvals, next } = answer.value as Questions;
    for (const one of approvals) if (one.approval.startsWith(prefix)) found.set(one.approval, one);
    if (found.has(prefix) || next === null || next === undefined) break;
    after = next;
  }
  return [...found.values()];
}

function candidate({ approval, role, tool, state, asked_at_ms }: Question): string {
  return `  ${visibleLine(`${approval}  ${role} ${tool}, ${state}, asked ${localTime(asked_at_ms)}`)}\n`;
}
