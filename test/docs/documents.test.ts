import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { DenyReason } from "../../src/base/faults.ts";
import { FUNCTIONS } from "../../src/policy/condition_calls.ts";
import type { Row } from "../../src/policy/decision.ts";
import { blocks, matches, ROOT, Shell, steps } from "./console.ts";

function read(name: string): string {
  return readFileSync(join(ROOT, name), "utf8");
}

describe.each(["docs/try.md", "docs/wire.md"])("%s", (name) => {
  it("prints what it says, command by command", async () => {
    const { shell, close } = await Shell.open();
    try {
      const commands = blocks(read(name), "console").flatMap(steps);
      expect(commands).not.toEqual([]);
      for (const step of commands) {
        const printed = await shell.run(step);
        if (!matches(printed, step.expected))
          expect({ ran: step.command, printed }).toEqual({ ran: step.command, printed: step.expected });
      }
    } finally {
      await close();
    }
  }, 180_000);
});

describe("docs/grants.md", () => {
  const rows: Readonly<Record<Row, DenyReason | "asked" | "runs">> = {
    deny: "denied_by_grant",
    ask_expired: "grant_expired",
    ask_above_taint: "taint_too_high",
    ask: "asked",
    allow: "runs",
    allow_above_taint_ask: "asked",
    allow_above_taint: "taint_too_high",
    allow_expired: "grant_expired",
    nothing: "no_grant",
  };
  const firstCells = [...read("docs/grants.md").matchAll(/^\| (`.+?) +\|/gm)].map((match) => match[1] ?? "");

  it("has every row of the decision list, in its order, and what it comes to", () => {
    const text = read("docs/grants.md");
    const told = [...text.matchAll(/^\| `([a-z_]+)` .*?`?([a-z_]+)`? +\|$/gm)].map(([, row, end]) => [
      row,
      end,
    ]);
    expect(told).toEqual(Object.entries(rows));
  });

  it("has every function that a condition can call, and no other", () => {
    const named = firstCells.flatMap((cell) =>
      [...cell.matchAll(/([A-Za-z_]+)\(/g)].map((match) => match[1]),
    );
    expect(named.toSorted()).toEqual([...FUNCTIONS.keys()].toSorted());
  });
});

describe("README.md", () => {
  const readme = read("README.md");

  it("names only commands that exist, and its two first are scripts of the package", () => {
    const manifest = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const commands = blocks(readme, "console")
      .flatMap(steps)
      .map(({ command }) => command);
    expect(commands).toEqual(["npm ci && npm run demo", "npm ci && npm test"]);
    expect(manifest.scripts).toHaveProperty("demo");
    expect(manifest.scripts).toHaveProperty("test");
    expect(read(".ci/run")).toContain("npm test");
  });

  it("shows what the demo shows", async () => {
    const { shell, close } = await Shell.open();
    try {
      const printed = (await shell.run({ command: "callgate demo", expected: [] })).join("\n");
      const shown = (blocks(readme, "text").at(-1) ?? "").trimEnd().split("\n");
      expect(shown).toHaveLength(7);
      for (const line of shown) {
        const [title = "", answer = ""] = line.split(/ {2,}(.*)/s);
        const scene = printed.slice(printed.indexOf(title), printed.indexOf("\n\n", printed.indexOf(title)));
        expect(scene).toContain(title);
        expect(scene).toContain(`gate answers ${answer}`);
      }
    } finally {
      await close();
    }
  }, 120_000);

  it("has a help for each command of its table", async () => {
    const { shell, close } = await Shell.open();
    try {
      const help = (await shell.run({ command: "callgate --help", expected: [] })).join("\n");
      const named = [...readme.matchAll(/^\| `callgate ([a-z]+)/gm)].map((match) => match[1] ?? "");
      expect(named.length).toBeGreaterThan(8);
      for (const command of named) expect(help).toMatch(new RegExp(`^  ${command}\\b`, "m"));
    } finally {
      await close();
    }
  }, 120_000);
});

describe("the documents", () => {
  const documents = [
    "README.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "src/README.md",
    "docs/grants.md",
    "docs/try.md",
    "docs/wire.md",
    "docs/logs.md",
  ];

  it("point at files that are there", () => {
    for (const name of documents) {
      const targets = [...read(name).matchAll(/\]\(([^)#]+)\)/g)]
        .map((match) => match[1] ?? "")
        .filter((target) => !/^[a-z]+:/.test(target));
      for (const target of targets)
        expect(
          () => readFileSync(join(ROOT, name, "..", target.replace(/\/$/, ""), "")),
          `${name} points at ${target}`,
        ).not.toThrow(/ENOENT/);
    }
  });

  it("show frames that decode", async () => {
    const { decodeBody } = await import("../../src/wire/envelope.ts");
    const frames = blocks(read("docs/wire.md"), "json");
    expect(frames.length).toBeGreaterThan(0);
    for (const frame of frames) expect(decodeBody(Buffer.from(frame.trim())).v).toBe(1);
  });
});
