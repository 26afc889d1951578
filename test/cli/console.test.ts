import { afterEach, expect, it } from "vitest";
import { ECHO } from "../daemon/configs.ts";
import { callgate, cleanUp, Daemon } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { Window } from "./tmux.ts";

afterEach(cleanUp);

const links = (screen: string) => screen.match(/#login=[\w-]{43}/g) ?? [];

/** A shell in a terminal, and the command line of a console in it. */
async function terminal(): Promise<{ window: Window; command: string }> {
  const daemon = await Daemon.start(ECHO);
  const window = await Window.open({
    columns: 120,
    shell: ["bash", "--norc"],
    env: { PS1: "$ ", HISTFILE: "" },
  });
  const command = `'${process.execPath}' '${callgate()}' console --socket '${daemon.socket("operator")}'`;
  return { window, command };
}

describeWith(["tmux", "bash"], "callgate console in a terminal", () => {
  it("prints another link for Enter, and ends at ctrl-C", async () => {
    const { window, command } = await terminal();
    await window.line(`clear; ${command}; echo ended: $?`);
    const first = await window.shows((screen) => screen.includes("Enter prints another"));
    expect(links(first)).toHaveLength(1);
    await window.press("Enter");
    const second = links(await window.shows((screen) => links(screen).length === 2));
    expect(new Set(second).size).toBe(2);
    await window.press("C-c");
    await window.shows((screen) => screen.includes("ended: 0"));
  });

  it("runs in the background, where it reads nothing, and leaves the line to the shell", async () => {
    const { window, command } = await terminal();
    await window.line(`clear; ${command} &`);
    await window.shows((screen) => screen.includes("prints another"));
    await window.line("echo still; jobs -r | wc -l");
    const screen = await window.shows((shown) => /^still\n1$/m.test(shown));
    expect(screen).toMatch(/SIGUSR2 to process \d+ prints another/);
    await window.line("kill %1; wait %1; echo ended: $?");
    await window.shows((shown) => shown.includes("ended: 0"));
  });
});
