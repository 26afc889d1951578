// `callgate backup` and `callgate restore`: what they say. The work is the host's, handed in by program.ts.

import { visibleLine } from "../base/display.ts";
import { withProgress } from "./progress.ts";
import { type Dialogue, EXIT, type Terminal } from "./terminal.ts";

/** As the host has it: a string says why nothing was done. `onStep` is told what is begun. */
export interface BackupHost {
  backup(config: string, to: string, onStep: (step: string) => void): Promise<BackupReport | string>;
  restore(
    config: string,
    from: string,
    replace: boolean,
    onStep: (step: string) => void,
  ): Promise<RestoreReport | string>;
}

interface BackupReport {
  readonly path: string;
  readonly bytes: number;
  readonly records: number;
  readonly checkpoint: string;
}

interface RestoreReport {
  readonly state: string;
  readonly checkpoint: string;
  readonly floor: string;
  readonly keptAside: string | undefined;
  readonly unread: boolean;
  readonly voided: number;
  readonly closed: number;
  readonly takenBack: number;
}

export interface BackupFlags {
  readonly config: string;
  readonly to: string;
  readonly json?: boolean;
}

export interface RestoreFlags {
  readonly config: string;
  readonly from: string;
  readonly replace?: boolean;
  readonly json?: boolean;
}

export async function backup(terminal: Dialogue, flags: BackupFlags, host: BackupHost): Promise<number> {
  const report = await withProgress(terminal, "backup", (progress) =>
    host.backup(flags.config, flags.to, (step) => progress.at(`backup: ${step}`)),
  );
  return tell(terminal, flags, report, backupText);
}

export async function restore(terminal: Dialogue, flags: RestoreFlags, host: BackupHost): Promise<number> {
  const report = await withProgress(terminal, "restore", (progress) =>
    host.restore(flags.config, flags.from, flags.replace === true, (step) => progress.at(`restore: ${step}`)),
  );
  return tell(terminal, flags, report, restoreText);
}

function tell<R>(
  terminal: Terminal,
  { json }: { readonly json?: boolean },
  report: R | string,
  text: (report: R) => string,
): number {
  if (typeof report === "string") {
    terminal.err(`callgate: ${visibleLine(report, 1000)}\n`); // the sentence names what to do
    return EXIT.failed;
  }
  terminal.out(json === true ? `${JSON.stringify(report)}\n` : text(report));
  return EXIT.ok;
}

function backupText({ path, bytes, records, checkpoint }: BackupReport): string {
  return (
    `backup taken and verified: ${visibleLine(path, 500)}, ${bytes} bytes, ${records} audit records\n` +
    `its audit ends at ${checkpoint}\n`
  );
}

function restoreText(report: RestoreReport): string {
  const { state, checkpoint, floor, keptAside, unread, voided, closed, takenBack } = report;
  const aside = keptAside === undefined ? "" : `the state before is kept in ${visibleLine(keptAside, 500)}\n`;
  const lost = unread
    ? "the state before could not be read: taint and freezes that it alone knew are lost\n"
    : "";
  return (
    `restored into ${visibleLine(state, 500)}; the backup's audit ended at ${checkpoint}\n${aside}${lost}` +
    `a new epoch begins: calls with ids up to ${floor} are refused as conflict\n` +
    `void: ${voided} waiting questions; closed: ${closed} sessions; taken back: ${takenBack} grants given at run time\n` +
    "what happened since the backup is forgotten: look at frozen roles and taint before agents come back\n"
  );
}
