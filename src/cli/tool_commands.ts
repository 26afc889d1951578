// The rows of `callgate tools`.

import type { CommandRow, Flags } from "./command_row.ts";
import type { Dialogue } from "./terminal.ts";

export const TOOL_ROWS: readonly CommandRow[] = [
  {
    words: "tools list",
    about: "The tools that this role may call, in some way; an operator's: all.",
    tool: "callgate.tools.list",
    args: (_, flags) => ({ prefix: flags["prefix"] }),
    view: async () => (await import("./tool_views.ts")).toolTable,
    options: [{ flags: "--prefix <text>", about: "only names that begin so" }],
    examples: ["callgate tools list", "callgate tools list --prefix mail. --json | jq -r .tools[].name"],
  },
  {
    words: "tools diff <tool>",
    about: "An announced definition beside the pinned one; or all below a prefix that wait.",
    takes: { tool: "its name, or a prefix: fs.*" },
    run:
      async () =>
      (terminal, [tool = ""], flags) =>
        diff(terminal, tool, flags),
    examples: [
      "callgate tools diff mail.send",
      "callgate tools diff 'fs.*'  # all that wait, and last what accepts these very ones",
    ],
  },
  {
    words: "tools accept <tool> <digest>",
    about: "Puts that very definition into service; or all below a prefix, as they were shown.",
    takes: { tool: "its name, or a prefix: fs.*", digest: "as tools diff shows it, of that tool or of all" },
    run:
      async () =>
      (terminal, [tool = "", digest = ""], flags) =>
        accept(terminal, tool, digest, flags),
    examples: [
      "callgate tools accept mail.send DIGEST  # the one that tools diff shows",
      "callgate tools accept 'fs.*' DIGEST  # the one in the last line of tools diff 'fs.*'",
    ],
    exits: {
      4: "no such definition waits, or what waits below the prefix has changed: nothing was accepted",
    },
  },
];

async function diff(terminal: Dialogue, tool: string, flags: Flags): Promise<number> {
  const [{ diffBundle, prefixOf }, { operate }] = await Promise.all([
    import("./tool_bundle.ts"),
    import("./operate.ts"),
  ]);
  const prefix = prefixOf(tool);
  if (prefix === undefined) return operate(terminal, flags, "callgate.tools.diff", { tool });
  return diffBundle(terminal, flags, prefix);
}

async function accept(terminal: Dialogue, tool: string, digest: string, flags: Flags): Promise<number> {
  const [{ acceptBundle, prefixOf }, { operate }, { acceptedText }] = await Promise.all([
    import("./tool_bundle.ts"),
    import("./operate.ts"),
    import("./tool_views.ts"),
  ]);
  const prefix = prefixOf(tool);
  if (prefix !== undefined) return acceptBundle(terminal, flags, prefix, digest);
  return operate(terminal, flags, "callgate.tools.accept", { tool, digest }, { view: acceptedText });
}
