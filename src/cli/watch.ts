// `callgate approvals watch`: prints each question as it comes and what became of it, until ctrl-C; with --exec it
// runs a command for each. Keeps no state beyond the questions that wait, and says nothing twice.

import { resolve } from "node:path";
import { visibleLine } from "../base/display.ts";
import { localTime, span } from "../base/time_text.ts";
import type { Question, Questions } from "../client/answers.ts";
import type { Caller } from "../client/caller.ts";
import { pause } from "../client/effects.ts";
import { actorText, destinationsText } from "./approval_views.ts";
import { addressOf, UsageFault, withCaller } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import { askAgain, RETRY_MS } from "./following.ts";
import { type Dialogue, EXIT } from "./terminal.ts";
import { fitted } from "./text_table.ts";
import { userText } from "./users.ts";
import { Notifier, questionLine } from "./watch_exec.ts";

const LIST = "callgate.approvals.list";
/** After it the broker answers though nothing has changed. */
const WATCH_SECONDS = 30;
/** Questions that were answered are looked for among so many pages, the latest first. */
const ENDED_PAGES_MAX = 30;
/** A broker with many pages is not asked for all of them at each change. */
const PAGE_REST_MS = 100;

export async function watchApprovals(terminal: Dialogue, _: Words, flags: Flags): Promise<number> {
  const notifier = notifierOf(terminal, flags);
  const stop = new AbortController();
  const restore = terminal.onInterrupt(() => stop.abort());
  const stopped = new Promise<number>((end) => {
    stop.signal.addEventListener("abort", () => end(EXIT.ok));
  });
  const work = (caller: Caller) =>
    Promise.race([stopped, new Watch(terminal, caller, flags, notifier, stop.signal).run()]);
  try {
    return await Promise.race([stopped, withCaller(terminal, flags, work, Number.POSITIVE_INFINITY)]);
  } finally {
    stop.abort();
    restore();
    await notifier?.close();
  }
}

function notifierOf(terminal: Dialogue, flags: Flags): Notifier | undefined {
  const { exec, execOn } = flags;
  if (typeof exec !== "string") {
    if (execOn !== undefined)
      throw new UsageFault("--exec-on says when --exec runs its command: give that too");
    return undefined;
  }
  if (exec.trim() === "") throw new UsageFault("--exec is empty");
  const to = addressOf(flags);
  return new Notifier({
    command: exec,
    on: execOn === "all" ? "all" : "asked",
    socket: "path" in to ? resolve(to.path) : undefined,
    say: (line) => terminal.err(`callgate: --exec: ${line}\n`),
  });
}

/** One broker's questions, over its restarts. */
class Watch {
  readonly #terminal: Dialogue;
  readonly #caller: Caller;
  readonly #flags: Flags;
  readonly #stop: AbortSignal;
  readonly #told: Told;
  /** Of the list that was told last; undefined: of none, or of another broker's. */
  #version: unknown;

  constructor(
    terminal: Dialogue,
    caller: Caller,
    flags: Flags,
    notifier: Notifier | undefined,
    stop: AbortSignal,
  ) {
    this.#terminal = terminal;
    this.#caller = caller;
    this.#flags = flags;
    this.#stop = stop;
    this.#told = new Told(terminal, flags, notifier);
  }

  async run(): Promise<number> {
    while (!this.#stop.aborted) {
      const list = await this.#changed();
      if (list === undefined) continue;
      if ("status" in list) return list.status;
      const same = list.version === this.#version;
      this.#version = list.version;
      if (!same || list.pages > 1) await this.#told.take(list.questions, (ids) => this.#ends(ids));
      const restMs = (list.pages - 1) * PAGE_REST_MS;
      // A broker that is about to end holds nobody up.
      if (same || restMs > 0) await pause(same ? Math.max(RETRY_MS, restMs) : restMs, this.#stop);
    }
    return EXIT.ok;
  }

  /** All that wait, at once or when they are no longer those of the version; undefined: ask again. */
  async #changed(): Promise<Waiting | { readonly status: number } | undefined> {
    const first =
      this.#version === undefined
        ? await this.#page(LIST, {})
        : await this.#page("callgate.approvals.watch", {
            version: this.#version,
            timeout_seconds: WATCH_SECONDS,
          });
    if (first === undefined || "status" in first) return first;
    const questions = [...first.approvals];
    let pages = 1;
    for (let after = nextOf(first); after !== undefined; pages += 1) {
      const page: Questions | { readonly status: number } | undefined = await this.#page(LIST, { after });
      if (page === undefined || "status" in page) return page;
      questions.push(...page.approvals);
      after = page.approvals.length === 0 ? undefined : nextOf(page);
    }
    return { questions, version: first.version, pages };
  }

  async #page(
    tool: string,
    args: Readonly<Record<string, unknown>>,
  ): Promise<Questions | { readonly status: number } | undefined> {
    const answer = await askAgain(this.#caller, this.#flags, tool, args);
    if (answer === "lost") {
      this.#version = undefined; // another broker counts anew
      return undefined;
    }
    if (answer === "later") {
      await pause(RETRY_MS, this.#stop);
      return undefined;
    }
    return "fault" in answer ? { status: answer.fault(this.#terminal) } : (answer.value as Questions);
  }

  /** Those that no longer wait, so far as they are kept. */
  async #ends(ids: ReadonlySet<string>): Promise<readonly Question[]> {
    const found: Question[] = [];
    let after: string | undefined;
    for (let pages = 0; pages < ENDED_PAGES_MAX && found.length < ids.size; pages += 1) {
      const page = await this.#page(LIST, { state: "ended", after });
      if (page === undefined || "status" in page) break;
      found.push(...page.approvals.filter(({ approval }) => ids.has(approval)));
      after = nextOf(page);
      if (after === undefined) break;
    }
    return found;
  }
}

interface Waiting {
  readonly questions: readonly Question[];
  readonly version: unknown;
  readonly pages: number;
}

function nextOf({ more, next, approvals }: Questions): string | undefined {
  return more === true ? (next ?? approvals.at(-1)?.approval) : undefined;
}

/** Which questions were told and still wait. */
class Told {
  readonly #terminal: Dialogue;
  readonly #json: boolean;
  readonly #notifier: Notifier | undefined;
  readonly #waiting = new Map<string, Question>();
  #first = true;

  constructor(terminal: Dialogue, flags: Flags, notifier: Notifier | undefined) {
    this.#terminal = terminal;
    this.#json = flags.json === true;
    this.#notifier = notifier;
  }

  async take(
    listed: readonly Question[],
    endsOf: (ids: ReadonlySet<string>) => Promise<readonly Question[]>,
  ): Promise<void> {
    const pending = listed.filter(({ state }) => state === "pending");
    const still = new Set(pending.map(({ approval }) => approval));
    const gone = [...this.#waiting.values()].filter(({ approval }) => !still.has(approval));
    if (gone.length > 0) {
      const ends = await endsOf(new Set(gone.map(({ approval }) => approval)));
      const known = new Map(ends.map((one) => [one.approval, one]));
      for (const one of gone) this.#end(known.get(one.approval) ?? { ...one, state: "gone" });
    }
    for (const one of pending) if (!this.#waiting.has(one.approval)) this.#begin(one);
    if (this.#first && pending.length === 0 && !this.#json)
      this.#terminal.err("no questions wait; new ones are shown as they come (ctrl-C ends this)\n");
    this.#first = false;
  }

  #begin(question: Question): void {
    this.#waiting.set(question.approval, question);
    this.#notifier?.tell("asked", question);
    if (this.#json) return this.#line("asked", question);
    const { role, session, tool, asked_at_ms, expires_at_ms, uid, pid } = question;
    const left = span(expires_at_ms - this.#terminal.nowMs());
    const who = `role ${role}, session ${session}, ${userText(uid)}${pid === null ? "" : `, pid ${pid}`}`;
    const where = destinationsText(question.destinations);
    this.#say(asked_at_ms, `asked     ${tool}${where === "-" ? "" : ` ${where}`}`);
    this.#out(`  ${visibleLine(`${who}; ${left} left`, 300)}\n`);
    this.#terminal.out(`  callgate approvals approve ${visibleLine(question.approval)}\n`);
  }

  #end(question: Question): void {
    this.#waiting.delete(question.approval);
    this.#notifier?.tell(question.state, question);
    if (this.#json) return this.#line(question.state, question);
    const by = question.decided_by === null ? "" : ` by ${actorText(question.decided_by)}`;
    const text = `${question.state.padEnd(9)} ${question.tool} of ${question.role}${by}  (${question.approval})`;
    this.#say(question.decided_at_ms ?? this.#terminal.nowMs(), text);
  }

  #say(ms: number, text: string): void {
    this.#out(`${localTime(ms)}  ${visibleLine(text, 400)}\n`);
  }

  #out(text: string): void {
    this.#terminal.out(fitted(text, this.#terminal.columns));
  }

  #line(event: string, approval: Question): void {
    this.#terminal.out(questionLine(event, approval));
  }
}
