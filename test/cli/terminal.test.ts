import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { cleanUp, Daemon, run } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { type ShellPlace, shellPlace } from "./shell_place.ts";
import { Window } from "./tmux.ts";

// The command line as a person sees it: in a real terminal.

const CONFIG = `
[roles.agent]
anyone = true
[roles.operator]
anyone = true
operator = true
[roles.a-role-whose-name-is-long-for-a-narrow-screen]
anyone = true
[[grants]]
id = "operates"
role = "operator"
tools = ["callgate.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "denies"
role = "agent"
tools = ["*"]
effect = "deny"
`;

let place: ShellPlace;
let daemon: Daemon;

beforeAll(async () => {
  place = shellPlace();
  daemon = await Daemon.start(CONFIG);
  const frozen = ["freeze", "a-role-whose-name-is-long-for-a-narrow-screen"];
  expect((await run([...frozen, "--socket", daemon.socket("operator")])).status).toBe(0);
});

afterAll(cleanUp);

interface At {
  readonly columns?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** A shell at its prompt. */
async function prompt({ columns = 80, env = {} }: At = {}): Promise<Window> {
  const all = {
    ...place.env,
    CALLGATE_SOCKET: daemon.socket("operator"),
    NO_COLOR: "",
    FORCE_COLOR: "",
    ...env,
  };
  const window = await Window.open({ columns, env: all, shell: ["bash", "--norc"] });
  await window.line(`cd ${place.directory}; PS1='> '; clear`);
  await window.shows((screen) => screen === ">");
  return window;
}

/** The screen once the command has ended. */
async function screenOf(window: Window, command: string): Promise<string> {
  await window.line(`${command}; echo "[$?]"`);
  return window.shows((screen) => /^\[\d+\]\n>$/m.test(screen));
}

/** `text` in that colour, as tmux writes it. */
function painted(sgr: string, text: string): string {
  return `\u001b[${sgr}m${text}\u001b[`;
}

describeWith(["tmux", "jq"], "in a terminal of 80 columns", () => {
  it("status is in colours: its warning loud, its headings bold", async () => {
    const window = await prompt();
    await screenOf(window, "callgate status");
    const screen = await window.screen(true);
    expect(screen).toContain(painted("1;7m\u001b[33", "WARNING:"));
    expect(screen).toContain(painted("1", "ROLE"));
    expect(screen).toContain("\u001b[32mok");
  });

  it("a denied call is red, and help has bold headings", async () => {
    const window = await prompt();
    await screenOf(window, `callgate call x --socket ${daemon.socket("agent")}`);
    expect(await window.screen(true)).toContain(painted("1m\u001b[31", "denied"));
    await window.line("clear");
    await screenOf(window, "callgate freeze --help");
    expect(await window.screen(true)).toContain(painted("1", "Usage:"));
  });

  it("no line is broken by the terminal, and columns come back in a wider one", async () => {
    const window = await prompt();
    const narrow = await screenOf(window, "callgate sessions list");
    expect(narrow).toMatch(/^ROLE +SESSION +STATE +TAINT/m);
    expect(narrow).toMatch(/^\(no room for .*EXPIRES.*: --json has all\)$/m);
    await window.line("clear");
    await window.resize(130);
    const wide = await screenOf(window, "callgate sessions list");
    expect(wide).toMatch(/^ROLE .*EXPIRES$/m);
    expect(wide).not.toContain("no room for");
    await window.line("clear");
    await window.resize(80);
    const status = await screenOf(window, "callgate status");
    expect(status).toMatch(/^a-role-whose-name-is-\S+…? +\d/m);
  });

  it("--json goes into jq as it is", async () => {
    const window = await prompt();
    const screen = await screenOf(window, "callgate status --json | jq -r '.role, .store.condition'");
    expect(screen).toContain("\noperator\nok\n[0]");
    await window.line("clear");
    const json = await screenOf(window, "FORCE_COLOR=1 callgate status --json | cat -v | cut -c 1-20");
    expect(json).toContain('{"');
    expect(json).not.toContain("^[");
  });

  it("NO_COLOR takes the colours away, FORCE_COLOR brings them into a pipe", async () => {
    const window = await prompt({ env: { NO_COLOR: "1" } });
    await screenOf(window, "callgate status");
    expect(await window.screen(true)).not.toContain("\u001b[");
    await window.line("clear");
    expect(await screenOf(window, "callgate status | cat -v")).not.toContain("^[");
    await window.line("clear");
    expect(await screenOf(window, "FORCE_COLOR=1 callgate status | cat -v")).toContain("^[[1mROLE^[[0m");
  });

  it("long work shows how far it is, on one line that is gone at the end", async () => {
    const { out } = await run(["audit", "export", "--socket", daemon.socket("operator")]);
    writeFileSync(join(place.directory, "audit.jsonl"), out);
    execFileSync("mkfifo", [join(place.directory, "slow")]);
    const window = await prompt();
    await window.line('callgate audit verify --file slow; echo "[$?]"');
    await window.shows((screen) => /^verifying slow … [1-9]\d* s$/m.test(screen));
    execFileSync("sh", ["-c", "cat audit.jsonl > slow"], { cwd: place.directory });
    const end = await window.shows((screen) => screen.includes("[0]"));
    expect(end).toMatch(/\nthe audit holds: \d+ records, 1 to \d+\n\[0\]\n>$/);
    expect(end).not.toContain("verifying");
  });
});
