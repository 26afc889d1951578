import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { DenyReason } from "../../src/base/faults.ts";
import { FUNCTIONS } from "../../src/policy/condition_calls.ts";
import type { Row } from "../../src/policy/decision.ts";
import { blocks, matches, ROOT, Shell, steps } from "./console.ts";

function read(name: string): string {
  return readFileSync(join(ROOT, name), "utf8");
}

describe.each([
  "docs/try.md",
  "docs/grants.md",
  "docs/approvals.md",
  "docs/operate.md",
  "docs/audit.md",
  "docs/console.md",
  "docs/mcp.md",
  "docs/metrics.md",
  "docs/policy.md",
  "docs/wire.md",
  "docs/start.md",
  "docs/watching.md",
  "docs/shell.md",
])("%s", (name) => {
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
      for (const command of blocks(read(name), "sh"))
        expect(await shell.run({ command, expected: [] })).toEqual([
          expect.stringMatching(/^holds: \w{64}$/),
        ]);
    } finally {
      await close();
    }
  }, 600_000);
});

describe("docs/audit.md", () => {
  it("has every kind of record that the source writes, and no other", () => {
    const source = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
      .filter((file) => /^(?:store|broker|host)\/.*\.ts$/.test(file))
      .map((file) => read(join("src", file)))
      .join("");
    const written = [...source.matchAll(/auditEvent\("(\w+)"|const kind = .*? "(\w+)" : "(\w+)"/g)];
    const kinds = written.flatMap(([, ...names]) => names.filter((name) => name !== undefined));
    const rows = [...read("docs/audit.md").matchAll(/^\| ((?:`\w+`(?:, )?)+) +\|/gm)];
    const told = rows.flatMap(([, cell = ""]) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name));
    expect(told.toSorted()).toEqual([...new Set(kinds)].toSorted());
  });
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
      const shown = (blocks(readme, "text").find((block) => block.startsWith("1. ")) ?? "")
        .trimEnd()
        .split("\n");
      expect(shown).toHaveLength(printed.match(/^── \d/gm)?.length ?? 0);
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

  it("shows a question as docs/try.md does", () => {
    const shown = (blocks(readme, "text").at(-1) ?? "").trimEnd().split("\n");
    const show = blocks(read("docs/try.md"), "console").flatMap(steps);
    const { expected = [] } = show.find(({ command }) => command.includes("approvals show")) ?? {};
    const from = expected.findIndex((line) => line.includes("who asks"));
    const like = expected.slice(from, from + shown.length);
    if (!matches(shown, like)) expect(shown).toEqual(like);
  });

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

describe("SECURITY.md", () => {
  const promises = read("SECURITY.md")
    .split("\n")
    .filter((line) => line.startsWith("| ") && line.includes("](test/"));

  it("names tests that are there, by their titles", () => {
    expect(promises.length).toBeGreaterThan(15);
    for (const promise of promises) {
      let tests = "";
      for (const [, file, title] of promise.matchAll(/\]\((test\/[^)]+)\)|“([^”]+)”/g)) {
        if (file !== undefined) tests = read(file);
        else expect(tests.includes(title ?? ""), `${title} is a test`).toBe(true);
      }
    }
  });
});

describe("the documents", () => {
  const documents = [
    "README.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "src/README.md",
    "docs/approvals.md",
    "docs/audit.md",
    "docs/grants.md",
    "docs/operate.md",
    "docs/connector.md",
    "docs/console.md",
    "docs/mcp.md",
    "docs/mcp_conformance.md",
    "docs/metrics.md",
    "docs/policy.md",
    "docs/shell.md",
    "docs/start.md",
    "docs/try.md",
    "docs/watching.md",
    "docs/wire.md",
    "docs/logs.md",
    "bench/README.md",
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
