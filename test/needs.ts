// Tests that start programs which not every machine has. Where CI is set they must run: what is missing fails
// them. Elsewhere they are left out, and say for want of what.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, it } from "vitest";

function isInstalled(program: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** `describe` for tests that start these programs. */
export function describeWith(programs: readonly string[], title: string, tests: () => void): void {
  const missing = programs.filter((program) => !isInstalled(program));
  if (missing.length === 0 || process.env["CI"] !== undefined) describe(title, tests);
  else describe.skip(`${title} (not run: no ${missing.join(", no ")} here)`, tests);
}

/**
 * `describe` for tests that start a program which wants Node 24 or later: the one that TEST_NODE_24 names, else the
 * present one where it is new enough.
 */
export function describeOnNode24(title: string, tests: (node: string) => void): void {
  const named = process.env["TEST_NODE_24"] ?? "";
  const isNew = Number(process.versions.node.split(".")[0]) >= 24;
  const node = named !== "" ? named : isNew ? process.execPath : undefined;
  if (node !== undefined) describe(title, () => tests(node));
  else if (process.env["CI"] === undefined)
    describe.skip(`${title} (not run: no Node 24 here, nor TEST_NODE_24)`, () => tests(""));
  else {
    it(title, () => {
      throw new Error("TEST_NODE_24 must name the program of a Node 24");
    });
  }
}
