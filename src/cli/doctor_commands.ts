// The row of `callgate doctor`. What is looked at on the machine is handed in: only program.ts knows the host.

import type { CommandRow } from "./command_row.ts";
import type { DoctorHost } from "./doctor.ts";

const HELP = `
It looks at Node and the libraries that bring machine code, the config, the users and groups that it names, the sockets, the
state directory, its disk, the store and its audit, the clock, secrets, systemd's units, and asks a daemon that runs how it
is. Nothing is changed, and a daemon that runs is not disturbed. What this user may not see is told as such: root sees all.`;

export function doctorRows(host: () => Promise<DoctorHost>): readonly CommandRow[] {
  return [
    {
      words: "doctor",
      about: "Looks at this installation for what is wrong, and says how to mend each thing.",
      reaches: false,
      run: async () => {
        const { doctor } = await import("./doctor.ts");
        return (terminal, _, flags) => doctor(terminal, flags, host);
      },
      options: [
        { flags: "--config <file>", about: "the config, in TOML (default: /etc/callgate/callgate.toml)" },
        {
          flags: "--socket <path>",
          about: "the operator's socket (default: the one of the config, where this user may connect to it)",
        },
        { flags: "--user <name>", about: "the user that the daemon is or shall be, where it can't be told" },
        {
          flags: "--connector <file>",
          about: "a connector's config (default: /etc/callgate/connector.toml, if it is there)",
        },
        { flags: "--json", about: "one JSON object, for programs" },
      ],
      examples: [
        "callgate doctor",
        "callgate doctor --config demo/callgate.toml --socket demo/run/operator.sock",
        "callgate doctor --json | jq -r '.checks[].findings[] | select(.severity == \"error\").code'",
      ],
      exits: { 0: "nothing is broken; there may be warnings", 4: "at least one error" },
      help: HELP,
    },
    {
      words: "doctor-store <directory>",
      about: "Looks into a store, for callgate doctor: a damaged file may end the process that reads it.",
      reaches: false,
      hidden: true,
      run:
        async () =>
        async (terminal, [directory = ""], flags) => {
          const { tellStore } = await host();
          terminal.out(await tellStore(directory, Number(flags["owner"])));
          return 0;
        },
      options: [
        {
          flags: "--owner <uid>",
          about: "whose it is",
          parse: uidOf,
          wants: "It must be a number.",
          required: true,
        },
      ],
    },
  ];
}

function uidOf(text: string): number | undefined {
  return /^[0-9]{1,10}$/.test(text) ? Number(text) : undefined;
}
