// The process that outlives us by a moment: a small shell that waits for the end of a pipe, which comes however we end,
// and then ends every process of the server's that there is. A server is known by its process group and by a variable in
// the environment of whatever it started, also of what has made itself a daemon.
// What can't be done here, without another user or a control group: a process that has emptied its environment and left the
// group is not found, and a server may kill its keeper (which ends the server, but not what it hid).

import { type ChildProcess, spawn } from "node:child_process";
import { SYSTEM_PATH, systemProgram } from "./system_programs.ts";

/** In the environment of every process of a server's. */
export const MARK_NAME = "CALLGATE_MCP_SERVER";

/**
 * Reads the mark, then groups as they come, until the pipe ends. `orderly` says that we are there still, so no process
 * of ours can be between fork and exec, where it has no mark yet; otherwise it looks once more. Says how many it ended.
 */
const SCRIPT = `
trap '' HUP INT TERM
IFS= read -r mark || exit 0
group= orderly= count=0
while IFS= read -r line; do
  case $line in orderly) orderly=1 ;; *) group=$line ;; esac
done
look() { grep -lszxF -e "${MARK_NAME}=$mark" /proc/[0-9]*/environ 2>/dev/null; }
round=0
while [ $round -lt 200 ]; do
  round=$((round + 1))
  found=$(look)
  if [ -z "$found" ]; then
    [ -n "$group" ] && kill -KILL "-$group" 2>/dev/null
    group=
    [ -n "$orderly" ] && break
    orderly=1
    sleep 1
    continue
  fi
  for file in $found; do
    pid=\${file#/proc/}
    kill -KILL "\${pid%/environ}" 2>/dev/null && count=$((count + 1))
  done
done
echo "$count"
`;

/** Why none can be had here, for the owner: an image of a container may have no shell. */
export function keeperFault(): string | undefined {
  const missing = ["sh", "grep"].find((name) => systemProgram(name) === undefined);
  return missing === undefined
    ? undefined
    : `there is no ${missing} here, without which nobody would end what it leaves`;
}

/** A process that hangs in the kernel can make looking at it hang. */
const PATIENCE_MS = 15_000;

export class Keeper {
  readonly #shell: ChildProcess;
  readonly #ended: Promise<number | undefined>;
  #expected = false;

  /** `onLost`: it is gone, and we did not end it. */
  constructor(mark: string, onLost: () => void) {
    // In a session of its own: whoever interrupts us does not interrupt it.
    this.#shell = spawn(systemProgram("sh") ?? "sh", ["-c", SCRIPT], {
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
      env: { PATH: SYSTEM_PATH.join(":") },
      cwd: "/",
    });
    let said = "";
    this.#shell.stdout?.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString("latin1")).slice(0, 32);
    });
    this.#shell.stdin?.on("error", () => undefined);
    this.#ended = new Promise((resolve) => {
      const over = () => {
        resolve(/^[0-9]+\n$/.test(said) ? Number(said) : undefined);
        if (!this.#expected) onLost();
      };
      this.#shell.once("error", over);
      this.#shell.once("close", over);
    });
    this.#shell.stdin?.write(`${mark}\n`);
  }

  get pid(): number | undefined {
    return this.#shell.pid;
  }

  /** The server's process group. */
  watch(group: number): void {
    this.#shell.stdin?.write(`${group}\n`);
  }

  /**
   * Ends what is left of the server, and itself. How many processes it ended; undefined where it can't say.
   * `groupIsEmpty`: its number may be another's by now.
   */
  async finish(groupIsEmpty: boolean): Promise<number | undefined> {
    this.#expected = true;
    this.#shell.stdin?.end(groupIsEmpty ? "\norderly\n" : "orderly\n");
    let callOff = () => {};
    const late = new Promise<undefined>((resolve) => {
      const timer = setTimeout(resolve, PATIENCE_MS, undefined);
      callOff = () => clearTimeout(timer);
    });
    const ended = await Promise.race([this.#ended, late]);
    callOff();
    return ended;
  }
}
