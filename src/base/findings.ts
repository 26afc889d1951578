// What `callgate doctor` tells: one thing that is wrong, or could not be looked at, and what one check came to. Made where a
// check looks (host, cli), shown by the command.
// Invariant: the texts are ours, or `visibleLine` was applied to what is not; a remedy is a command line as it can be typed.

/**
 * `error`: it does not work, or is not safe. `warning`: it works, and will not for long or not in every case. `unseen`: this
 * user, or this machine, can't tell. `note`: nothing is wrong; somebody may want to know.
 */
export type Severity = "error" | "warning" | "unseen" | "note";

export interface Finding {
  readonly severity: Severity;
  /** Stable, for programs. */
  readonly code: string;
  /** What is so: a sentence without its full stop. */
  readonly what: string;
  /** Why it matters, likewise. */
  readonly why: string;
  /** Command lines that mend it, in their order; a line that begins with `#` tells what no command does. */
  readonly mend: readonly string[];
}

/** What one check came to. */
export interface Examined {
  readonly check: string;
  /** What was looked at, where nothing is wrong with it. */
  readonly summary: string;
  readonly findings: readonly Finding[];
}

type Told = Omit<Finding, "severity">;

export function errorFinding(told: Told): Finding {
  return { severity: "error", ...told };
}

export function warningFinding(told: Told): Finding {
  return { severity: "warning", ...told };
}

export function unseenFinding(told: Told): Finding {
  return { severity: "unseen", ...told };
}

export function noteFinding(told: Told): Finding {
  return { severity: "note", ...told };
}

const RANK: Readonly<Record<Severity, number>> = { error: 3, warning: 2, unseen: 1, note: 0 };

/** The worst of them; `ok` where there is none, or notes alone. */
export function worstOf(findings: readonly Finding[]): Severity | "ok" {
  const worst = findings.reduce<Severity>(
    (found, { severity }) => (RANK[severity] > RANK[found] ? severity : found),
    "note",
  );
  return worst === "note" ? "ok" : worst;
}
