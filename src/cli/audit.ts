// `callgate audit …`: checkpoints, verification (by the broker, or without one over a file or a state
// directory) and export.

import { open } from "node:fs/promises";
import { visibleLine } from "../base/display.ts";
import type { AuditVerdict } from "../client/answers.ts";
import { UsageFault, withCaller } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import { askBroker, show } from "./operate.ts";
import { type Look, PLAIN } from "./paint.ts";
import { withProgress } from "./progress.ts";
import { type Dialogue, EXIT, lookOf } from "./terminal.ts";

/** What the host does without a daemon. A string says why it can't, in a sentence for people. */
export interface OfflineAudit {
  /** Lines of an export without filters. */
  verifyFile(path: string, checkpoint: string | undefined): Promise<AuditVerdict | string>;
  /** A state directory, or a backup of one. */
  verifyState(directory: string, checkpoint: string | undefined): Promise<AuditVerdict | string>;
}

const CHECKPOINT = /^(?:0|[1-9][0-9]{0,19}):[0-9a-f]{64}$/;

/** Nothing but what `--checkpoint` takes. */
export function checkpointText(value: unknown): string {
  const { seq, hash } = value as { readonly seq: string; readonly hash: string };
  return `${visibleLine(`${seq}:${hash}`)}\n`;
}

export async function verifyAudit(
  terminal: Dialogue,
  _: Words,
  flags: Flags,
  offline: () => Promise<OfflineAudit>,
): Promise<number> {
  const { file, state } = flags as { readonly file?: string; readonly state?: string };
  if (file !== undefined && state !== undefined) throw new UsageFault("give --file or --state, not both");
  const checkpoint = await checkpointOf(flags);
  if (file !== undefined || state !== undefined) {
    const verdict = await withProgress(
      terminal,
      `verifying ${visibleLine(file ?? state ?? "")}`,
      async () => {
        const { verifyFile, verifyState } = await offline();
        return file === undefined ? verifyState(state ?? "", checkpoint) : verifyFile(file, checkpoint);
      },
    );
    return judged(terminal, flags, verdict);
  }
  return withCaller(terminal, flags, async (caller) => {
    const answer = await withProgress(terminal, "the broker verifies its audit", () =>
      askBroker(caller, flags, "callgate.audit.verify", { checkpoint }),
    );
    if ("fault" in answer) return answer.fault(terminal);
    show(terminal, flags, answer, verdictText, terminal.nowMs());
    return (answer.value as AuditVerdict).ok ? EXIT.ok : EXIT.failed;
  });
}

function judged(terminal: Dialogue, flags: Flags, verdict: AuditVerdict | string): number {
  if (typeof verdict === "string") {
    terminal.err(`callgate: ${verdict}\n`);
    return EXIT.failed;
  }
  const text = () => verdictText(verdict, terminal.nowMs(), lookOf(terminal));
  terminal.out(flags.json === true ? `${JSON.stringify(verdict)}\n` : text());
  return verdict.ok ? EXIT.ok : EXIT.failed;
}

export function verdictText(value: unknown, _: number, { paint }: Look = PLAIN): string {
  const { records, first_seq: first, last_seq: last, finding } = value as AuditVerdict;
  const range = Number(records) === 0 ? "no records" : `${records} records, ${first} to ${last}`;
  if (finding === null) return `${paint("good", "the audit holds")}: ${visibleLine(range)}\n`;
  const before = finding.kind.startsWith("checkpoint") ? "" : ` (${range} before it hold)`;
  return `${paint("bad", "the audit does NOT hold")}: ${visibleLine(finding.sentence, 500)}${visibleLine(before)}\n`;
}

async function checkpointOf(flags: Flags): Promise<string | undefined> {
  const { checkpoint, log } = flags as { readonly checkpoint?: string; readonly log?: string };
  if (checkpoint !== undefined && log !== undefined)
    throw new UsageFault("give --checkpoint or --log, not both");
  if (log !== undefined) return newestCheckpoint(log);
  if (checkpoint !== undefined && !CHECKPOINT.test(checkpoint))
    throw new UsageFault("--checkpoint must be SEQ:HASH, a record's number and 64 hex digits");
  return checkpoint;
}

/** The one of the highest number among the log's lines; syslog prefixes and other programs' lines are passed over. */
async function newestCheckpoint(path: string): Promise<string> {
  let newest: { readonly seq: bigint; readonly text: string } | undefined;
  try {
    const file = await open(path);
    // Read to its end it closes itself.
    for await (const line of file.readLines()) {
      const found = readCheckpointLine(line);
      if (found !== undefined && found.seq >= (newest?.seq ?? 0n)) newest = found;
    }
  } catch {
    throw new UsageFault(`the log ${JSON.stringify(path)} can't be read`);
  }
  if (newest === undefined) throw new UsageFault(`the log ${JSON.stringify(path)} has no audit.checkpoint`);
  return newest.text;
}

function readCheckpointLine(line: string): { readonly seq: bigint; readonly text: string } | undefined {
  const start = line.indexOf("{");
  if (start < 0 || !line.includes('"audit.checkpoint"')) return undefined;
  try {
    const { event, seq, hash } = JSON.parse(line.slice(start)) as Readonly<Record<string, unknown>>;
    const text = `${String(seq)}:${String(hash)}`;
    if (event !== "audit.checkpoint" || !CHECKPOINT.test(text)) return undefined;
    return { seq: BigInt(String(seq)), text };
  } catch {
    return undefined;
  }
}

/** All pages, each written before the next is asked for. */
export async function exportAudit(terminal: Dialogue, _: Words, flags: Flags): Promise<number> {
  const filter = {
    since_ms: timeOf(flags, "since"),
    until_ms: timeOf(flags, "until"),
    role: flags["role"],
    session: flags["of"],
    tool: flags["tool"],
    decision: flags["decision"],
  };
  let left = typeof flags["limit"] === "number" ? flags["limit"] : Number.POSITIVE_INFINITY;
  return withCaller(terminal, flags, (caller) =>
    withProgress(
      terminal,
      "export",
      async (progress) => {
        for (let from: unknown = "0", done = 0; ; ) {
          const args = { from_seq: from, limit: Math.min(left, PAGE_LINES), ...filter };
          const answer = await askBroker(caller, flags, "callgate.audit.export", args);
          if ("fault" in answer) return answer.fault(terminal);
          const { lines, next_seq: next } = answer.value as {
            readonly lines: readonly string[];
            readonly next_seq: unknown;
          };
          // Records are printable ASCII: nothing in them can move a terminal's cursor.
          for (const line of lines) terminal.out(`${line}\n`);
          left -= lines.length;
          done += lines.length;
          progress.at(`export: ${done} records`);
          if (next === null || left <= 0) return EXIT.ok;
          from = next;
        }
      },
      terminal.isTerminal, // the lines themselves show how far it is
    ),
  );
}

const PAGE_LINES = 1000;

function timeOf(flags: Flags, name: "since" | "until"): number | undefined {
  const given = flags[name];
  if (typeof given !== "string") return undefined;
  const ms = /^\d{4}-\d{2}-\d{2}/.test(given) ? Date.parse(given) : Number.NaN;
  if (Number.isNaN(ms) || ms < 0)
    throw new UsageFault(`--${name} must be a time such as 2026-11-30T08:00:00Z`);
  return ms;
}
