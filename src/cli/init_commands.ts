// The rows of `callgate init`.

import type { CommandRow } from "./command_row.ts";

const INIT_HELP = `
There are two kinds of start:

A tryout (--here, the rule outside of /etc) has everything in the directory and is run by one user, who plays every
part: callgate init demo && callgate serve --config demo/callgate.toml

A service (--service, the rule below /etc) gives each role a user of its own, and comes with hardened systemd units, the
users (sysusers.d) and the directories (tmpfiles.d). init makes files in the directory, and changes nothing else on the
machine: what to do with them it says at the end.

--provider NAME=ROOT serves a directory with callgate role files; ROOT is as in its --root, and may be given again for the
same name. --provider NAME is a program of your own that announces its tools: it gets a role, and a template of a unit.

Nothing is written over. Either all is written or nothing.`;

export const INIT_ROWS: readonly CommandRow[] = [
  {
    words: "init [directory]",
    about: "Writes a config to begin with, and systemd's files for the roles that you name.",
    takes: { directory: "where, made if it is not there (default: callgate)" },
    reaches: false,
    run: async () => {
      const { initialise } = await import("./init.ts");
      return (terminal, words, flags) => initialise(terminal, words, flags);
    },
    options: [
      {
        flags: "--caller <name>",
        about: "a role that calls tools (default: agent)",
        repeats: true,
      },
      {
        flags: "--provider <name[=root]>",
        about: "a role that provides tools: files of a directory, or a program of yours (default: files)",
        repeats: true,
      },
      {
        flags: "--operator <user>",
        about: "a user of this machine who keeps a service and answers questions",
        repeats: true,
      },
      { flags: "--here", about: "a tryout: all of it in the directory, by this user", excludes: "service" },
      { flags: "--service", about: "for systemd: each role a user of its own", excludes: "here" },
      { flags: "--print", about: "shows what would be written, and writes nothing" },
    ],
    examples: [
      "callgate init demo  # a tryout in ./demo",
      "callgate init /etc/callgate --operator alice  # a service, with an agent and a provider of files",
      "callgate init /etc/callgate --caller agent --provider files=trusted:/srv/docs --provider mail --operator alice",
    ],
    exits: { 4: "something is there already, or could not be written" },
    help: INIT_HELP,
  },
];
