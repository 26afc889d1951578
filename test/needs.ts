// Tests that start programs which not every machine has. Where CI is set they must run: what is missing fails
// them. Elsewhere they are left out, and say for want of what.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { describe } from "vitest";

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
