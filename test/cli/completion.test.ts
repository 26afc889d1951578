import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callgate, cleanUp, Daemon, run } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { AnsweringBroker, at, Desk } from "./desk.ts";
import { type ShellPlace, shellPlace } from "./shell_place.ts";
import { Window } from "./tmux.ts";

// What is offered at a tab, in the shells themselves.

const CONFIG = `
[roles.agent]
anyone = true
[roles.operator]
anyone = true
operator = true
[[grants]]
id = "operates"
role = "operator"
tools = ["callgate.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;

let place: ShellPlace;
let daemon: Daemon;

beforeAll(async () => {
  place = shellPlace();
  daemon = await Daemon.start(CONFIG);
  for (const shell of ["bash", "zsh", "fish"]) {
    const { out, status } = await run(["completion", shell]);
    expect(status).toBe(0);
    writeFileSync(join(place.directory, `callgate.${shell}`), out);
  }
  mkdirSync(join(place.directory, "my docs"));
  writeFileSync(join(place.directory, "my config.toml"), "");
});

afterAll(cleanUp);

/** Line up to the cursor, and what is offered for its last word. */
const CASES: readonly (readonly [line: string, ...offered: string[]])[] = [
  ["callgate appr", "approvals"],
  ["callgate approvals ", "approve", "list", "refuse", "show", "watch"],
  ["callgate approvals approve --rem", "--remember"],
  ["callgate approvals approve --for 1h --remember ", "arguments", "tool"],
  ["callgate help approvals app", "approve"],
  ["callgate help appr", "approvals"],
  ["callgate grants add agent read_file --effect a", "allow", "ask"],
  ["callgate completion ", "bash", "fish", "zsh"],
  ["callgate approvals approve x -- --re"],
  ["callgate approvals approve --digest "],
  ["callgate freeze ", "agent", "operator"],
  ["callgate calls list --role a", "agent"],
  ["callgate nothing "],
];

describeWith(["bash"], "bash", () => {
  /** As readline calls it: with the words that it would have made of the line. */
  const ask = (line: string, socket = daemon.socket("operator")) => {
    const script = `
      source ${place.directory}/callgate.bash
      COMP_LINE=$1 COMP_POINT=\${#1} COMP_WORDS=("\${@:2}") COMP_CWORD=$(($# - 2))
      _callgate
      printf '%s\\n' "\${COMPREPLY[@]}"`;
    const words = line.split(/ +|(?<=[:=])|(?=[:=])/);
    return execFileSync("bash", ["--norc", "-c", script, "bash", line, ...words], {
      cwd: place.directory,
      env: { ...place.env, CALLGATE_SOCKET: socket },
      encoding: "utf8",
    })
      .split("\n")
      .filter((one) => one !== "")
      .toSorted();
  };

  it.each(CASES)("after %j offers what fits", (line, ...offered) => {
    expect(ask(line)).toEqual(offered);
  });

  it("completes behind = and : what comes after them, as readline replaces it", () => {
    expect(ask("callgate approvals approve --remember=a")).toEqual(["arguments"]);
    expect(ask(`callgate role files --root trusted:${place.directory}/my`)).toEqual([
      `${place.directory}/my docs`,
    ]);
    expect(ask("callgate check --config my")).toEqual(["my config.toml", "my docs"]);
  });

  it("offers nothing, and says nothing, where no broker answers", () => {
    expect(ask("callgate freeze ", "/nowhere.sock")).toEqual([]);
    expect(ask("callgate freeze ", "")).toEqual([]);
  });
});

describeWith(["fish"], "fish", () => {
  const ask = (line: string) =>
    execFileSync(
      "fish",
      ["--no-config", "-c", `source ${place.directory}/callgate.fish; complete -C $argv[1]`, line],
      {
        cwd: place.directory,
        env: { ...place.env, CALLGATE_SOCKET: daemon.socket("operator") },
        encoding: "utf8",
      },
    )
      .split("\n")
      .filter((one) => one !== "");

  it.each(CASES)("after %j offers what fits", (line, ...offered) => {
    expect(ask(line).map((one) => one.split("\t")[0])).toEqual(offered);
  });

  it("completes behind = and : the whole word", () => {
    expect(ask("callgate approvals approve --remember=a")).toEqual(["--remember=arguments"]);
    expect(ask(`callgate role files --root trusted:${place.directory}/my`)).toEqual([
      `trusted:${place.directory}/my docs/\tDirectory`,
    ]);
    expect(ask("callgate check --config my")).toContain("my config.toml");
  });

  it("says what each command is", () => {
    expect(ask("callgate reloa")).toEqual([expect.stringMatching(/^reload\tReads the config again/)]);
  });
});

describeWith(["tmux", "zsh"], "zsh", () => {
  async function typed(line: string): Promise<{ readonly window: Window; readonly prompt: string }> {
    const env = { ...place.env, CALLGATE_SOCKET: daemon.socket("operator") };
    const window = await Window.open({ columns: 100, env, shell: ["zsh", "-f"] });
    await window.line(
      `cd ${place.directory}; PS1='> '; autoload -Uz compinit; compinit -u -D; source ./callgate.zsh; clear; echo ready`,
    );
    await window.shows((screen) => screen.startsWith("ready\n>"));
    await window.type(line);
    await window.press("Tab");
    return { window, prompt: `> ${line}` };
  }

  it.each([
    ["callgate appr", "callgate approvals"],
    ["callgate approvals appr", "callgate approvals approve"],
    ["callgate approvals approve --rem", "callgate approvals approve --remember"],
    ["callgate approvals approve --remember to", "callgate approvals approve --remember tool"],
    ["callgate approvals approve --remember=a", "callgate approvals approve --remember=arguments"],
    ["callgate help grants ad", "callgate help grants add"],
    ["callgate check --config my\\ co", "callgate check --config my\\ config.toml"],
    ["callgate role files --root trusted:my", "callgate role files --root trusted:my\\ docs/"],
    ["callgate freeze op", "callgate freeze operator"],
  ])("makes of %j, at a tab, %j", async (line, whole) => {
    const { window } = await typed(line);
    await window.shows((screen) => screen.includes(`> ${whole}`));
  });

  it("shows what each command is where several fit", async () => {
    const { window } = await typed("callgate approvals ");
    const screen = await window.shows((shown) => /watch +--/.test(shown));
    expect(screen).toMatch(/^approve +-- Shows a question/m);
  });
});

describeWith(["tmux", "bash"], "bash, at a real prompt", () => {
  it.each([
    ["callgate approvals approve --remember=ar", "callgate approvals approve --remember=arguments"],
    ["callgate role files --root trusted:my", "callgate role files --root trusted:my\\ docs/"],
    ["callgate freeze op", "callgate freeze operator"],
  ])("makes of %j, at a tab, %j", async (line, whole) => {
    const env = { ...place.env, CALLGATE_SOCKET: daemon.socket("operator") };
    const window = await Window.open({ columns: 100, env, shell: ["bash", "--norc"] });
    await window.line(`cd ${place.directory}; PS1='> '; source ./callgate.bash; clear; echo ready`);
    await window.shows((screen) => screen.startsWith("ready\n>"));
    await window.type(line);
    await window.press("Tab");
    await window.shows((screen) => screen.includes(`> ${whole}`));
  });
});

describe("callgate completion offer", () => {
  it("offers only what a shell takes as one word, one a line, with what it is", async () => {
    const grants = [
      { id: "reads", role: "agent", effect: "allow" },
      { id: "$(touch /tmp/x)", role: "agent", effect: "allow" },
      { id: "two words", role: "agent", effect: "allow" },
      { id: "a\nb", role: "agent", effect: "allow" },
      { id: "odd", role: "a\n\u001b[2J", effect: "ask" },
    ];
    const broker = await AnsweringBroker.start({ "grants.list": { grants } });
    const desk = new Desk();
    expect(await at(desk, broker, "completion", "offer", "grants")).toBe(0);
    expect(desk.out_).toBe("reads\tallow, of agent\nodd\task, of a\\n\\u{1b}[2J\n");
    await broker.remove();
  });

  it("is silent where it may not look, and for kinds that there are none of", async () => {
    const broker = await AnsweringBroker.start({});
    for (const kind of ["grants", "constructor", "nothing"]) {
      const desk = new Desk();
      expect(await at(desk, broker, "completion", "offer", kind)).not.toBe(0);
      expect([desk.out_, desk.err_]).toEqual(["", ""]);
    }
    await broker.remove();
  });

  it("is no command that help or completion tells of", async () => {
    expect(callgate()).toBeTruthy();
    for (const words of [["completion", "--help"], ["completion", "bash"], ["man"]]) {
      const { out } = await run(words);
      expect(out).not.toContain("<kind>");
    }
  });
});
