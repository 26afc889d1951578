// A transcript as APIs with two sides want it: runs of what the model said, and of what it was told. Pure.
// Invariant: every result answers a call of the run before it, and every call of a run is answered in the next one.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { InputItem, ReasoningState, ToolCall } from "../contract.ts";
import { type Failure, failure } from "./failure.ts";

export type AssistantItem =
  | { readonly AssistantText: { readonly text: string } }
  | { readonly ToolCall: ToolCall }
  | { readonly ReasoningState: ReasoningState };

export interface AssistantRun {
  readonly items: readonly AssistantItem[];
}

export interface UserRun {
  /** Every API wants them before any text. */
  readonly results: readonly { readonly call_id: string; readonly output: string }[];
  readonly texts: readonly string[];
}

export type Run = AssistantRun | UserRun;

type OpenRun = { items: AssistantItem[] } | { results: UserRun["results"][number][]; texts: string[] };

export function readRuns(input: readonly InputItem[]): Result<readonly Run[], Failure> {
  const runs: OpenRun[] = [];
  const open = new Set<string>();
  for (const item of input) {
    const problem = addItem(runs, open, item);
    if (problem !== undefined) return rejected(problem);
  }
  if (open.size > 0) return rejected("a tool call of the transcript has no result");
  return ok(runs);
}

function addItem(runs: OpenRun[], open: Set<string>, item: InputItem): string | undefined {
  if ("UserText" in item) userRun(runs).texts.push(item.UserText.text);
  else if ("ToolResult" in item) {
    if (!open.delete(item.ToolResult.call_id)) {
      return "a tool result of the transcript answers no tool call before it";
    }
    userRun(runs).results.push(item.ToolResult);
  } else return addAssistantItem(runs, open, item);
  return undefined;
}

function addAssistantItem(runs: OpenRun[], open: Set<string>, item: AssistantItem): string | undefined {
  const last = runs.at(-1);
  if (last !== undefined && "texts" in last && open.size > 0) {
    return "the transcript goes on before every tool call has its result";
  }
  if ("ToolCall" in item) {
    if (open.has(item.ToolCall.call_id)) return "two open tool calls of the transcript have one id";
    open.add(item.ToolCall.call_id);
  }
  if (last !== undefined && "items" in last) last.items.push(item);
  else runs.push({ items: [item] });
  return undefined;
}

function userRun(runs: OpenRun[]): Extract<OpenRun, { texts: string[] }> {
  const last = runs.at(-1);
  if (last !== undefined && "texts" in last) return last;
  const run = { results: [], texts: [] };
  runs.push(run);
  return run;
}

/** The API can't say it, or would refuse it: told without asking the provider. */
export function rejected(why: string): { readonly ok: false; readonly fault: Failure } {
  return fault(failure("RequestRejected", `${why}; nothing was sent`));
}
