// `callgate metrics`: the broker's figures in Prometheus' text format, on standard output or into a file for the
// textfile collector of node_exporter; once, or again and again.
// Invariant: a file never holds figures of a broker that could not be asked; then it says `callgate_up 0`.

import { visibleLine } from "../base/display.ts";
import type { Caller } from "../client/caller.ts";
import { pause } from "../client/effects.ts";
import type { MeasuredStatus } from "../client/load_answers.ts";
import { prometheusText, unreachableText } from "../roles/metrics/prometheus.ts";
import { withCaller } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import { askAgain } from "./following.ts";
import { replaceFile } from "./replace_file.ts";
import { type Dialogue, EXIT, jsonLine, type Terminal } from "./terminal.ts";

export async function showMetrics(terminal: Dialogue, _: Words, flags: Flags): Promise<number> {
  const seconds = flags["every"];
  const to = flags["to"];
  const output = new Output(terminal, flags, typeof to === "string" ? to : undefined);
  if (typeof seconds !== "number") return output.finish(await once(terminal, flags, output));
  const stop = new AbortController();
  const restore = terminal.onInterrupt(() => stop.abort());
  try {
    return await again(terminal, flags, output, seconds * 1000, stop.signal);
  } finally {
    restore();
  }
}

function once(terminal: Terminal, flags: Flags, output: Output): Promise<number> {
  return withCaller(terminal, flags, (caller) => take(terminal, caller, flags, output));
}

/** One look. A lost connection is the caller's to hear of as `EXIT.connection`. */
async function take(terminal: Terminal, caller: Caller, flags: Flags, output: Output): Promise<number> {
  const answer = await askAgain(caller, flags, "callgate.status", { metrics: true });
  if (answer === "lost") {
    terminal.err("callgate: the connection to the broker was lost\n");
    return EXIT.connection;
  }
  if (answer === "later") {
    terminal.err("callgate: the broker can't tell its figures now (unavailable)\n");
    return EXIT.failed;
  }
  if ("fault" in answer) return answer.fault(terminal);
  const { metrics } = answer.value as Partial<MeasuredStatus>;
  if (metrics !== undefined) return output.write(answer.value as MeasuredStatus, answer.text);
  terminal.err("callgate: this broker tells no figures: it is older than this command\n");
  return EXIT.failed;
}

/** Until ctrl-C. What is denied is wrong for good and ends it; what may pass is said once, and waited for. */
async function again(
  terminal: Dialogue,
  flags: Flags,
  output: Output,
  everyMs: number,
  stop: AbortSignal,
): Promise<number> {
  const quiet = new Unrepeated(terminal);
  while (!stop.aborted) {
    const status = await withCaller(quiet, flags, async (caller) => {
      for (;;) {
        const taken = await take(quiet, caller, flags, output);
        if (taken !== EXIT.ok || stop.aborted) return taken;
        quiet.forget();
        await pause(everyMs, stop);
        if (stop.aborted) return EXIT.ok;
      }
    });
    if (status !== EXIT.ok) await output.finish(status);
    if (status === EXIT.denied || status === EXIT.usage || output.isUseless) return status;
    await pause(everyMs, stop);
  }
  return EXIT.ok;
}

/** Where the figures go. */
class Output {
  readonly #terminal: Dialogue;
  readonly #json: boolean;
  readonly #file: string | undefined;
  #written = false;
  #failed = false;

  constructor(terminal: Dialogue, { json }: Flags, file: string | undefined) {
    this.#terminal = terminal;
    this.#json = json === true;
    this.#file = file;
  }

  /** The file could never be written: nobody gains by going on. */
  get isUseless(): boolean {
    return this.#failed && !this.#written;
  }

  write(status: MeasuredStatus, json: string): Promise<number> {
    return this.#put(this.#json ? jsonLine(json) : prometheusText(status, this.#terminal.nowMs()));
  }

  /** Leaves no old figures behind where there are no new ones. Hands the exit status on. */
  async finish(status: number): Promise<number> {
    const isGone = status !== EXIT.ok && status !== EXIT.usage && !this.#failed;
    if (isGone && this.#file !== undefined && !this.#json)
      await this.#put(unreachableText(this.#terminal.nowMs()));
    return status;
  }

  async #put(text: string): Promise<number> {
    if (this.#file === undefined) {
      this.#terminal.out(text);
      return EXIT.ok;
    }
    const replaced = await replaceFile(this.#file, text);
    if (replaced.ok) {
      this.#written = true;
      this.#failed = false;
      return EXIT.ok;
    }
    if (!this.#failed) {
      const file = visibleLine(JSON.stringify(this.#file), 300);
      this.#terminal.err(`callgate: ${file} can't be written: ${replaced.fault}\n`);
    }
    this.#failed = true;
    return EXIT.failed;
  }
}

/** Says what it said last only once. */
class Unrepeated implements Terminal {
  readonly isTerminal: boolean;
  readonly #terminal: Terminal;
  #last = "";

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.isTerminal = terminal.isTerminal;
  }

  out(text: string): void {
    this.#terminal.out(text);
  }

  err(text: string): void {
    if (text !== this.#last) this.#terminal.err(text);
    this.#last = text;
  }

  forget(): void {
    this.#last = "";
  }
}
