// The rows of `callgate install` and `callgate uninstall`. How a config is read is handed in: only program.ts knows the
// host.

import type { CommandRow, OptionRow } from "./command_row.ts";
import type { ReadConfig } from "./install.ts";

const ROOT_OPTION: OptionRow = {
  flags: "--root <directory>",
  about: "a machine's files below that directory, instead of this machine's",
};
const DRY_OPTION: OptionRow = { flags: "--dry-run", about: "shows what would be done, and does nothing" };

const HELP = `
It writes units for the broker, a socket for each role of the config (of the role's group, with the mode that the config has), a template for
each kind of program, and the users and directories that they need. Run it again after the config's roles have changed: what is right stays as
it is, and so does a file that somebody has changed by hand.

--files, --server and --mcp say what a role's program serves, in a drop-in beside its template; for the others there are
callgate-model@ROLE, callgate-program@ROLE, callgate-console@USER and callgate-connector.`;

export function installRows(read: () => Promise<ReadConfig>): readonly CommandRow[] {
  return [
    {
      words: "install [command...]",
      about: "Writes systemd's files for the roles of a config, and says what to do with them.",
      takes: { command: "with --mcp: the server's command and its arguments, after --" },
      reaches: false,
      run: async () => {
        const [{ install }, { runCommand }, { thisInstallHost }] = await Promise.all([
          import("./install.ts"),
          import("./install_steps.ts"),
          import("./install_host.ts"),
        ]);
        return async (terminal, words, flags) =>
          install(terminal, words, flags, { read: await read(), host: thisInstallHost(), run: runCommand });
      },
      options: [
        { flags: "--config <file>", about: "the daemon's config (default: /etc/callgate/callgate.toml)" },
        {
          flags: "--files <role=root>",
          about: "the directory that a role's files provider serves, as its --root has it",
          repeats: true,
        },
        {
          flags: "--server <role=file>",
          about:
            "the role of an MCP server, and the file of callgate init --from-mcp that says how it is reached",
          repeats: true,
        },
        { flags: "--mcp <role>", about: "the role of an MCP server, whose command stands after --" },
        { flags: "--url <url>", about: "with --mcp: a server with a URL, instead of a command" },
        { flags: "--network", about: "with --mcp: the server may use the network" },
        {
          flags: "--env <variable>",
          about: "with --mcp: a variable for the server: NAME=VALUE",
          repeats: true,
        },
        {
          flags: "--read <path>",
          about: "with --mcp: what the server may read, beside programs",
          repeats: true,
        },
        { flags: "--write <path>", about: "with --mcp: what it may write", repeats: true },
        ROOT_OPTION,
        { flags: "--now", about: "also makes the users, enables and starts everything" },
        { flags: "--force", about: "also over files that were changed by hand" },
        DRY_OPTION,
      ],
      exits: { 4: "the config has a mistake, something could not be written or started, or a file was kept" },
      help: HELP,
      examples: [
        "callgate install --dry-run  # what would be written for /etc/callgate/callgate.toml",
        "callgate install --files files=trusted:/srv/docs --now",
        "callgate install --mcp memory -- npx -y @modelcontextprotocol/server-memory",
        "callgate install --root /tmp/image  # by the config /tmp/image/etc/callgate/callgate.toml",
      ],
    },
    {
      words: "uninstall",
      about: "Ends what callgate install has started, and removes what it has written. The state stays.",
      reaches: false,
      run: async () => {
        const [{ uninstall }, { runCommand }] = await Promise.all([
          import("./uninstall.ts"),
          import("./install_steps.ts"),
        ]);
        return (terminal, _, flags) => uninstall(terminal, flags, runCommand);
      },
      options: [
        ROOT_OPTION,
        { flags: "--purge", about: "also the state: calls, taints, approvals and the audit" },
        { flags: "--force", about: "also files that were changed by hand" },
        DRY_OPTION,
      ],
      exits: { 4: "something was kept, or could not be removed" },
      examples: ["callgate uninstall --dry-run", "callgate uninstall --purge  # and forget everything"],
    },
  ];
}
