// `callgate tail`: the daemon's log (standard input, or a file that grows and is rotated) or its audit, as lines
// for people: who, which tool, what was decided by which rule, how long it took. Until ctrl-C.

import { stat } from "node:fs/promises";
import { visibleLine } from "../base/display.ts";
import { UsageFault } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import { logEntry } from "./tail_entry.ts";
import { isChosen, readFilter, type TailFilter } from "./tail_filter.ts";
import { fileLines, offsetOfLast, streamLines } from "./tail_lines.ts";
import { lastOf, TailOutput } from "./tail_output.ts";
import { type Dialogue, EXIT } from "./terminal.ts";

/** After ctrl-C a daemon in front of us still says how it ends. */
const LAST_WORDS_MS = 2000;

export async function tail(
  terminal: Dialogue,
  [file]: Words,
  flags: Flags,
  input: () => NodeJS.ReadableStream = () => process.stdin,
): Promise<number> {
  const filter = readFilter(flags, terminal.nowMs());
  const shown = new TailOutput(terminal, flags.json === true);
  checkSource(terminal, file, flags);
  const stop = new AbortController();
  if (flags["audit"] === true) {
    const { tailAudit } = await import("./tail_audit.ts");
    return untilInterrupt(terminal, stop, tailAudit(terminal, flags, filter, shown, stop.signal));
  }
  if (file === undefined) return tailInput(terminal, input(), filter, shown);
  return untilInterrupt(terminal, stop, tailFile(terminal, file, lastOf(flags), filter, shown, stop.signal));
}

function checkSource(terminal: Dialogue, file: string | undefined, flags: Flags): void {
  const audit = flags["audit"] === true;
  if (audit && file !== undefined) throw new UsageFault("give a file or --audit, not both");
  if (audit && flags["level"] !== undefined)
    throw new UsageFault("--level is for the log: the audit has no levels");
  if (audit || file !== undefined) return;
  if (flags["last"] !== undefined) throw new UsageFault("--last goes with a file or --audit");
  if (terminal.canAsk)
    throw new UsageFault(
      "say what to follow: a log file, --audit, or the daemon's output through a pipe (callgate serve … | callgate tail)",
    );
}

async function untilInterrupt(
  terminal: Dialogue,
  stop: AbortController,
  work: Promise<number>,
): Promise<number> {
  const restore = terminal.onInterrupt(() => stop.abort());
  const stopped = new Promise<number>((resolve) => {
    stop.signal.addEventListener("abort", () => resolve(EXIT.ok));
  });
  try {
    return await Promise.race([work, stopped]);
  } finally {
    stop.abort();
    restore();
  }
}

async function tailInput(
  terminal: Dialogue,
  input: NodeJS.ReadableStream,
  filter: TailFilter,
  shown: TailOutput,
): Promise<number> {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const restore = terminal.onInterrupt(() => {
    if (timer !== undefined) stop.abort();
    timer ??= setTimeout(() => stop.abort(), LAST_WORDS_MS);
  });
  try {
    for await (const line of streamLines(input, stop.signal)) takeLogLine(line, filter, shown);
    return EXIT.ok;
  } finally {
    clearTimeout(timer);
    restore();
  }
}

async function tailFile(
  terminal: Dialogue,
  path: string,
  last: number | undefined,
  filter: TailFilter,
  shown: TailOutput,
  stop: AbortSignal,
): Promise<number> {
  const why = await unfollowable(path);
  if (why !== undefined) {
    terminal.err(`callgate: ${visibleLine(JSON.stringify(path), 300)} ${why}\n`);
    return EXIT.usage;
  }
  const from = last === undefined ? 0 : await offsetOfLast(path, last, (line) => isWanted(line, filter));
  for await (const event of fileLines(path, from, stop)) {
    if ("line" in event) takeLogLine(event.line, filter, shown);
    else terminal.err(`callgate: ${NEWS[event.now]}\n`);
  }
  return EXIT.ok;
}

const NEWS = {
  replaced: "the file was replaced; going on with the new one",
  cut: "the file was emptied; going on from its beginning",
} as const;

async function unfollowable(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isFile() ? undefined : "is no file; a pipe is read with < in front of it";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? "does not exist" : "can't be read";
  }
}

/** A broken line counts too: it is shown. */
function isWanted(line: string, filter: TailFilter): boolean {
  const entry = logEntry(line);
  return entry === undefined || isChosen(entry, filter);
}

function takeLogLine(line: string, filter: TailFilter, shown: TailOutput): void {
  const entry = logEntry(line);
  if (entry === undefined) shown.broken(line);
  else if (isChosen(entry, filter)) shown.entry(entry);
}
