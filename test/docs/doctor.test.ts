import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { blocks, matches, ROOT, Shell, steps } from "./console.ts";

const TEXT = readFileSync(join(ROOT, "docs/doctor.md"), "utf8");

/** Made of a check's name, or a library's. */
const COMPOSED = ["library_koffi", "library_lmdb"];

it("docs/doctor.md has every finding that the source tells of, and no other", () => {
  const source = ["src/host", "src/cli"].flatMap((directory) =>
    readdirSync(join(ROOT, directory))
      .filter((name) => /^doctor/.test(name))
      .map((name) => readFileSync(join(ROOT, directory, name), "utf8")),
  );
  const told = [...source.join("").matchAll(/\bcode: ([^,`}]*)/g)].flatMap(([, value = ""]) => [
    ...value.matchAll(/"([a-z]+_[a-z_]+)"/g),
  ]);
  const written = new Set(told.map(([, code = ""]) => code));
  expect(written.size).toBeGreaterThan(60);
  const [, table = ""] = TEXT.split("## What it can find");
  const rows = [...table.matchAll(/^\| (`.*?`) +\|/gm)].flatMap(([, cell = ""]) => [
    ...cell.matchAll(/`([a-z_]+)`/g),
  ]);
  const documented = rows.map(([, code = ""]) => code);
  expect(documented.filter((code) => !COMPOSED.includes(code)).toSorted()).toEqual([...written].toSorted());
});

it("docs/doctor.md prints what it says, command by command", async () => {
  const { shell, close } = await Shell.open();
  try {
    for (const step of blocks(TEXT, "console").flatMap(steps)) {
      const printed = await shell.run(step);
      if (!matches(printed, step.expected))
        expect({ ran: step.command, printed }).toEqual({ ran: step.command, printed: step.expected });
    }
  } finally {
    await close();
  }
}, 180_000);
