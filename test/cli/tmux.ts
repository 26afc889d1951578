// A real terminal for tests: a tmux server of its own with one window, what is typed into it and what stands on its
// screen. Waits for what the terminal prints, by tmux's control mode.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { onCleanUp } from "../daemon/daemon.ts";

const run = promisify(execFile);

export interface WindowOptions {
  readonly columns: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** The program in it, with its arguments. */
  readonly shell: readonly string[];
}

export class Window {
  readonly #socket: string;
  readonly #control: ChildProcess;
  #waiting: (() => void)[] = [];

  private constructor(socket: string) {
    this.#socket = socket;
    this.#control = spawn("tmux", ["-S", socket, "-C", "attach"], { stdio: ["pipe", "pipe", "ignore"] });
    if (this.#control.stdout === null) throw new Error("tmux has no output");
    createInterface({ input: this.#control.stdout }).on("line", () => this.#wake());
    this.#control.on("exit", () => this.#wake());
  }

  static async open({ columns, rows = 40, env = {}, shell }: WindowOptions): Promise<Window> {
    const directory = mkdtempSync(join(tmpdir(), "callgate-tmux-"));
    const socket = join(directory, "tmux");
    const size = ["-x", String(columns), "-y", String(rows)];
    await run("tmux", ["-S", socket, "-f", "/dev/null", "new-session", "-d", ...size, ...shell], {
      env: { ...process.env, TERM: "xterm-256color", ...env, TMUX: "", TMUX_TMPDIR: directory },
    });
    await run("tmux", ["-S", socket, "set", "-g", "window-size", "manual"]);
    const window = new Window(socket);
    onCleanUp(async () => {
      await window.#close();
      rmSync(directory, { recursive: true, force: true });
    });
    return window;
  }

  /** Types text as it stands. */
  async type(text: string): Promise<void> {
    await run("tmux", ["-S", this.#socket, "send-keys", "-l", text]);
  }

  /** Presses keys by tmux's names: `Enter`, `Tab`, `C-c`. */
  async press(...keys: readonly string[]): Promise<void> {
    await run("tmux", ["-S", this.#socket, "send-keys", ...keys]);
  }

  async line(text: string): Promise<void> {
    await this.type(text);
    await this.press("Enter");
  }

  async resize(columns: number): Promise<void> {
    await run("tmux", ["-S", this.#socket, "resize-window", "-x", String(columns)]);
  }

  /** The screen's lines. `colours`: with the escape sequences of their colours. */
  async screen(colours = false): Promise<string> {
    const flags = colours ? ["-e"] : [];
    const { stdout } = await run("tmux", ["-S", this.#socket, "capture-pane", "-p", ...flags]);
    return stdout.trimEnd();
  }

  /** Resolves with the screen when it is as wanted. */
  async shows(wanted: (screen: string) => boolean): Promise<string> {
    for (;;) {
      const printed = new Promise<void>((resolve) => this.#waiting.push(resolve)); // before the look, so that nothing is missed
      const screen = await this.screen();
      if (wanted(screen)) return screen;
      if (this.#control.exitCode !== null) throw new Error(`the terminal is gone; it showed:\n${screen}`);
      await printed;
    }
  }

  async #close(): Promise<void> {
    const gone = once(this.#control, "exit");
    await run("tmux", ["-S", this.#socket, "kill-server"]);
    await gone;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
