// Runs spin on a model: verifier generated, compiled, and searched to the end or to the first error.

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const OUTPUT_BYTES_MAX = 16_777_216;
const MEMORY_MB = 4096;

/** Numbers that the model is compiled with. */
export type Bounds = Readonly<Record<string, number>>;

export interface Searched {
  /** The first assertion that does not hold, as the model words it, or what else spin has found. */
  readonly violated: string | undefined;
  /** false: memory or depth did not suffice, so nothing is proved. */
  readonly complete: boolean;
  readonly states: number;
  /** Lines of the model with a statement that was never executed. */
  readonly unreached: ReadonlySet<number>;
}

/**
 * Searches all states, or up to the first error. `thorough`: takes longer to compile, and searches faster.
 * @throws with a sentence where spin or the compiler is missing: a model that was not run proves nothing
 */
export async function search(model: string, bounds: Bounds, thorough: boolean): Promise<Searched> {
  const directory = await mkdtemp(join(tmpdir(), "callgate-model-"));
  const defines = Object.entries(bounds).map(([name, value]) => `-D${name}=${value}`);
  try {
    await writeFile(join(directory, "model.pml"), model);
    await command("spin", ["-a", ...defines, "model.pml"], directory);
    const flags = ["-w", thorough ? "-O1" : "-O0", "-DSAFETY", `-DMEMLIM=${MEMORY_MB}`];
    await command("gcc", [...flags, "-o", "pan", "pan.c"], directory);
    const outcome = read(await command(join(directory, "pan"), ["-m100000"], directory));
    if (outcome.violated === undefined) return outcome;
    const trail = await command("spin", ["-t", ...defines, "model.pml"], directory);
    return { ...outcome, violated: assertion(model, trail) ?? outcome.violated };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function command(name: string, args: readonly string[], cwd: string): Promise<string> {
  try {
    return (await run(name, args, { cwd, maxBuffer: OUTPUT_BYTES_MAX })).stdout;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new Error(`${name} is not installed: apt-get install -y spin gcc libc6-dev`);
  }
}

/** The line of the assertion that a replay of the error ends at. */
function assertion(model: string, trail: string): string | undefined {
  const number = /model\.pml:(\d+), Error: assertion violated/.exec(trail)?.[1];
  return number === undefined ? undefined : model.split("\n")[Number(number) - 1]?.trim();
}

function read(output: string): Searched {
  const violated = /^pan:\d+: (.*?)(?: \(at depth \d+\))?$/m.exec(output)?.[1];
  const states = Number(/(\d+) states, stored/.exec(output)?.[1]);
  if (!Number.isSafeInteger(states)) throw new Error(`spin has told nothing:\n${output}`);
  const limited = /max search depth too small|Search not completed|reached -DMEMLIM/.test(output);
  const unreached = [...output.matchAll(/^\tmodel\.pml:(\d+), state \d+, "(?!-end-")/gm)];
  return {
    violated,
    complete: violated === undefined && !limited,
    states,
    unreached: new Set(unreached.map(([, line]) => Number(line))),
  };
}

export function readModel(name: string): Promise<string> {
  return readFile(join(import.meta.dirname, name), "utf8");
}
