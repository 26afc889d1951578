// `callgate tail --audit`: the newest records of the audit, and then those that come, through an operator's
// socket. Asks once a second, from where it stands. Invariant: a record is shown once, in its order, also over
// a restart of the broker.

import type { AuditPage, Status } from "../client/answers.ts";
import type { Caller } from "../client/caller.ts";
import { pause } from "../client/effects.ts";
import { withCaller } from "./call.ts";
import type { Flags } from "./command_row.ts";
import { askAgain, RETRY_MS } from "./following.ts";
import { auditEntry, type Entry } from "./tail_entry.ts";
import { isChosen, type TailFilter } from "./tail_filter.ts";
import { lastOf, type TailOutput } from "./tail_output.ts";
import { type Dialogue, EXIT } from "./terminal.ts";

const EXPORT = "callgate.audit.export";
const PAGE_LINES = 1000;
/** Dispatches whose end has not come yet. */
const RUNNING_MAX = 10_000;

export async function tailAudit(
  terminal: Dialogue,
  flags: Flags,
  filter: TailFilter,
  shown: TailOutput,
  stop: AbortSignal,
): Promise<number> {
  const work = async (caller: Caller) => {
    const tail = new AuditTail(terminal, caller, flags, filter, shown, stop);
    return tail.run();
  };
  return withCaller(terminal, flags, work, Number.POSITIVE_INFINITY, news(terminal));
}

/** Says when the broker goes, and when it is back; once each. */
function news(terminal: Dialogue): (state: { readonly open: boolean }) => void {
  let isGone = false;
  return ({ open }) => {
    if (open === !isGone) return;
    isGone = !open;
    terminal.err(open ? "callgate: the broker is back\n" : "callgate: the broker is gone; waiting for it\n");
  };
}

/** A status: the broker said no, and it was told. */
type Asked<T> = { readonly value: T } | { readonly status: number };

class AuditTail {
  readonly #terminal: Dialogue;
  readonly #caller: Caller;
  readonly #flags: Flags;
  readonly #filter: TailFilter;
  readonly #shown: TailOutput;
  readonly #stop: AbortSignal;
  readonly #durations = new Durations();
  /** Our own role, so far as it may be known: what we ask is no news. */
  #role: string | undefined;

  constructor(
    terminal: Dialogue,
    caller: Caller,
    flags: Flags,
    filter: TailFilter,
    shown: TailOutput,
    stop: AbortSignal,
  ) {
    this.#terminal = terminal;
    this.#caller = caller;
    this.#flags = flags;
    this.#filter = filter;
    this.#shown = shown;
    this.#stop = stop;
  }

  async run(): Promise<number> {
    await this.#learnRole();
    const head = await this.#head();
    if ("status" in head) return head.status;
    const last = lastOf(this.#flags);
    const begun = last === undefined ? await this.#forward(0n) : await this.#newest(last);
    if ("status" in begun) return begun.status;
    let next = later(begun.value, head.value) + 1n;
    while (!this.#stop.aborted) {
      await pause(RETRY_MS, this.#stop);
      const now = await this.#head();
      if ("status" in now) return now.status;
      if (now.value + 1n < next) {
        this.#terminal.err("callgate: the audit is another one now, and is followed from its beginning\n");
        next = 0n;
      }
      if (now.value < next) continue;
      const told = await this.#forward(next);
      if ("status" in told) return told.status;
      next = later(told.value, now.value) + 1n;
    }
    return EXIT.ok;
  }

  /** Who may export may perhaps not ask how the broker is; then our own questions are shown with the rest. */
  async #learnRole(): Promise<void> {
    const answer = await askAgain(this.#caller, this.#flags, "callgate.status", {});
    if (typeof answer === "object" && "value" in answer) this.#role = (answer.value as Status).role;
  }

  /** The number of the newest record; 0 where there is none. */
  async #head(): Promise<Asked<bigint>> {
    const page = await this.#page({ backward: true, limit: 1 });
    if ("status" in page) return page;
    const [line] = page.value.lines;
    return { value: (line === undefined ? undefined : auditEntry(line)?.seq) ?? 0n };
  }

  /** Shows those from there on; the number of the last that was told, 0 where none was. */
  async #forward(from: bigint): Promise<Asked<bigint>> {
    let newest = 0n;
    for (let next: string | null = from.toString(); next !== null && !this.#stop.aborted; ) {
      const page: Asked<AuditPage> = await this.#page({
        ...this.#asked(),
        from_seq: next,
        limit: PAGE_LINES,
      });
      if ("status" in page) return page;
      for (const line of page.value.lines) newest = later(newest, this.#show(line));
      next = page.value.next_seq;
    }
    return { value: newest };
  }

  /** Shows the newest that are chosen, in their order. */
  async #newest(count: number): Promise<Asked<bigint>> {
    const lines: string[] = [];
    let before: { before_seq?: string } = {};
    while (lines.length < count && !this.#stop.aborted) {
      const limit = Math.min(PAGE_LINES, Math.max(count - lines.length, 1));
      const page = await this.#page({ ...this.#asked(), ...before, backward: true, limit });
      if ("status" in page) return page;
      lines.push(...page.value.lines.filter((line) => this.#isNews(auditEntry(line))));
      if (page.value.next_seq === null) break;
      before = { before_seq: page.value.next_seq };
    }
    let newest = 0n;
    for (const line of lines.slice(0, count).reverse()) newest = later(newest, this.#show(line));
    return { value: newest };
  }

  /** What the broker itself can choose by. */
  #asked(): Readonly<Record<string, unknown>> {
    const { role, session, tool, decision, call, sinceMs } = this.#filter;
    return {
      role,
      session,
      tool,
      decision,
      call,
      since_ms: sinceMs === undefined ? undefined : Math.max(0, Math.floor(sinceMs)),
    };
  }

  /** Its number. What is broken has none, and is shown as it is. */
  #show(line: string): bigint {
    const entry = auditEntry(line);
    if (entry === undefined) this.#shown.broken(line);
    else if (this.#isNews(entry)) this.#shown.entry(this.#durations.told(entry));
    return entry?.seq ?? 0n;
  }

  #isNews(entry: Entry | undefined): boolean {
    if (entry === undefined) return true;
    return isChosen(entry, this.#filter) && !this.#isOurs(entry);
  }

  /** That we look on is in the audit too, and would be all there is to see in a quiet hour. */
  #isOurs({ event, role, session, tool }: Entry): boolean {
    return (
      (event === "decision" || event === "repeated") &&
      role === this.#role &&
      session === this.#flags.session &&
      (tool === EXPORT || tool === "callgate.status") &&
      tool !== this.#filter.tool
    );
  }

  /** Asks until it is answered, over restarts. */
  async #page(args: Readonly<Record<string, unknown>>): Promise<Asked<AuditPage>> {
    while (!this.#stop.aborted) {
      const answer = await askAgain(this.#caller, this.#flags, EXPORT, args);
      if (answer === "later") await pause(RETRY_MS, this.#stop);
      else if (answer !== "lost") {
        if ("fault" in answer) return { status: answer.fault(this.#terminal) };
        return { value: answer.value as AuditPage };
      }
    }
    return { status: EXIT.ok };
  }
}

function later(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}

/** From the dispatch of a call to its outcome, where both were seen. */
class Durations {
  readonly #dispatched = new Map<string, number>();

  told(entry: Entry): Entry {
    const { event, role, session, call, atMs } = entry;
    const key = `${role}:${session}:${call}`;
    const since = this.#dispatched.get(key);
    if (event === "dispatch" && atMs !== undefined) {
      this.#dispatched.set(key, atMs);
      const [oldest] = this.#dispatched.keys();
      if (this.#dispatched.size > RUNNING_MAX && oldest !== undefined) this.#dispatched.delete(oldest);
    }
    if (event !== "outcome" || since === undefined || atMs === undefined) return entry;
    this.#dispatched.delete(key);
    return { ...entry, durationMs: atMs - since };
  }
}
