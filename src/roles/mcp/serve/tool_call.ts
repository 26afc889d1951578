// One `tools/call` from its request to what it is answered: which call at the broker it is, how long it waits there, and
// what the client hears meanwhile. Invariant: the wait ends in time for the client; the call at the broker does not end
// with it, unless the client says that it wants it no more.

import type { Effects } from "../../../client/effects.ts";
import { CallgateError } from "../../../client/error.ts";
import type { BrokerSide } from "./broker_side.ts";
import type { CallBook } from "./call_book.ts";
import { callKey } from "./call_key.ts";
import {
  type CallToolResult,
  deniedResult,
  failedResult,
  isExplained,
  noAnswerResult,
  notAskedResult,
  stillAskedResult,
  toolResult,
  tooManyResult,
  unreachableResult,
  waitingWords,
} from "./call_result.ts";
import type { Answer, AskedCall, OpenCall, Question } from "./open_call.ts";
import { reportWhile } from "./progress_reports.ts";
import type { CallState, CallStates } from "./request_state.ts";
import type { ToolRequest } from "./sdk.ts";
import type { ServedTool } from "./tool_table.ts";

/** A request as its connection gives it, its name looked up. */
export interface AskedTool extends Omit<ToolRequest, "name"> {
  readonly served: ServedTool;
}

export type Answered =
  | { readonly kind: "result"; readonly result: CallToolResult; readonly call?: OpenCall }
  /** `question`: to put before the client's user. */
  | { readonly kind: "again"; readonly state: string; readonly question?: string }
  | { readonly kind: "bad_state" }
  | { readonly kind: "gone" };

export interface CallSettings {
  readonly book: CallBook;
  readonly states: CallStates;
  readonly broker: Pick<BrokerSide, "why" | "isOut" | "onOutage">;
  readonly effects: Pick<Effects, "after">;
  /** How long a request waits for a person: less than the clients' own patience. */
  readonly holdMs: number;
}

/** A quick answer of a person's is waited for before the client's user is bothered. */
export const QUICK_MS = 1000;
/** Clients give up after ten rounds: the eleventh would be an error that says nothing. */
const ROUNDS_MAX = 10;

export async function answerCall(settings: CallSettings, asked: AskedTool): Promise<Answered> {
  const { tool, isRead } = asked.served;
  const key = callKey(tool, asked.argumentsText);
  const state = asked.state === undefined ? undefined : settings.states.open(asked.state, key);
  if (asked.state !== undefined && state === undefined) return { kind: "bad_state" };
  if (asked.signal.aborted) return { kind: "gone" };
  if (settings.broker.isOut && !settings.book.isOpen(key))
    return { kind: "result", result: notAskedResult(tool) };
  const call = await takeCall(settings.book, { tool, key, text: asked.argumentsText, isRead }, state);
  if (call === undefined) return { kind: "result", result: tooManyResult(tool) };
  if (asked.said === "decline") settings.book.callOff(call);
  const seen = await waitFor(settings, asked, call, holdMsOf(settings, asked, state));
  return answered(settings, asked, call, seen, state?.round ?? 0);
}

async function takeCall(
  book: CallBook,
  asked: AskedCall,
  state: CallState | undefined,
): Promise<OpenCall | undefined> {
  return state === undefined ? book.take(asked) : book.takeById(asked, state.call);
}

/** Who shows its user a question does so at once; who is kept waiting by progress waits for as long as it takes. */
function holdMsOf({ holdMs }: CallSettings, asked: AskedTool, state: CallState | undefined): number {
  if (asked.canComeAgain) return asked.canElicit && state === undefined ? QUICK_MS : holdMs;
  return asked.report === undefined ? holdMs : Number.POSITIVE_INFINITY;
}

type Seen = "ended" | "asked" | "out" | "gone";

/** Until the call has ended, or the request goes without it. */
function waitFor(
  { broker, effects }: CallSettings,
  { signal, report }: AskedTool,
  call: OpenCall,
  holdMs: number,
): Promise<Seen> {
  return new Promise((resolve) => {
    let isLate = false;
    const look = () => {
      const seen = seenOf(call, { isGone: signal.aborted, isLate, isOut: broker.isOut });
      if (seen === undefined) return;
      for (const one of undo) one();
      resolve(seen);
    };
    const late = () => {
      isLate = true;
      look();
    };
    const undo = [call.listen(look), broker.onOutage(look), onAbort(signal, look)];
    if (holdMs !== Number.POSITIVE_INFINITY) undo.push(effects.after(holdMs, late));
    if (report !== undefined) undo.push(reportWhile(call, report, effects));
    look();
  });
}

interface Waited {
  readonly isGone: boolean;
  /** The time is over for which a person is waited for. */
  readonly isLate: boolean;
  readonly isOut: boolean;
}

/** undefined: the wait goes on. */
function seenOf({ answer, question }: OpenCall, { isGone, isLate, isOut }: Waited): Seen | undefined {
  if (answer !== undefined) return "ended";
  if (isGone) return "gone";
  if (isLate && question !== undefined) return "asked";
  return isOut ? "out" : undefined;
}

function onAbort(signal: AbortSignal, listener: () => void): () => void {
  signal.addEventListener("abort", listener);
  return () => signal.removeEventListener("abort", listener);
}

async function answered(
  settings: CallSettings,
  asked: AskedTool,
  call: OpenCall,
  seen: Seen,
  round: number,
): Promise<Answered> {
  const { book } = settings;
  if (seen === "gone") {
    if (asked.isWish()) book.cancel(call);
    else book.leave(call);
    return { kind: "gone" };
  }
  if (seen !== "ended" || call.answer === undefined) {
    book.leave(call);
    return unanswered(settings, asked, call, seen, round);
  }
  const result = await resultOf(settings, asked.served, call, call.answer);
  if (isOpenStill(call.answer)) book.leave(call);
  else book.delivered(call);
  return { kind: "result", result, call };
}

/** Without the broker's answer it may go on: whoever asks the same is to find it. */
function isOpenStill(answer: Answer): boolean {
  return answer instanceof CallgateError && answer.mayHaveRun;
}

function unanswered(
  { states }: CallSettings,
  asked: AskedTool,
  { id, asked: { key }, question }: OpenCall,
  seen: Seen,
  round: number,
): Answered {
  const { tool } = asked.served;
  if (seen === "out" || question === undefined) return { kind: "result", result: unreachableResult(tool) };
  if (!asked.canComeAgain || round >= ROUNDS_MAX || asked.said === "cancel")
    return { kind: "result", result: stillAskedResult(tool, question) };
  const state = states.seal({ call: id, round: round + 1 }, key);
  const isShown = asked.canElicit && round === 0; // who has chosen to wait is not asked again and again
  return { kind: "again", state, ...(isShown ? { question: questionText(tool, question) } : {}) };
}

function questionText(tool: string, question: Question): string {
  return `The call of ${tool} ${waitingWords(question)}. Approve or refuse it where such questions are shown (the console, or \`callgate approvals\`). Accept here to wait for that; decline to call it off.`;
}

async function resultOf(
  { broker }: CallSettings,
  { tool, isMcp }: ServedTool,
  call: OpenCall,
  answer: Answer,
): Promise<CallToolResult> {
  if (answer instanceof CallgateError) return noAnswerResult(tool, answer);
  switch (answer.status) {
    case "result":
      return toolResult(answer, isMcp);
    case "denied": {
      const why = isExplained(answer.reason) ? await broker.why(call.id) : undefined;
      return deniedResult(tool, answer.reason, why);
    }
    case "failed":
      return failedResult(tool, answer.message);
    case "pending_approval": // never final, by the client library's own rule
      return unreachableResult(tool);
  }
}
