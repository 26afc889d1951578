// The crash matrix: a real daemon is ended with SIGKILL at every point where state is written or bytes leave,
// for every kind of outcome, and started again on what it left. The default run takes a seeded sample, CRASH_ROUNDS
// says how many rounds instead: first every point of every script once, then at random. CRASH_SEED: another sample.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cleanUp } from "../daemon/daemon.ts";
import { randomOf } from "../seeded.ts";
import { SCRIPTS, type Script } from "./scripts.ts";
import type { Call } from "./story.ts";
import { Story, survives } from "./story.ts";
import { World } from "./world.ts";

const SEED = Number(process.env["CRASH_SEED"] ?? 1);
const ROUNDS_OF_SAMPLE = 2;
const ROUNDS = Number(process.env["CRASH_ROUNDS"] ?? 0);
/** So many points a start has at most; one of seven restarts dies on the way. */
const START_POINTS = 8;
const START_DIES_ONE_IN = 7;
const ROUND_MS = 20_000;

let world: World;

/** Plays a script with an end at its `at`-th point. Returns how many points it has, where it met no end. */
async function play(
  world: World,
  script: Script,
  at: number,
  startDiesAt?: number,
): Promise<number | undefined> {
  const story = new Story(world);
  const calls: Call[] = [];
  await story.openSession();
  await script.prepare?.(story);
  await world.arm(at);
  await survives(() => script.live(story, calls));
  const passed = await world.disarm();
  if (passed === undefined) await world.restart(startDiesAt);
  await script.after(story, calls);
  await world.check();
  return passed;
}

/** The same with its names in the error. */
async function round(
  script: Script,
  at: number,
  startDiesAt: number | undefined,
): Promise<number | undefined> {
  try {
    return await play(world, script, at, startDiesAt);
  } catch (error) {
    const fatal = world.daemon.lines.filter(({ event }) => /fatal|fault/.test(event));
    await world.restart(); // for those that come after
    const where = `${script.name}, ended at point ${at}${startDiesAt === undefined ? "" : `, and its restart at ${startDiesAt}`}`;
    throw new Error(`${where} (CRASH_SEED=${SEED}): ${String(error)} ${JSON.stringify(fatal)}`, {
      cause: error,
    });
  }
}

beforeAll(async () => {
  world = await World.start();
});
afterAll(cleanUp);

const perScript = Math.ceil(ROUNDS / SCRIPTS.length);

it("a store that says that all is written and writes nothing is found out", async () => {
  const [result] = SCRIPTS;
  const lying = await World.start();
  const points = (await play(lying, result!, Number.POSITIVE_INFINITY)) ?? 0;
  lying.lies = true;
  await expect(play(lying, result!, points)).rejects.toThrow("expected 2 to be 1");
});

describe("a daemon that is killed", () => {
  it.each(SCRIPTS.map((script) => [script.name, script] as const))(
    "in the middle of %s runs nothing twice, loses nothing that was heard, and has a whole audit",
    { timeout: 60_000 + ROUND_MS * Math.max(perScript, ROUNDS_OF_SAMPLE) },
    async (_, script) => {
      const random = randomOf(SEED + SCRIPTS.indexOf(script) * 7919);
      const points = (await round(script, Number.POSITIVE_INFINITY, undefined)) ?? 0;
      expect(points).toBeGreaterThan(3);
      const rounds = ROUNDS === 0 ? ROUNDS_OF_SAMPLE : perScript;
      for (let i = 0; i < rounds; i += 1) {
        const whole = ROUNDS > 0 && i < points;
        const startDiesAt = random(START_DIES_ONE_IN) === 0 ? random(START_POINTS) + 1 : undefined;
        await round(script, whole ? i + 1 : random(points) + 1, startDiesAt);
      }
    },
  );
});
