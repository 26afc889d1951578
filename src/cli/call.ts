// `callgate call`: any caller, from a shell. Each message is printed as it comes.

import { readFileSync } from "node:fs";
import { visibleLine } from "../base/display.ts";
import { isSessionId, U64_MAX } from "../base/ids.ts";
import type { Address } from "../client/address.ts";
import type { Call } from "../client/call.ts";
import { type Caller, connect } from "../client/caller.ts";
import type { ConnectionState } from "../client/endpoint.ts";
import { CallgateError } from "../client/error.ts";
import type { ToolResponse } from "../wire/message.ts";
import { type Dialogue, EXIT, exitOf, messageJson, showMessage, type Terminal } from "./terminal.ts";

/** How to come to the broker. */
export interface Way {
  readonly socket?: string;
  readonly fd?: string;
}

export interface Reach extends Way {
  readonly session: string;
  readonly json?: boolean;
}

export interface CallFlags extends Reach {
  readonly call?: string | undefined;
}

/** Long enough for a broker that restarts, short enough for a person who waits. */
const GIVE_UP_AFTER_MS = 3000;

const HINT_LOST =
  "  May this user connect as this role, and is the role frozen or at a limit? The broker's log says.\n";

/** Wrong use of a command: exit status 2. */
export class UsageFault extends Error {}

export async function callTool(
  terminal: Dialogue,
  tool: string,
  args: string | undefined,
  flags: CallFlags,
): Promise<number> {
  const text = argumentsText(args);
  const call = flags.call === undefined ? undefined : callId(flags.call);
  return withCaller(terminal, flags, async (caller) => {
    const asked = caller.call(tool, text, {
      session: flags.session,
      ...(call === undefined ? {} : { call }),
    });
    if (flags.json !== true) terminal.err(`[session ${asked.session}, call ${asked.call}]\n`);
    const leaving = leave(terminal, comeBack(tool, text, asked));
    try {
      return await Promise.race([leaving.left, follow(terminal, caller, asked, flags)]);
    } finally {
      leaving.stay();
    }
  });
}

async function follow(terminal: Terminal, caller: Caller, asked: Call, flags: CallFlags): Promise<number> {
  let last: ToolResponse | undefined;
  for await (const message of asked) {
    last = message;
    if (flags.json === true) terminal.out(messageJson(message));
    else showMessage(terminal, message);
  }
  if (last === undefined) return EXIT.connection;
  if (last.status === "denied" && flags.json !== true) {
    await showWhy(terminal, caller, asked.session, asked.call, last.reason.startsWith("approval_"));
  }
  return exitOf(last);
}

/** Ctrl-C ends the waiting, not the call: it says how to come back to it. */
function leave(terminal: Dialogue, hint: string): { readonly left: Promise<number>; stay(): void } {
  let stay = (): void => undefined;
  const left = new Promise<number>((resolve) => {
    stay = terminal.onInterrupt(() => {
      terminal.err(hint);
      resolve(EXIT.interrupted);
    });
  });
  return { left, stay };
}

/** Arguments above it are not written out again. */
const HINT_CHARS_MAX = 500;

function comeBack(tool: string, args: string, { session, call }: Call): string {
  const whole = visibleLine(args, HINT_CHARS_MAX) === args; // other bytes would be another call
  const again = whole ? quotedForShell(args) : "THE_SAME_ARGUMENTS";
  const command = `callgate call ${quotedForShell(tool)} ${again} --session ${session} --call ${call}`;
  return `\ncallgate: the call itself goes on. To wait for its answer again, with the same socket:\n  ${visibleLine(command, 1000)}\n`;
}

/** One word of a command that a person may paste: it may come out of somebody else's file. */
export function quotedForShell(text: string): string {
  return /^[A-Za-z0-9_.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * Connects, does the work and closes; what goes wrong with the connection is said, with exit status 1.
 * `giveUpAfterMs`: how long a lost connection is tried again. `onConnection`: told when it goes and comes.
 */
export async function withCaller(
  terminal: Terminal,
  reach: Reach,
  work: (caller: Caller) => Promise<number>,
  giveUpAfterMs: number = GIVE_UP_AFTER_MS,
  onConnection?: (state: ConnectionState) => void,
): Promise<number> {
  if (!isSessionId(reach.session)) {
    throw new UsageFault(
      "--session must be 1 to 128 of A-Z a-z 0-9 . _ : @ / -, beginning with a letter or digit",
    );
  }
  let caller: Caller | undefined;
  try {
    caller = await connect({ to: addressOf(reach), reconnect: { giveUpAfterMs }, onConnection });
    return await work(caller);
  } catch (error) {
    if (!(error instanceof CallgateError)) throw error;
    terminal.err(
      `callgate: ${error.message}\n${error.code === "lost" ? HINT_LOST : hintNone(error.message, reach)}`,
    );
    return error.code === "bad_call" || error.code === "too_large" ? EXIT.usage : EXIT.connection;
  } finally {
    await caller?.close();
  }
}

/** Behind the sentence of a first connection that failed. */
export function hintNone(sentence: string, reach: Way): string {
  const to = sentence.startsWith("unreachable:") ? addressOf(reach) : undefined;
  if (to === undefined || !("path" in to)) return "";
  return `  Does the broker run, and is ${visibleLine(JSON.stringify(to.path), 300)} its socket?\n`;
}

/** @throws UsageFault where no way is given, or one that can be none */
export function addressOf({ socket, fd }: Way): Address {
  if (fd !== undefined) {
    const number = Number(fd);
    if (!Number.isInteger(number) || number < 0)
      throw new UsageFault("--fd must be the number of an inherited descriptor");
    return { fd: number };
  }
  const path = socket ?? process.env["CALLGATE_SOCKET"];
  if (path === undefined || path === "")
    throw new UsageFault("say which socket: --socket PATH, or CALLGATE_SOCKET in the environment");
  return { path };
}

/**
 * The arguments' text: given, read from standard input with `-`, or none.
 *
 * @throws UsageFault where it is no JSON object
 */
export function argumentsText(given: string | undefined): string {
  const text = given === "-" ? standardInput() : (given ?? "{}");
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return text.trim();
  } catch {
    // said below
  }
  throw new UsageFault(`the arguments must be one JSON object, like '{"path":"/etc/hosts"}'`);
}

function standardInput(): string {
  try {
    return readFileSync(0, "utf8");
  } catch {
    throw new UsageFault("standard input can't be read");
  }
}

/** @throws UsageFault */
export function callId(text: string): bigint {
  if (/^[0-9]{1,20}$/.test(text) && BigInt(text) <= U64_MAX) return BigInt(text);
  throw new UsageFault("a call's id must be an integer from 0 to 18446744073709551615");
}

/** Asks why, where the role may: the grant and its owner's words. What a person decided may have no more to it. */
async function showWhy(
  terminal: Terminal,
  caller: Caller,
  session: string,
  call: bigint,
  byPerson: boolean,
): Promise<void> {
  const why = await caller.call("callgate.calls.why", { session, call: call.toString() }, { session }).final;
  if (why.status !== "result") {
    const mayNot = why.status === "denied" && why.reason === "no_grant";
    const untold = mayNot ? "this role may not ask (grant it callgate.calls.why)" : "can't be asked now";
    if (!byPerson) terminal.err(`  why: ${untold}\n`);
    return;
  }
  terminal.err(whyLines(why.content));
}

interface Why {
  readonly row: string;
  readonly grant: string | null;
  readonly reason: string | null;
  readonly taint: { readonly class: string; readonly untrusted: boolean };
}

function whyLines(content: string): string {
  const { row, grant, reason, taint } = JSON.parse(content) as Why; // the broker's own words
  const by = grant === null ? "no grant" : `grant ${visibleLine(grant)}`;
  const because = reason === null ? "" : `  reason: ${visibleLine(reason, 2000)}\n`;
  const trust = taint.untrusted ? "untrusted" : "trusted";
  return `  decided by: ${by} (row ${visibleLine(row)})\n${because}  the session's taint then: ${visibleLine(taint.class)}, ${trust}\n`;
}
