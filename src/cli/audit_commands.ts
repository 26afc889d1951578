// The rows of `callgate audit …`. What can also be done without a broker is handed in: only program.ts
// knows the host.

import type { OfflineAudit } from "./audit.ts";
import { type CommandRow, LIMIT_OPTION, OF_OPTION } from "./command_row.ts";

const CHECKPOINT = {
  flags: "--checkpoint <seq:hash>",
  about: "a record that must be there, as `audit checkpoint` or the log named it",
};

const EXPORT_HELP = `
Each line is {"hash":HASH,"record":RECORD}. HASH is the SHA-256, in lower-case hex, over the hash of the line before (64
zeros before the first) and the bytes of RECORD as they stand there. Without filters the lines can be verified by
anybody: callgate audit verify --file FILE, or sha256sum. docs/audit.md says more.`;

export function auditRows(offline: () => Promise<OfflineAudit>): readonly CommandRow[] {
  return [
    {
      words: "audit checkpoint",
      about: "Where the audit's chain stands now: note it elsewhere, and a cut end will be found.",
      tool: "callgate.audit.checkpoint",
      args: () => ({}),
      view: async () => (await import("./audit.ts")).checkpointText,
      examples: ["callgate audit checkpoint --socket run/operator.sock >> /mnt/elsewhere/checkpoints"],
    },
    {
      words: "audit verify",
      about: "Whether the audit is whole, and if not, exactly what is wrong.",
      run: async () => {
        const { verifyAudit } = await import("./audit.ts");
        return (terminal, words, flags) => verifyAudit(terminal, words, flags, offline);
      },
      options: [
        CHECKPOINT,
        { flags: "--log <file>", about: "takes the newest checkpoint from the daemon's log" },
        { flags: "--file <file>", about: "an export without filters, instead of the broker's audit" },
        {
          flags: "--state <directory>",
          about: "a state directory or a backup, for a daemon that does not run",
        },
      ],
      exits: { 0: "the chain holds", 4: "it does not, or it could not be read" },
      examples: [
        "callgate audit verify --socket run/operator.sock",
        "callgate audit verify --log callgate.log --socket run/operator.sock  # nothing cut off since the log's last checkpoint?",
        "callgate audit verify --state /backup/monday.backup  # without a broker",
      ],
    },
    {
      words: "audit export",
      about: "The audit's records as JSON Lines on standard output.",
      run: async () => (await import("./audit.ts")).exportAudit,
      options: [
        { flags: "--since <time>", about: "from that time on, e.g. 2026-11-30T08:00:00Z" },
        { flags: "--until <time>", about: "before that time" },
        { flags: "--role <role>", about: "only records about this role" },
        { ...OF_OPTION, about: "only records about this session" },
        { flags: "--tool <tool>", about: "only records about this tool" },
        { flags: "--decision <decision>", about: "only such decisions", choices: ["allow", "ask", "deny"] },
        { ...LIMIT_OPTION, about: "at most so many records" },
      ],
      help: EXPORT_HELP,
      examples: [
        "callgate audit export --socket run/operator.sock > audit.jsonl",
        "callgate audit export --since 2026-11-30T08:00:00Z --decision deny | jq .record",
      ],
    },
  ];
}
