// `callgate traces`: the audit as OpenTelemetry spans to a collector, from now on until ctrl-C. Off unless somebody runs
// it; what it may see is what its role may export.

import { readFile } from "node:fs/promises";
import { visibleLine } from "../base/display.ts";
import { counted } from "../base/json_text.ts";
import type { AuditPage, Status } from "../client/answers.ts";
import type { Caller } from "../client/caller.ts";
import { pause } from "../client/effects.ts";
import { type FollowPorts, followAudit, type Start, type Told } from "../roles/traces/follow.ts";
import { placeText, readPlace } from "../roles/traces/place_text.ts";
import { Sender } from "../roles/traces/sender.ts";
import { UsageFault, withCaller } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import { askAgain } from "./following.ts";
import { codeOf, replaceFile } from "./replace_file.ts";
import { type Dialogue, EXIT } from "./terminal.ts";
import { readTracesOptions, type TracesOptions } from "./traces_options.ts";

const PAGE_LINES = 1000;
const REQUEST_TIMEOUT_MS = 10_000;
const GRACE_MS = 1500;
const LAST_WORK_MS = 2000;
/** Rises when names or attributes of spans change their meaning. */
const SCOPE = { name: "callgate.traces", version: "1" } as const;

export async function sendTraces(terminal: Dialogue, _: Words, flags: Flags): Promise<number> {
  const options = await readTracesOptions(flags);
  const start = await startOf(options);
  for (const warning of options.warnings) terminal.err(`callgate: WARNING: ${warning}\n`);
  const stop = new AbortController();
  const restore = terminal.onInterrupt(() => stop.abort());
  const stopped = new Promise<number>((resolve) => {
    // What was just sent is still remembered; a broker that is away holds nobody up.
    stop.signal.addEventListener("abort", () => setTimeout(resolve, LAST_WORK_MS, EXIT.ok).unref());
  });
  const told: Told = { taken: 0, dropped: 0, missed: 0n };
  const work = (caller: Caller) =>
    Promise.race([stopped, follow(terminal, caller, flags, options, start, told, stop.signal)]);
  try {
    const working = withCaller(terminal, flags, work, Number.POSITIVE_INFINITY);
    const status = await Promise.race([stopped, working]);
    terminal.err(`callgate: ${summary(told)}\n`);
    return status;
  } finally {
    restore();
  }
}

function summary({ taken, dropped, missed }: Told): string {
  const more = [
    ...(dropped > 0 ? [`${dropped} dropped`] : []),
    ...(missed > 0n ? [`${missed} audit records were gone before they were read`] : []),
  ];
  return [`${counted(taken, "span")} sent`, ...more].join(", ");
}

/** A place that was saved goes before all; `--from` says where to begin without one. */
async function startOf({ from, position }: TracesOptions): Promise<Start> {
  const saved = position === undefined ? undefined : await savedText(position);
  if (saved === undefined) return from === undefined ? { at: "end" } : { at: "record", seq: from };
  const place = readPlace(saved);
  if (place !== undefined) return { at: "place", place };
  throw new UsageFault("the file of --position holds no position: remove it to begin anew");
}

async function savedText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw new UsageFault(`--position ${visibleLine(JSON.stringify(path), 300)}: ${codeOf(error)}`);
  }
}

/** What the broker denies ends it. */
class Denied extends Error {
  readonly say: (terminal: Dialogue) => number;

  constructor(say: (terminal: Dialogue) => number) {
    super("the broker does not let this role follow the audit");
    this.say = say;
  }
}

async function follow(
  terminal: Dialogue,
  caller: Caller,
  flags: Flags,
  options: TracesOptions,
  start: Start,
  told: Told,
  stop: AbortSignal,
): Promise<number> {
  const say = (sentence: string) => terminal.err(`callgate: ${sentence}\n`);
  say(`spans go to ${visibleLine(options.url.host, 300)} (ctrl-C ends this)`);
  try {
    const ended = await followAudit(start, portsOf(caller, flags, options, say, stop), told, stop);
    if (ended.ok) return EXIT.ok;
    say(ended.fault);
    return EXIT.failed;
  } catch (error) {
    if (error instanceof Denied) return error.say(terminal);
    throw error;
  }
}

function portsOf(
  caller: Caller,
  flags: Flags,
  options: TracesOptions,
  say: (sentence: string) => void,
  stop: AbortSignal,
): FollowPorts {
  const { url, headers, resource, pollMs, position } = options;
  const sender = new Sender(
    { url, headers, origin: { resource, scope: SCOPE }, timeoutMs: REQUEST_TIMEOUT_MS, graceMs: GRACE_MS },
    { fetch, wait: pause, random: Math.random, nowMs: Date.now, say },
  );
  return {
    page: async (from) => {
      const args = { from_seq: from.toString(), limit: PAGE_LINES };
      const answer = await asked<AuditPage>(caller, flags, "callgate.audit.export", args);
      return answer === "later" ? answer : { lines: answer.lines, more: answer.next_seq !== null };
    },
    head: async () => {
      const answer = await asked<Status>(caller, flags, "callgate.status", {});
      if (answer === "later") return answer;
      if (answer.audit === undefined) throw new Denied(notOperator);
      return BigInt(answer.audit.seq);
    },
    send: (spans, until) => sender.send(spans, until),
    save: async (place) => {
      if (position === undefined) return { ok: true, value: undefined };
      const saved = await replaceFile(position, placeText(place), 0o600);
      return saved.ok
        ? saved
        : { ok: false, fault: `the file of --position can't be written: ${saved.fault}` };
    },
    pause: () => pause(pollMs, stop),
    say,
  };
}

function notOperator(terminal: Dialogue): number {
  terminal.err("callgate: the audit is for roles that are operators\n");
  return EXIT.failed;
}

/** The answer's content; `later`: the broker can't answer now, or the connection was lost on the way. */
async function asked<T>(
  caller: Caller,
  flags: Flags,
  tool: string,
  args: Readonly<Record<string, unknown>>,
): Promise<T | "later"> {
  const answer = await askAgain(caller, flags, tool, args);
  if (answer === "later" || answer === "lost") return "later";
  if ("fault" in answer) throw new Denied(answer.fault);
  return answer.value as T; // the broker's own words
}
