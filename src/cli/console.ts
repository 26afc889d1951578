// `callgate console`: runs the console until ctrl-C, prints links, and says what goes wrong. A link goes to standard
// output and nowhere else.

import { readFileSync } from "node:fs";
import { localTime } from "../base/time_text.ts";
import { type RunningConsole, startConsole } from "../roles/console/console.ts";
import { addressOf, UsageFault } from "./call.ts";
import { type Flags, textOf, type Words } from "./command_row.ts";
import { type Dialogue, EXIT, jsonLine } from "./terminal.ts";

/** Not SIGUSR1, by which Node opens its debugger: one that comes before we listen would. */
const NEW_LINK = "SIGUSR2";

export async function runConsole(terminal: Dialogue, _: Words, flags: Flags): Promise<number> {
  const user = textOf(flags, "user");
  const started = await startConsole({
    to: addressOf(flags),
    session: flags.session,
    address: flags["address"] === "::1" ? "::1" : "127.0.0.1",
    port: typeof flags["port"] === "number" ? flags["port"] : 0,
    uid: user === undefined ? undefined : uidOf(user),
    metricsTokenFile: textOf(flags, "metricsTokenFile"),
    say: (sentence) => terminal.err(`callgate: ${sentence}\n`),
  });
  if (!started.ok) {
    terminal.err(`callgate: ${started.fault}\n`);
    return EXIT.failed;
  }
  return untilEnded(terminal, flags, started.value);
}

async function untilEnded(terminal: Dialogue, flags: Flags, running: RunningConsole): Promise<number> {
  const isThere = terminal.canAsk && isInForeground();
  const print = () => printLink(terminal, flags, running, isThere);
  process.on(NEW_LINK, print);
  let restore = (): void => undefined;
  const interrupted = new Promise<undefined>((resolve) => {
    restore = terminal.onInterrupt(() => resolve(undefined));
  });
  try {
    print();
    const typing = isThere ? [entered(terminal, print)] : [];
    const why = await Promise.race([interrupted, running.ended, ...typing]);
    if (why === undefined) return EXIT.ok;
    terminal.err(`callgate: ${why}\n`);
    return EXIT.connection;
  } finally {
    restore();
    process.off(NEW_LINK, print);
    if (isThere) process.stdin.pause(); // a line that is still awaited would keep us
    await running.close();
  }
}

/** `isThere`: a person, who can press Enter. */
function printLink(terminal: Dialogue, flags: Flags, running: RunningConsole, isThere: boolean): void {
  const { url, expiresAtMs } = running.newLink();
  if (flags.json === true) {
    terminal.out(jsonLine(JSON.stringify({ url, expires_at_ms: expiresAtMs })));
    return;
  }
  terminal.out(`${url}\n`);
  const another = isThere ? "Enter" : `${NEW_LINK} to process ${process.pid}`;
  terminal.err(
    `The link logs in once, until ${localTime(expiresAtMs)}: open it in your browser.\n${another} prints another; ctrl-C ends the console.\n`,
  );
}

/** Resolves when the person ends the input: by ctrl-C, which comes as that while a line is awaited, or ctrl-D. */
async function entered(terminal: Dialogue, print: () => void): Promise<undefined> {
  while ((await terminal.ask("")) !== undefined) print();
  return undefined;
}

/** A job in the background that reads from its terminal is stopped by the kernel. */
function isInForeground(): boolean {
  try {
    const [, , group, , , foreground] =
      readFileSync("/proc/self/stat", "latin1").split(") ").at(-1)?.split(" ") ?? [];
    return group === foreground;
  } catch {
    return false;
  }
}

/** @throws UsageFault where this machine's own list has no such user */
function uidOf(user: string): number {
  if (/^[0-9]{1,10}$/.test(user)) return Number(user);
  for (const line of passwd().split("\n")) {
    const [name, , uid] = line.split(":");
    if (name === user && uid !== undefined && /^[0-9]{1,10}$/.test(uid)) return Number(uid);
  }
  throw new UsageFault(
    "--user: this machine's list of users (/etc/passwd) has no such name; give the uid instead",
  );
}

function passwd(): string {
  try {
    return readFileSync("/etc/passwd", "utf8");
  } catch {
    return "";
  }
}
