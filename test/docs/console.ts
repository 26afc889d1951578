// Runs the console blocks of a document in one shell, line by line as a reader would, and holds what is
// printed against what the document says. `…` stands for any text; a line of `…` alone for any lines.

import { spawn } from "node:child_process";
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Step {
  readonly command: string;
  readonly expected: readonly string[];
}

/** Fenced blocks of one language, in order. */
export function blocks(markdown: string, language: string): string[] {
  return [...markdown.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
    (match) => match[1] ?? "",
  );
}

export function steps(block: string): Step[] {
  const found: { command: string; expected: string[] }[] = [];
  for (const line of block.trimEnd().split("\n")) {
    if (line.startsWith("$ ")) found.push({ command: line.slice(2), expected: [] });
    else found.at(-1)?.expected.push(line);
  }
  return found;
}

/** Whether the lines printed are those that the document shows. */
export function matches(printed: readonly string[], expected: readonly string[]): boolean {
  const [first, ...rest] = expected;
  if (first === undefined) return printed.length === 0;
  if (first === "…") return printed.some((_, i) => matches(printed.slice(i), rest)) || matches([], rest);
  const [line, ...others] = printed;
  if (line === undefined) return false;
  const pattern = first.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${pattern.join(".*")}$`, "u").test(line) && matches(others, rest);
}

const END = "__END_OF_STEP__";
/** A step that takes longer hangs; what it has printed by then says why. */
const STEP_MS = 150_000;

/** A shell in a directory of its own that has the project's examples and packages, and the `callgate` command. */
export class Shell {
  readonly #process;
  #printed = "";
  #waiting: (() => void) | undefined;
  #fault: string | undefined;

  private constructor(directory: string) {
    this.#process = spawn("bash", ["--noprofile", "--norc"], {
      cwd: directory,
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream.on("data", (chunk) => {
        this.#printed += String(chunk);
        this.#waiting?.();
      });
    }
    this.#process.on("exit", () => this.#waiting?.());
    this.#process.stdin.write(
      `exec 2>&1; umask 022; chmod -R go-w examples; callgate() { ${JSON.stringify(process.execPath)} --import ${JSON.stringify(join(ROOT, "node_modules/tsx/dist/loader.mjs"))} ${JSON.stringify(join(ROOT, "bin/callgate.ts"))} "$@"; }\n`,
    );
  }

  static async open(): Promise<{ shell: Shell; close: () => Promise<void> }> {
    const directory = await mkdtemp(join(tmpdir(), "callgate-docs-"));
    await cp(join(ROOT, "examples"), join(directory, "examples"), {
      recursive: true,
      filter: (source) => !source.includes("/examples/run"),
    });
    await symlink(join(ROOT, "node_modules"), join(directory, "node_modules"));
    const shell = new Shell(directory);
    return {
      shell,
      close: async () => {
        shell.#kill();
        await rm(directory, { recursive: true, force: true });
      },
    };
  }

  /** Runs one command; what it printed, once it has ended or, in the background, once the expected lines are there. */
  async run({ command, expected }: Step): Promise<readonly string[]> {
    this.#printed = "";
    const hangs = setTimeout(() => {
      this.#fault = `it hangs: ${command}\nso far it has printed:\n${this.#printed}`;
      this.#waiting?.();
    }, STEP_MS);
    try {
      return await this.#run(command, expected);
    } finally {
      clearTimeout(hangs);
    }
  }

  async #run(command: string, expected: readonly string[]): Promise<readonly string[]> {
    if (command.endsWith("&")) {
      this.#process.stdin.write(`${command}\n`);
      await this.#until(() => matches(lines(this.#printed), expected));
      return lines(this.#printed);
    }
    this.#process.stdin.write(`${command}\nprintf '\\n${END}\\n'\n`);
    await this.#until(() => this.#printed.includes(`\n${END}\n`));
    return lines(this.#printed.slice(0, this.#printed.indexOf(`\n${END}\n`)));
  }

  async #until(done: () => boolean): Promise<void> {
    while (!done()) {
      if (this.#fault !== undefined) throw new Error(this.#fault);
      if (this.#process.exitCode !== null)
        throw new Error(`the shell ended after printing: ${this.#printed}`);
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
  }

  /** The shell is its own process group, with everything that it started. */
  #kill(): void {
    const { pid } = this.#process;
    if (pid !== undefined && this.#process.exitCode === null) process.kill(-pid, "SIGKILL");
  }
}

function lines(text: string): readonly string[] {
  const trimmed = text.replace(/\n+$/, "");
  return trimmed === "" ? [] : trimmed.split("\n");
}
