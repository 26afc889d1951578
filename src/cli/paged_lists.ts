// `callgate calls list` and `approvals list`: as many pages of the broker's answers as it takes, shown as one list.
// Invariant: what is asked for by name is told once, as it was told last.

import type { CallLine, CallsPage, Question, Questions } from "../client/answers.ts";
import type { Caller } from "../client/caller.ts";
import { questionTable } from "./approval_views.ts";
import { withCaller } from "./call.ts";
import { callTable } from "./call_views.ts";
import type { Flags, Words } from "./command_row.ts";
import { askBroker, type BrokerAnswer, show, type View } from "./operate.ts";
import { withProgress } from "./progress.ts";
import { type Dialogue, EXIT } from "./terminal.ts";
import { momentOf } from "./time_option.ts";

/** The most that the broker tells at once. */
const CALLS_PAGE = 500;
const QUESTIONS_PAGE = 200;
/** Without --limit. */
const CALLS_DEFAULT = 100;

export async function listCalls(terminal: Dialogue, _: Words, flags: Flags): Promise<number> {
  const nowMs = terminal.nowMs();
  const filter = {
    role: flags["role"],
    session: flags["of"],
    tool: flags["tool"],
    state: flags["state"],
    status: flags["status"],
    code: flags["code"],
    since_ms: momentOf(flags, "since", nowMs),
    until_ms: momentOf(flags, "until", nowMs),
  };
  const max = flags["all"] === true ? Number.POSITIVE_INFINITY : limitOf(flags);
  const calls = new Map<string, CallLine>();
  const ask = (caller: Caller, before: string | undefined) => {
    const left = max === undefined ? undefined : Math.min(CALLS_PAGE, max - calls.size);
    return askBroker(caller, flags, "callgate.calls.list", { ...filter, limit: left, before });
  };
  const join = (page: CallsPage) => {
    for (const one of page.calls) calls.set(`${one.role} ${one.session} ${one.call}`, one);
    const isFull = calls.size >= (max ?? CALLS_DEFAULT);
    const next = isFull ? null : page.next;
    return { whole: { ...page, calls: [...calls.values()] }, rows: calls.size, next };
  };
  return listed(terminal, flags, { what: "calls", view: callTable, ask, join });
}

export async function listApprovals(terminal: Dialogue, _: Words, flags: Flags): Promise<number> {
  const filter = {
    role: flags["role"],
    session: flags["of"],
    tool: flags["tool"],
    state: stateOf(flags),
  };
  const max = limitOf(flags);
  const questions = new Map<string, Question>();
  const ask = (caller: Caller, after: string | undefined) => {
    const limit = max === undefined ? undefined : Math.min(QUESTIONS_PAGE, max - questions.size);
    return askBroker(caller, flags, "callgate.approvals.list", { ...filter, limit, after });
  };
  const join = (page: Questions) => {
    for (const one of page.approvals) questions.set(one.approval, one);
    const isFull = questions.size >= (max ?? QUESTIONS_PAGE);
    const next = isFull ? null : page.next;
    return { whole: { ...page, approvals: [...questions.values()] }, rows: questions.size, next };
  };
  return listed(terminal, flags, { what: "questions", view: questionTable, ask, join });
}

function stateOf(flags: Flags): string | undefined {
  if (flags["ended"] === true) return "ended";
  return flags["all"] === true ? "all" : undefined;
}

/** What the pages so far come to, and where the next one begins; null or undefined: there is none, or none is wanted. */
interface Joined<T> {
  readonly whole: T;
  readonly rows: number;
  readonly next: string | null | undefined;
}

interface Paging<T> {
  /** As progress tells of them: `calls`. */
  readonly what: string;
  readonly view: View;
  ask(caller: Caller, from: string | undefined): Promise<BrokerAnswer>;
  join(page: T): Joined<T>;
}

async function listed<T>(terminal: Dialogue, flags: Flags, paging: Paging<T>): Promise<number> {
  const { what, view } = paging;
  return withCaller(terminal, flags, async (caller) => {
    const answer = await withProgress(terminal, what, (progress) => {
      return joined(caller, paging, (rows) => progress.at(`${what}: ${rows.toLocaleString("en-US")}`));
    });
    if ("fault" in answer) return answer.fault(terminal);
    show(terminal, flags, answer, view, terminal.nowMs());
    return EXIT.ok;
  });
}

async function joined<T>(
  caller: Caller,
  { ask, join }: Paging<T>,
  at: (rows: number) => void,
): Promise<BrokerAnswer> {
  for (let from: string | undefined, pages = 1; ; pages += 1) {
    const answer = await ask(caller, from);
    if ("fault" in answer) return answer;
    const { whole, rows, next } = join(answer.value as T); // the broker's own answer
    if (next === null || next === undefined)
      // One page goes out as it came.
      return { text: pages === 1 ? answer.text : JSON.stringify(whole, bigintText), value: whole };
    at(rows);
    from = next;
  }
}

function bigintText(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

function limitOf(flags: Flags): number | undefined {
  return typeof flags["limit"] === "number" ? flags["limit"] : undefined;
}
