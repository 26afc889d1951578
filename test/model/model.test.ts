// The model of a call's life, searched to the end; the mutations that prove that the search can fail; and
// the code's own tables held against the model's, both ways.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FIRST_STAGES, TRANSITIONS } from "../../src/broker/stages.ts";
import { describeWith } from "../needs.ts";
import { MUTATIONS, mutate } from "./mutations.ts";
import { type Bounds, readModel, search } from "./spin.ts";

const model = await readModel("call_life.pml");

/** Together they reach everything. */
const BOUNDS: Readonly<Record<string, Bounds>> = {
  "one call, asked three times, with two crashes, two failed commits and a reload": {
    ASKS: 3,
    EQUAL_ASKS: 0,
    CRASHES: 2,
    FAILURES: 2,
    RELOADS: 1,
  },
  "two equal calls and a crash": { ASKS: 1, EQUAL_ASKS: 1, CRASHES: 1, FAILURES: 0, RELOADS: 0 },
  "two equal calls and a failed commit": { ASKS: 1, EQUAL_ASKS: 1, CRASHES: 0, FAILURES: 1, RELOADS: 0 },
  "two equal calls and a reload": { ASKS: 1, EQUAL_ASKS: 1, CRASHES: 0, FAILURES: 0, RELOADS: 1 },
};

/** Minutes. */
const FULL_BOUNDS: Readonly<Record<string, Bounds>> = {
  "two equal calls, a crash, a failed commit and a reload": {
    ASKS: 1,
    EQUAL_ASKS: 1,
    CRASHES: 1,
    FAILURES: 1,
    RELOADS: 1,
  },
  "two equal calls, the first asked twice, and a crash": {
    ASKS: 2,
    EQUAL_ASKS: 1,
    CRASHES: 1,
    FAILURES: 0,
    RELOADS: 0,
  },
};
const SEARCH_MS = process.env["CI_FULL"] === "1" ? 1_200_000 : 240_000;
const searched = process.env["CI_FULL"] === "1" ? { ...BOUNDS, ...FULL_BOUNDS } : BOUNDS;

describeWith(["spin", "gcc"], "the model of a call's life", () => {
  it("holds in every state, comes to rest from every state, and has no line that nothing reaches", {
    timeout: SEARCH_MS,
  }, async () => {
    let unreached: ReadonlySet<number> = bodyLines(model);
    for (const [name, bounds] of Object.entries(searched)) {
      const outcome = await search(model, bounds, true);
      expect({ name, violated: outcome.violated, complete: outcome.complete }).toEqual({
        name,
        violated: undefined,
        complete: true,
      });
      unreached = new Set([...unreached].filter((line) => outcome.unreached.has(line)));
    }
    const lines = model.split("\n");
    expect([...unreached].map((line) => `${line}: ${lines[line - 1]}`)).toEqual([]);
  });

  it.each(MUTATIONS.map((mutation) => [mutation.harm, mutation] as const))(
    "finds where %s",
    { timeout: SEARCH_MS },
    async (_, { changes, bounds, found }) => {
      const { violated } = await search(mutate(model, changes), bounds, false);
      expect(violated).toContain(found);
    },
  );
});

/** Numbers of the lines in processes: an inlined line stands for many statements, of which some are never reached. */
function bodyLines(text: string): Set<number> {
  const numbers = new Set<number>();
  let inBody = false;
  for (const [at, line] of text.split("\n").entries()) {
    if (/^proctype /.test(line)) inBody = true;
    else if (line === "}") inBody = false;
    else if (inBody) numbers.add(at + 1);
  }
  return numbers;
}

/** The arguments of every use of an inline, in lower case, without the call that it is about. */
function uses(name: string): Set<string> {
  const text = model.replace(/^inline [\s\S]*?\{/gm, "");
  const found = text.matchAll(new RegExp(`\\b${name}\\((?:other\\(c\\)|\\w+), ([^)]*)\\)`, "g"));
  return new Set([...found].map(([, rest]) => rest!.toLowerCase().replaceAll("by_", "")));
}

describe("the code's tables", () => {
  it("begin a call's life where the model does", () => {
    expect(uses("begin")).toEqual(new Set(FIRST_STAGES));
  });

  it("move a call as the model does, and nowhere else", () => {
    expect(uses("move")).toEqual(new Set(TRANSITIONS.map(({ from, by, to }) => `${from}, ${by}, ${to}`)));
  });

  it("let a question become what the model lets it become, and nothing else", async () => {
    const records = await readFile(join(import.meta.dirname, "../../src/store/records.ts"), "utf8");
    const states = /export type ApprovalState = ([^;]*);/.exec(records)?.[1] ?? "";
    const named = new Set([...states.matchAll(/"(\w+)"/g)].map(([, state]) => state!));
    expect(named.delete("pending")).toBe(true);
    expect(uses("answered")).toEqual(named);
  });
});
