// A machine with a real systemd for tests: booted beside this one by with-systemd.sh, with the compiled command installed
// where a package would be, and a shell of root in it. One boot a test file; nothing of it is left.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { inject } from "vitest";

const REPOSITORY = resolve(import.meta.dirname, "../..");
const PACKAGE = "/usr/lib/node_modules/callgate";
/** Where the guest sees this checkout. */
const SEEN = "/usr/lib/callgate-checkout";
const NEW_NODE = "/usr/local/lib/callgate-node";
/** The guest has its own of these. */
const HIDDEN = /^\/(?:tmp|run|dev)\//;

export interface Done {
  readonly status: number;
  /** Standard output and error together. */
  readonly out: string;
}

export class Guest {
  /** The interpreter, as the guest has it. */
  readonly node: string;
  readonly #child: ChildProcess;
  readonly #made: string;
  #text = "";
  #wake: () => void = () => undefined;
  #over = false;
  #turn: Promise<unknown> = Promise.resolve();

  /** `files`: put there before it boots, by their absolute paths. */
  static async boot(files: Readonly<Record<string, string>>): Promise<Guest> {
    const guest = new Guest(files);
    const { out } = await guest.run("systemctl is-system-running");
    if (!/running|degraded/.test(out)) throw new Error(`the guest did not boot: ${out}`);
    return guest;
  }

  private constructor(files: Readonly<Record<string, string>>) {
    const compiled = inject("compiled");
    if ("fault" in compiled) throw new Error(`the source does not compile: ${compiled.fault}`);
    chmodSync(compiled.directory, 0o755); // as a package is: every role's user reads it
    this.#made = mkdtempSync(join(tmpdir(), "callgate-guest-"));
    mkdirSync(join(this.#made, "units"));
    for (const [path, text] of Object.entries(files)) write(join(this.#made, "copy", path), text);
    mkdirSync(join(this.#made, "copy"), { recursive: true });
    const isHidden = HIDDEN.test(process.execPath);
    this.node = isHidden ? `${NEW_NODE}/node` : process.execPath;
    const words = [
      ...["--timeout", "400", "--copy", join(this.#made, "copy"), "--hide", "/var/lib/callgate"],
      ...["--bind-ro", `${compiled.directory}:${PACKAGE}/dist`],
      ...["--bind-ro", `${join(REPOSITORY, "node_modules")}:${PACKAGE}/node_modules`],
      ...["--bind-ro", `${REPOSITORY}:${SEEN}`],
      ...(isHidden ? ["--bind-ro", `${process.execPath}:${this.node}`] : []),
      ...["-q", join(this.#made, "units"), "--", "bash"],
    ];
    this.#child = spawn("bash", [join(import.meta.dirname, "with-systemd.sh"), ...words], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => this.#take(chunk));
    }
    this.#child.stdin?.on("error", () => undefined);
    this.#child.once("close", () => this.#end());
  }

  /** Runs a line of shell as root, one after the other. */
  run(line: string): Promise<Done> {
    const done = this.#turn.then(() => this.#run(line));
    this.#turn = done.catch(() => undefined);
    return done;
  }

  /** The same; what it prints, where it has to succeed. */
  async must(line: string): Promise<string> {
    const { status, out } = await this.run(line);
    if (status !== 0) {
      const journal = await this.run("journalctl -n 40 -o cat");
      throw new Error(`exit status ${status} of ${line}\n${out}\nthe journal:\n${journal.out}`);
    }
    return out;
  }

  /** A program of test/systemd, as a line of shell. */
  program(file: string): string {
    return `${this.node} --import ${SEEN}/node_modules/tsx/dist/loader.mjs ${SEEN}/test/systemd/${file}`;
  }

  /** The command, as a line of shell. */
  get callgate(): string {
    return `${this.node} ${PACKAGE}/dist/bin/callgate.js`;
  }

  /** Runs the line until what it prints fits; it is asked again and again, as events of another machine can't be heard. */
  async until(line: string, fits: (out: string) => boolean): Promise<string> {
    for (let asked = 0; asked < 600; asked += 1) {
      const { out } = await this.run(line);
      if (fits(out)) return out;
      await this.run("sleep 0.1");
    }
    throw new Error(`never came: ${line}\n${(await this.run(line)).out}`);
  }

  async stop(): Promise<void> {
    this.#child.stdin?.end("exit 0\n");
    if (!this.#over) await once(this.#child, "close");
    rmSync(this.#made, { recursive: true, force: true });
  }

  async #run(line: string): Promise<Done> {
    const mark = `end-${randomBytes(8).toString("hex")}`;
    this.#text = "";
    this.#child.stdin?.write(`{ ${line}\n} 2>&1 </dev/null; printf '\\n${mark} %s\\n' $?\n`);
    const end = new RegExp(`\\n${mark} ([0-9]+)\\n`);
    for (let found = end.exec(this.#text); ; found = end.exec(this.#text)) {
      if (found !== null) return { status: Number(found[1]), out: this.#text.slice(0, found.index) };
      if (this.#over) throw new Error(`the guest ended: ${this.#text}`);
      await new Promise<void>((wake) => {
        this.#wake = wake;
      });
    }
  }

  #take(chunk: string): void {
    this.#text += chunk;
    this.#wake();
  }

  #end(): void {
    this.#over = true;
    this.#wake();
  }
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o644 });
}
