// `callgate approvals watch`: prints each question as it comes and what became of it, until ctrl-C.
// Keeps no state beyond the questions that wait, and says nothing twice.

import { visibleLine } from "../base/display.ts";
import { localTime, span } from "../base/time_text.ts";
import type { Question, Questions } from "../client/answers.ts";
import type { Caller } from "../client/caller.ts";
import { CallgateError } from "../client/error.ts";
import { actorText, destinationsText } from "./approval_views.ts";
import { withCaller } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import { askBroker } from "./operate.ts";
import { type Dialogue, EXIT, jsonLine } from "./terminal.ts";
import { fitted } from "./text_table.ts";
import { userText } from "./users.ts";

/** After it the broker answers though nothing has changed. */
const WATCH_SECONDS = 30;
/** Until a broker that can't answer now is asked again. */
const RETRY_MS = 1000;

export async function watchApprovals(terminal: Dialogue, _: Words, flags: Flags): Promise<number> {
  const stop = new AbortController();
  const restore = terminal.onInterrupt(() => stop.abort());
  const stopped = new Promise<number>((resolve) => {
    stop.signal.addEventListener("abort", () => resolve(EXIT.ok));
  });
  const work = (caller: Caller) => Promise.race([stopped, follow(terminal, caller, flags, stop.signal)]);
  try {
    return await Promise.race([stopped, withCaller(terminal, flags, work, Number.POSITIVE_INFINITY)]);
  } finally {
    restore();
  }
}

async function follow(terminal: Dialogue, caller: Caller, flags: Flags, stop: AbortSignal): Promise<number> {
  const told = new Told(terminal, flags);
  let version: unknown;
  while (!stop.aborted) {
    const answer = await asked(caller, flags, version);
    if (answer === "lost") {
      version = undefined; // another broker counts anew
      continue;
    }
    if ("fault" in answer) {
      const quiet = new Said();
      const status = answer.fault(quiet);
      if (!quiet.text.startsWith("failed: unavailable")) {
        terminal.err(quiet.text);
        return status;
      }
      await pause(RETRY_MS, stop);
      continue;
    }
    const list = answer.value as Questions;
    const same = list.version === version;
    version = list.version;
    await told.take(list.approvals, () => whatBecame(caller, flags));
    if (same) await pause(RETRY_MS, stop); // a broker that is about to end holds nobody up
  }
  return EXIT.ok;
}

/** Keeps what would be said. */
class Said {
  readonly isTerminal = false;
  text = "";

  out(text: string): void {
    this.text += text;
  }

  err(text: string): void {
    this.text += text;
  }
}

/** The questions at once, or, where a version of them is known, when they are no longer that. */
async function asked(caller: Caller, flags: Flags, version: unknown) {
  try {
    if (version === undefined) return await askBroker(caller, flags, "callgate.approvals.list", {});
    const args = { version, timeout_seconds: WATCH_SECONDS };
    return await askBroker(caller, flags, "callgate.approvals.watch", args);
  } catch (error) {
    if (error instanceof CallgateError && error.code === "lost") return "lost";
    throw error;
  }
}

/** Questions that no longer wait, so far as they are kept. */
async function whatBecame(caller: Caller, flags: Flags): Promise<readonly Question[]> {
  const answer = await askBroker(caller, flags, "callgate.approvals.list", { state: "all" });
  return "fault" in answer ? [] : (answer.value as Questions).approvals;
}

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    stop.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Which questions were told and still wait. */
class Told {
  readonly #terminal: Dialogue;
  readonly #json: boolean;
  readonly #waiting = new Map<string, Question>();
  #first = true;

  constructor(terminal: Dialogue, flags: Flags) {
    this.#terminal = terminal;
    this.#json = flags.json === true;
  }

  async take(listed: readonly Question[], ended: () => Promise<readonly Question[]>): Promise<void> {
    const pending = listed.filter(({ state }) => state === "pending");
    const still = new Set(pending.map(({ approval }) => approval));
    const gone = [...this.#waiting.values()].filter(({ approval }) => !still.has(approval));
    if (gone.length > 0) {
      const known = new Map([...(await ended()), ...listed].map((one) => [one.approval, one]));
      for (const one of gone) this.#end(known.get(one.approval) ?? { ...one, state: "gone" });
    }
    for (const one of pending) if (!this.#waiting.has(one.approval)) this.#begin(one);
    if (this.#first && pending.length === 0 && !this.#json)
      this.#terminal.err("no questions wait; new ones are shown as they come (ctrl-C ends this)\n");
    this.#first = false;
  }

  #begin(question: Question): void {
    this.#waiting.set(question.approval, question);
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
    this.#terminal.out(jsonLine(JSON.stringify({ event, approval }, bigintText)));
  }
}

function bigintText(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
