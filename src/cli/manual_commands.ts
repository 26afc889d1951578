// The rows of the commands that tell of commands: help, the manual page, and what a shell completes. They are written
// from the tree of all commands, which is handed in.

import type { CommandRow } from "./command_row.ts";
import { type Commands, nodeAt } from "./command_tree.ts";
import { EXIT } from "./terminal.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
export type ShellName = (typeof SHELLS)[number];

const INSTALL: Readonly<Record<ShellName, string>> = {
  bash: "callgate completion bash > ~/.local/share/bash-completion/completions/callgate",
  zsh: `callgate completion zsh > "\${fpath[1]}/_callgate"`,
  fish: "callgate completion fish > ~/.config/fish/completions/callgate.fish",
};

export function manualRows(commands: () => Commands): readonly CommandRow[] {
  return [
    helpRow(commands),
    manRow(commands),
    ...SHELLS.map((shell) => completionRow(shell, commands)),
    OFFER_ROW,
  ];
}

function helpRow(commands: () => Commands): CommandRow {
  return {
    words: "help [command...]",
    about: "The help of a command.",
    takes: { command: "its words; without any: what there is" },
    reaches: false,
    run: async () => {
      const [{ helpText }, { UsageFault }, { lookOf }] = await Promise.all([
        import("./help_text.ts"),
        import("./call.ts"),
        import("./terminal.ts"),
      ]);
      return (terminal, words) => {
        const named = words.filter((word) => word !== undefined);
        const { tree, sections } = commands();
        const node = nodeAt(tree, named);
        if (node === undefined)
          throw new UsageFault(`there is no command ${JSON.stringify(named.join(" "))}`);
        terminal.out(helpText(node, sections, lookOf(terminal)));
        return Promise.resolve(EXIT.ok);
      };
    },
    examples: ["callgate help approvals", "callgate help approvals approve"],
  };
}

function manRow(commands: () => Commands): CommandRow {
  return {
    words: "man",
    about: "Writes the manual page, as roff.",
    reaches: false,
    run: async () => {
      const { manualPage } = await import("./man_page.ts");
      return (terminal) => {
        const { SOURCE_DATE_EPOCH: epoch = "" } = process.env;
        const atMs = /^[0-9]{1,12}$/.test(epoch) ? Number(epoch) * 1000 : terminal.nowMs();
        terminal.out(manualPage(commands(), atMs));
        return Promise.resolve(EXIT.ok);
      };
    },
    help: "The package installs it too: man callgate.",
    examples: ["callgate man | man -l -", "callgate man > /usr/local/share/man/man1/callgate.1"],
  };
}

function completionRow(shell: ShellName, commands: () => Commands): CommandRow {
  return {
    words: `completion ${shell}`,
    about: `Writes what makes ${shell} complete callgate's commands, options and values.`,
    reaches: false,
    run: async () => {
      const { completionScript } = await import("./completion.ts");
      return (terminal) => {
        terminal.out(completionScript(shell, commands().tree));
        return Promise.resolve(EXIT.ok);
      };
    },
    help: "Where CALLGATE_SOCKET names an operator's socket, ids of questions, roles, sessions, tools and grants are offered as well.",
    examples: [INSTALL[shell]],
  };
}

/** Asked by the scripts, at each tab. */
const OFFER_ROW: CommandRow = {
  words: "completion offer <kind>",
  about: "What there is of a kind at the broker, one a line, for a shell to offer.",
  hidden: true,
  run: async () => (await import("./offer.ts")).offer,
};
