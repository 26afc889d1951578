// The shapes of what the built-in tools answer, as far as the commands read them: the broker's own
// words, with peers' text within. Ids of calls are decimal strings, times milliseconds since 1970.

export interface Labelled {
  readonly class: string;
  readonly untrusted: boolean;
}

export interface CallName {
  readonly role?: string;
  readonly session: string;
  readonly call: string;
}

export interface Question {
  readonly approval: string;
  readonly role: string;
  readonly uid: number | null;
  readonly pid: number | null;
  readonly session: string;
  readonly call: string;
  readonly tool: string;
  readonly effect: string;
  readonly state: string;
  readonly asked_at_ms: number;
  readonly expires_at_ms: number;
  readonly row: string;
  readonly grants: readonly string[];
  readonly destinations: Readonly<Record<string, unknown>>;
  readonly decided_by: Actor | string | null;
  readonly decided_at_ms: number | null;
}

export interface Actor {
  readonly role: string;
  readonly uid: number | null;
}

export interface Questions {
  readonly approvals: readonly Question[];
  readonly version?: unknown;
  /** There are others that are not in the list. */
  readonly more?: boolean;
}

export interface Remembering {
  readonly allowed: boolean;
  /** Where it is not: why. */
  readonly why?: string | null;
  readonly number_needed: boolean;
  readonly arguments: { readonly covers: string };
  readonly tool: { readonly covers: string };
  /** Until when at the latest. */
  readonly expires_max_ms: number | null;
}

export interface WholeQuestion extends Question {
  /** Empty where it no longer waits. */
  readonly digest: string;
  /** The stored text, exact; empty where it is no longer kept. */
  readonly arguments: string;
  readonly taint: Labelled;
  readonly asked_taint: Labelled;
  readonly raised_by: CallName | null;
  readonly definition: string | null;
  readonly policy: string;
  readonly asks: readonly {
    readonly grant: string;
    readonly reason: string | null;
    readonly when: string | null;
    readonly remember: boolean;
  }[];
  readonly doubt: (CallName & { readonly code: string | null; readonly ended_at_ms: number | null }) | null;
  readonly store_changes: readonly (CallName & { readonly tool: string; readonly at_ms: number })[];
  readonly remember: Remembering;
  /** What approving it would come to now: `holds`, or why it does not run. */
  readonly now?: { readonly verdict: string; readonly why: string | null } | null;
}

/** Labels in words: `confidential, untrusted`. */
export function labelsText({ class: dataClass, untrusted }: Labelled): string {
  return `${dataClass}, ${untrusted ? "untrusted" : "trusted"}`;
}

/** A call in words that the commands take. */
export function callText({ role, session, call }: CallName): string {
  return `${role === undefined ? "" : `${role}, `}session ${session}, call ${call}`;
}
