import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { EXIT_STATUSES } from "../../src/cli/exit_status.ts";
import { callable, helpText, REMARK } from "../../src/cli/help_text.ts";
import { PLAIN } from "../../src/cli/paint.ts";
import { allCommands, runProgram } from "../../src/cli/program.ts";
import { EXIT } from "../../src/cli/terminal.ts";
import { cleanUp, run } from "../daemon/daemon.ts";
import { blocks, ROOT, steps } from "../docs/console.ts";
import { describeWith } from "../needs.ts";
import { callsIn, faultOf, shellWords } from "./command_lines.ts";
import { Desk } from "./desk.ts";

// Help and manual are made of the table of commands: what they say must be so.

let commands: Awaited<ReturnType<typeof allCommands>>;

beforeAll(async () => {
  commands = await allCommands();
});

afterEach(cleanUp);

async function said(...words: string[]): Promise<{ status: number; out: string; err: string }> {
  const desk = new Desk();
  return { status: await runProgram(words, desk), out: desk.out_, err: desk.err_ };
}

describe("the help", () => {
  it("of every command fits 80 columns, but for examples, which are typed as they are", () => {
    for (const node of [commands.tree, ...commands.tree.children, ...callable(commands.tree)]) {
      const text = helpText(node, commands.sections, PLAIN);
      const [before = ""] = text.split("Examples:");
      for (const line of before.split("\n"))
        if (!/^\s*\S+\s*$/.test(line) && !line.startsWith("Usage:"))
          expect(line.length, `${node.path}: ${line}`).toBeLessThanOrEqual(80);
      expect(text, node.path).toMatch(/^\S.*\n[\s\S]*^Usage: callgate/m);
    }
  });

  it("of every command has an example", () => {
    const bare = callable(commands.tree).filter(({ examples }) => examples.length === 0);
    expect(bare.map(({ path }) => path)).toEqual([]);
  });

  it("shows only examples that the program understands", () => {
    const faults = [commands.tree, ...callable(commands.tree)].flatMap(({ path, examples }) =>
      examples.flatMap((example) => {
        const [line = ""] = example.split(REMARK);
        const calls = callsIn(line);
        const wrong = calls.map((words) => faultOf(commands.tree, words)).filter((one) => one !== undefined);
        return [...(calls.length === 0 ? [`${path}: no command in ${line}`] : []), ...wrong];
      }),
    );
    expect(faults).toEqual([]);
  });

  it("names each command below one heading", () => {
    const headed = commands.sections.flatMap(({ commands: names }) => names);
    expect(new Set(headed).size).toBe(headed.length);
    const first = commands.tree.children.map(({ path }) => path);
    expect(first.filter((name) => !headed.includes(name))).toEqual([]);
    expect(headed.filter((name) => !first.includes(name))).toEqual([]);
    for (const { path, about } of commands.tree.children) expect(about, path).not.toBe("");
  });

  it("is the same by --help and by the help command", async () => {
    for (const words of [["approvals"], ["approvals", "approve"], ["backup"], ["serve"]]) {
      const byOption = await said(...words, "--help");
      expect(byOption).toEqual(await said("help", ...words));
      expect(byOption).toMatchObject({ status: 0, err: "" });
    }
    expect(await said("--help")).toEqual(await said("help"));
    expect(await said("help", "nothing")).toMatchObject({ status: 2, out: "" });
  });

  it("stands on standard error, with the status of wrong use, where no command is given", async () => {
    const { status, out, err } = await said();
    expect({ status, out }).toEqual({ status: 2, out: "" });
    expect(err).toContain("Usage: callgate <command>");
    expect(err).toContain("First steps:");
    expect((await said("approvals")).status).toBe(2);
  });
});

describe("wrong use", () => {
  it.each([
    [
      ["aprovals"],
      "unknown command 'aprovals'",
      "(Did you mean approvals?)",
      "(callgate --help shows the commands)",
    ],
    [
      ["approvals", "lst"],
      "unknown command 'lst'",
      "(Did you mean list?)",
      "(callgate approvals --help shows its commands)",
    ],
    [
      ["approvals", "show", "--ful", "x"],
      "unknown option '--ful'",
      "(Did you mean --full?)",
      "(callgate approvals show --help shows how it is used)",
    ],
    [["backup"], "'--config <file>' not specified", "(callgate backup --help shows how it is used)"],
    [["serve"], "'--config <file>' not specified", "(callgate serve --help shows how it is used)"],
    [["status", "--session", "a b"], "--session must be", "(callgate status --help shows how it is used)"],
  ])("%j says what is wrong and which command helps", async (words, ...texts) => {
    const { status, out, err } = await said(...words);
    expect({ status, out }).toEqual({ status: EXIT.usage, out: "" });
    expect(err).toMatch(/^callgate: /);
    for (const text of texts) expect(err).toContain(text);
  });

  it("with an escape sequence in it is shown escaped", async () => {
    const { err } = await said("approvals", "\u001b[2J\u202e");
    expect(err).toContain("\\u{1b}[2J\\u{202e}");
    expect(err).not.toMatch(/\u001b|\u202e/);
  });
});

describe("exit statuses", () => {
  it("stand in docs/shell.md as the help has them", () => {
    const rows = [
      ...readFileSync(join(ROOT, "docs/shell.md"), "utf8").matchAll(/^\| (\d+) +\| (.*?) +\|$/gm),
    ];
    expect(rows.map(([, status, means]) => [Number(status), means])).toEqual(
      EXIT_STATUSES.map(({ status, means }) => [status, means]),
    );
    expect(EXIT_STATUSES.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual(
      Object.values(EXIT).toSorted((a, b) => a - b),
    );
  });
});

describe("the documents", () => {
  it.each(["README.md", "docs/try.md", "docs/operate.md", "docs/approvals.md", "docs/audit.md"])(
    "%s shows only commands that the program understands",
    (name) => {
      const shown = blocks(readFileSync(join(ROOT, name), "utf8"), "console").flatMap(steps);
      const faults = shown.flatMap(({ command }) =>
        callsIn(command.replaceAll(/\$\([^)]*\)|\$[A-Z_]+/g, "X"))
          .map((words) => faultOf(commands.tree, words))
          .filter((fault) => fault !== undefined),
      );
      expect(faults.filter((fault) => !/no such command: callgate (?:--version|--help)/.test(fault))).toEqual(
        [],
      );
    },
  );

  it("are read as a shell reads them", () => {
    expect(shellWords(`callgate call x '{"a":"b c"}' --session "d e" > f`)).toEqual([
      "callgate",
      "call",
      "x",
      '{"a":"b c"}',
      "--session",
      "d e",
    ]);
  });
});

describeWith(["mandoc"], "the manual page", () => {
  const AT = { SOURCE_DATE_EPOCH: "1796040000" };

  it("has nothing that mandoc would find fault with", async () => {
    const { out, status } = await run(["man"], { env: AT });
    expect(status).toBe(0);
    // What it says of other pages depends on the machine.
    const lint = execFileSync("sh", ["-c", "mandoc -T lint -W style 2>/dev/null; true"], {
      input: out,
      encoding: "utf8",
    });
    expect(lint.split("\n").filter((line) => line !== "" && !line.includes("mandoc.db"))).toEqual([]);
    expect(lint.split("\n").filter((line) => /WARNING|ERROR/.test(line))).toEqual([]);
  });

  it("has every command with its options, statuses and examples, as they are typed", async () => {
    const { out } = await run(["man"], { env: AT });
    const text = execFileSync("mandoc", ["-T", "ascii", "-O", "width=400"], { input: out, encoding: "utf8" })
      .replace(/.\u0008/g, "")
      .replace(/\s+/g, " ");
    expect(text).toContain("November 30, 2026");
    for (const { path, about, options, examples } of callable(commands.tree)) {
      expect(text).toContain(` ${path} `);
      expect(text).toContain(about.replace(/ …/g, "").split(/[…—]/)[0]?.replace(/\s+/g, " ").slice(0, 40));
      for (const { long } of options) if (long !== "--help") expect(text).toContain(long);
      for (const example of examples) {
        const [line = ""] = example.split(REMARK);
        if (/^[ -~]*$/.test(line)) expect(text).toContain(line.replace(/\s+/g, " "));
      }
    }
    for (const { status, means } of EXIT_STATUSES) expect(text).toContain(`${status} ${means}`);
  });

  it("leaves what begins like a macro, and backslashes, as text", async () => {
    const { manualPage } = await import("../../src/cli/man_page.ts");
    const node = {
      ...(commands.tree.children[0] ?? commands.tree),
      about: ".Sh 'a' \\fB — it is",
      path: "x y",
    };
    const tree = { ...commands.tree, children: [{ ...node, children: [] }] };
    const page = manualPage({ tree, sections: [], version: "1" }, 0);
    const shown = execFileSync("mandoc", ["-T", "utf8"], { input: page, encoding: "utf8" }).replace(
      /.\u0008/gu,
      "",
    );
    expect(shown).toContain(".Sh 'a' \\fB — it is");
  });
});
