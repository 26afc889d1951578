// Callers, a provider, an approver, reloads, lost connections, passing time and crashes at random, beside a
// model that predicts every answer.

import { describe, expect, it } from "vitest";
import { World } from "./world.ts";

const STEPS = 400;
const SEEDS = Number(process.env["SIMULATION_SEEDS"] ?? 12);

async function run(seed: number): Promise<World> {
  const world = await World.of(seed);
  for (let i = 0; i < STEPS; i += 1) await world.step();
  await world.end();
  return world;
}

describe("a simulated life of the broker", () => {
  it.each(Array.from({ length: SEEDS }, (_, seed) => seed))(
    "gives every answer that the model predicts, through crashes and reloads (seed %i)",
    async (seed) => {
      const { counts } = await run(seed * 104_729 + 7);
      for (const kind of ["ask", "answer", "approve", "refuse", "crash", "reload", "pass", "heard"])
        expect(counts[kind], kind).toBeGreaterThan(0);
    },
  );

  it("gives the same journal for the same seed, down to the last audit record", async () => {
    const first = await run(42);
    const second = await run(42);
    expect(second.journal).toEqual(first.journal);
  });
});
