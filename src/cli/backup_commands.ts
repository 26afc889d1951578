// The rows of `callgate backup` and `callgate restore`. Their work is the host's, which is handed in: only
// program.ts knows it.

import type { BackupHost } from "./backup.ts";
import { type CommandRow, type Flags, type OptionRow, textOf } from "./command_row.ts";

const CONFIG_OPTION: OptionRow = {
  flags: "--config <file>",
  about: "the daemon's config, in TOML",
  required: true,
};
const JSON_OPTION: OptionRow = { flags: "--json", about: "one JSON object" };

/** The options that are needed are there: commander has seen to it. */
function named(flags: Flags): { readonly config: string; readonly json: boolean } {
  return { config: textOf(flags, "config") ?? "", json: flags.json === true };
}

export function backupRows(host: () => Promise<BackupHost>): readonly CommandRow[] {
  return [
    {
      words: "backup",
      about: "Copies the state into a new file, while the daemon runs or not, and verifies it.",
      reaches: false,
      run: async () => {
        const { backup } = await import("./backup.ts");
        return async (terminal, _, flags) =>
          backup(terminal, { ...named(flags), to: textOf(flags, "to") ?? "" }, await host());
      },
      options: [
        CONFIG_OPTION,
        { flags: "--to <file>", about: "where the backup goes; nothing is there yet", required: true },
        JSON_OPTION,
      ],
      help: "Run it as the daemon's user. The file holds what the state holds: arguments and answers that are kept, and the key of the audit's digests.",
      exits: { 0: "the backup is there, and verified", 4: "there is none" },
      examples: ["callgate backup --config callgate.toml --to /backup/monday.backup"],
    },
    {
      words: "restore",
      about: "Puts a backup in place of the state, for a daemon that does not run; begins a new epoch.",
      reaches: false,
      run: async () => {
        const { restore } = await import("./backup.ts");
        return async (terminal, _, flags) => {
          const from = textOf(flags, "from") ?? "";
          const replace = flags["replace"] === true;
          return restore(terminal, { ...named(flags), from, replace }, await host());
        };
      },
      options: [
        CONFIG_OPTION,
        { flags: "--from <file>", about: "the backup", required: true },
        { flags: "--replace", about: "also where there is a state already, which is kept aside" },
        JSON_OPTION,
      ],
      help: "Calls up to now are refused afterwards, so that none runs twice; what happened since the backup is forgotten.",
      exits: { 0: "it is restored", 4: "the state is as it was" },
      examples: [
        "callgate restore --config callgate.toml --from /backup/monday.backup",
        "callgate restore --config callgate.toml --from /backup/monday.backup --replace",
      ],
    },
  ];
}
