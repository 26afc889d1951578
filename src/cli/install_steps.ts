// What is left to do after files are written: commands, told to a person or run one after the other.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { shellWord } from "../base/shell_word.ts";
import type { Terminal } from "./terminal.ts";

export interface Step {
  readonly why: string;
  readonly words: readonly string[];
  /** Told, and not run: it changes what is not callgate's. */
  readonly byHand?: boolean;
}

/** Resolves with the exit status; what the command says goes to standard error. */
export type RunStep = (words: readonly string[]) => Promise<number>;

export function stepsText(steps: readonly Step[]): string {
  let before = "";
  const lines = steps.map(({ why, words }) => {
    const head = why === before ? "" : `${why}\n`;
    before = why;
    return `${head}  ${words.map(shellWord).join(" ")}\n`;
  });
  return `As root:\n${lines.join("")}`;
}

/** Whether all went well; the first that did not is the last that is run. */
export async function runSteps(terminal: Terminal, steps: readonly Step[], run: RunStep): Promise<boolean> {
  const byHand = steps.filter((step) => step.byHand === true);
  for (const { words } of steps.filter((step) => step.byHand !== true)) {
    const line = words.map(shellWord).join(" ");
    const status = await run(words);
    if (status !== 0) {
      terminal.err(`callgate: this failed (exit status ${status}): ${line}\n`);
      return false;
    }
    terminal.out(`done: ${line}\n`);
  }
  if (byHand.length > 0) terminal.out(stepsText(byHand));
  return true;
}

export async function runCommand([program = "", ...words]: readonly string[]): Promise<number> {
  const child = spawn(program, words, { stdio: ["ignore", "inherit", "inherit"] });
  try {
    const [status] = (await once(child, "close")) as [number | null];
    return status ?? 1;
  } catch {
    return 127; // there is no such program
  }
}
