// Callers that ask all the time in a guest, whatever happens to the broker, and what came of it.

import { expect } from "vitest";
import type { Guest } from "./guest.ts";
import { TALLY } from "./house.ts";

export interface Told {
  readonly asked: number;
  readonly answered: number;
  readonly crossed: number;
  readonly failed: Readonly<Record<string, number>>;
}

/** Starts them; what came of it is told when they are ended. */
export async function load(guest: Guest, workers: number): Promise<() => Promise<Told>> {
  const words = `load_caller.ts /run/callgate/agent.sock tally ${workers}`;
  const out = `/tmp/told-${workers}`;
  const line = `runuser -u callgate-agent -- ${guest.program(words)} > ${out} 2>&1 & echo $!`;
  const group = `setsid bash -c '${line.replaceAll("'", "'\\''")}; wait'`;
  await guest.must(`(${group} > /tmp/load-pid 2>&1 &)`);
  await guest.until(`wc -l < ${TALLY}/ran`, (lines) => Number(lines) > 20);
  return async () => {
    await guest.must("pkill -TERM -u callgate-agent node || true");
    const text = await guest.until(`cat ${out}`, (told) => told.includes('"asked"'));
    return JSON.parse(text.trim().split("\n").at(-1) ?? "") as Told;
  };
}

/** Every text that the tally has run. */
export async function ran(guest: Guest): Promise<readonly string[]> {
  return (await guest.must(`cat ${TALLY}/ran || true`)).split("\n").filter(Boolean);
}

/** Each call was answered with its own text, and ran once. */
export async function expectOnceEach(
  guest: Guest,
  { asked, answered, crossed, failed }: Told,
): Promise<void> {
  expect({ answered, crossed, failed }).toEqual({ answered: asked, crossed: 0, failed: {} });
  const lines = await ran(guest);
  expect(new Set(lines).size).toBe(lines.length);
  expect(lines.length).toBeGreaterThanOrEqual(asked);
}
