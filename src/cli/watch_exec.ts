// `approvals watch --exec CMD`: runs a notifier for each question. The command line is the owner's and goes to
// /bin/sh as it is; what a question says goes beside it, in the environment and on standard input, and never
// into the command line. Invariant: at most so many run and wait at once, whatever is asked, and none
// longer than its time; what was left out for that is said.

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { visibleLine } from "../base/display.ts";
import { localTime } from "../base/time_text.ts";
import type { Question } from "../client/answers.ts";
import { actorText, destinationsText } from "./approval_views.ts";
import { jsonLine } from "./terminal.ts";

const AT_ONCE = 4;
const QUEUE_MAX = 64;
const TIMEOUT_MS = 60_000;
/** From SIGTERM to SIGKILL. */
const GRACE_MS = 1000;
/** Of what one run prints. */
const LINES_SHOWN_MAX = 20;
const LINE_CHARS_MAX = 300;
const VALUE_CHARS_MAX = 1000;

export interface NotifierOptions {
  /** A line for /bin/sh -c. */
  readonly command: string;
  readonly on: "asked" | "all";
  /** The way on which a notifier could answer. */
  readonly socket: string | undefined;
  /** For the person at the terminal: one line, escaped. */
  readonly say: (line: string) => void;
  readonly timeoutMs?: number;
}

interface Job {
  readonly approval: string | undefined;
  readonly variables: Readonly<Record<string, string>>;
  readonly input: string;
}

export class Notifier {
  readonly #options: NotifierOptions;
  readonly #queue: Job[] = [];
  readonly #running = new Map<ChildProcess, Promise<void>>();
  #missed = 0;
  #closed = false;

  constructor(options: NotifierOptions) {
    this.#options = options;
  }

  /** `event`: `asked`, or how the question ended. */
  tell(event: string, question: Question): void {
    if (event !== "asked" && this.#options.on !== "all") {
      this.#forget(question.approval);
      return;
    }
    if (this.#queue.length >= QUEUE_MAX) this.#missed += 1;
    else this.#queue.push(jobOf(event, question));
    this.#next();
  }

  /** Ends what runs; nothing runs after that. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const child of this.#running.keys()) end(child);
    await Promise.all(this.#running.values());
  }

  /** Whoever has not heard of it yet need not any more. */
  #forget(approval: string): void {
    const at = this.#queue.findIndex((job) => job.approval === approval);
    if (at >= 0) this.#queue.splice(at, 1);
  }

  #next(): void {
    while (!this.#closed && this.#running.size < AT_ONCE) {
      const job = this.#queue.shift() ?? this.#missedJob();
      if (job === undefined) return;
      this.#start(job);
    }
  }

  /** What there was no room for is told at the end, as a number. */
  #missedJob(): Job | undefined {
    const missed = this.#missed;
    if (missed === 0) return undefined;
    this.#missed = 0;
    this.#options.say(`${missed} events were not told one by one: it takes too long for so many`);
    return {
      approval: undefined,
      variables: { CALLGATE_EVENT: "missed", CALLGATE_MISSED: String(missed) },
      input: jsonLine(JSON.stringify({ event: "missed", missed })),
    };
  }

  #start(job: Job): void {
    const { command, socket, say, timeoutMs = TIMEOUT_MS } = this.#options;
    const child = spawn("/bin/sh", ["-c", command], {
      env: environment(job, socket),
      stdio: ["pipe", "pipe", "pipe"],
      detached: true, // its own group, so that all of it can be ended
    });
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      end(child);
    }, timeoutMs);
    readOutput(child, say);
    child.stdin?.on("error", () => undefined); // it need not read
    child.stdin?.end(job.input);
    const over = ended(child).then((fault) => {
      clearTimeout(timer);
      this.#running.delete(child);
      const why = late ? `it took longer than ${timeoutMs / 1000} s and was ended` : fault;
      if (why !== undefined && !this.#closed) say(`${why}${about(job)}`);
      this.#next();
    });
    this.#running.set(child, over);
  }
}

function about({ approval, variables }: Job): string {
  return approval === undefined ? "" : ` (${variables["CALLGATE_EVENT"]}, ${visibleLine(approval, 64)})`;
}

/** Resolves when the shell has gone: with what went wrong, if something did. */
function ended(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve) => {
    child.once("error", (error: NodeJS.ErrnoException) =>
      resolve(`it could not be run (${error.code ?? "unknown"})`),
    );
    child.once("exit", (status, signal) => {
      if (status === 0) resolve(undefined);
      else resolve(status === null ? `it was ended by ${signal}` : `it ended with status ${status}`);
    });
  });
}

/** The whole group; a shell's children do not end with it. */
function end(child: ChildProcess): void {
  signal(child, "SIGTERM");
  const timer = setTimeout(() => signal(child, "SIGKILL"), GRACE_MS);
  child.once("exit", () => {
    clearTimeout(timer);
    signal(child, "SIGKILL"); // what the shell leaves behind
  });
}

function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {
    // it has gone by itself
  }
}

function readOutput(child: ChildProcess, say: (line: string) => void): void {
  let shown = 0;
  closeLate(child);
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on("line", (line) => {
      shown += 1;
      if (shown <= LINES_SHOWN_MAX) say(visibleLine(line, LINE_CHARS_MAX));
      else if (shown === LINES_SHOWN_MAX + 1) say("(it prints more, which is left out)");
    });
  }
}

/** What a shell has left running may hold its output open; all that was printed before comes out. */
function closeLate(child: ChildProcess): void {
  child.once("exit", () => {
    const timer = setTimeout(() => {
      child.stdout?.destroy();
      child.stderr?.destroy();
    }, GRACE_MS);
    child.once("close", () => clearTimeout(timer));
  });
}

/** Ours, without what another run of this was given. */
function environment({ variables }: Job, socket: string | undefined): NodeJS.ProcessEnv {
  const env = { ...process.env };
  for (const name of NAMES) delete env[name];
  return { ...env, ...variables, ...(socket === undefined ? {} : { CALLGATE_SOCKET: socket }) };
}

const NAMES = [
  "CALLGATE_EVENT",
  "CALLGATE_APPROVAL",
  "CALLGATE_TOOL",
  "CALLGATE_EFFECT",
  "CALLGATE_ROLE",
  "CALLGATE_SESSION",
  "CALLGATE_CALL",
  "CALLGATE_DESTINATIONS",
  "CALLGATE_EXPIRES",
  "CALLGATE_BY",
  "CALLGATE_MISSED",
] as const;

function jobOf(event: string, question: Question): Job {
  const { approval, tool, effect, role, session, call, destinations, expires_at_ms, decided_by } = question;
  const values: Readonly<Record<string, string>> = {
    CALLGATE_EVENT: event,
    CALLGATE_APPROVAL: approval,
    CALLGATE_TOOL: tool,
    CALLGATE_EFFECT: effect,
    CALLGATE_ROLE: role,
    CALLGATE_SESSION: session,
    CALLGATE_CALL: String(call),
    CALLGATE_DESTINATIONS: destinationsText(destinations),
    CALLGATE_EXPIRES: localTime(expires_at_ms),
    CALLGATE_BY: decided_by === null ? "" : actorText(decided_by),
  };
  const shown = Object.entries(values).map(([name, value]) => [name, visibleLine(value, VALUE_CHARS_MAX)]);
  return {
    approval,
    variables: Object.fromEntries(shown) as Readonly<Record<string, string>>,
    input: questionLine(event, question),
  };
}

/** As `--json` has it, one line. */
export function questionLine(event: string, approval: Question): string {
  const bigintText = (_: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value);
  return jsonLine(JSON.stringify({ event, approval }, bigintText));
}
