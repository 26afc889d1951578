// What exit statuses mean, in words: the one table that help, manual and docs/shell.md have them from.

import { EXIT } from "./terminal.ts";

export interface ExitStatus {
  readonly status: number;
  readonly means: string;
}

const MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: "it is done: a result, or an answer that is good news",
  connection: "no connection to the broker, or it was lost",
  usage: "wrong use: nothing was asked or done",
  denied: "denied by the policy",
  failed: "it failed, or the answer is bad news",
  refused: "a person was asked, and said no",
  expired: "a person was asked, and nobody answered in time",
  interrupted: "ended by ctrl-C",
};

/** Of every command, by number. */
export const EXIT_STATUSES: readonly ExitStatus[] = Object.entries(EXIT)
  .map(([name, status]) => ({ status, means: MEANINGS[name as keyof typeof EXIT] })) // the keys are EXIT's own
  .toSorted((a, b) => a.status - b.status);
