// The shapes of what the built-in tools answer, as far as the commands and the console read them: the broker's own
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
  /** There are others that are not in the list: ask again with `after` the last of these, or better `next`. */
  readonly more?: boolean;
  /** What to give as `after` for the next page, whatever becomes of these questions meanwhile; null: there is none. */
  readonly next?: string | null;
  /** How many fit the filter, in this list or not; those that wait only. */
  readonly total?: number;
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

export interface CallLine {
  readonly role: string;
  readonly session: string;
  readonly call: string;
  readonly tool: string;
  readonly state: string;
  readonly status: string | null;
  readonly code: string | null;
  readonly asked_at_ms: number;
  readonly ended_at_ms: number | null;
}

export interface WholeCall extends CallLine {
  readonly arguments: string;
  readonly uid: number | null;
  readonly labels: Labelled;
  /** The JSON of each `msg`. */
  readonly messages: readonly string[];
  readonly messages_cut?: boolean;
  readonly decision: unknown;
}

/** What was decided about a call. */
export interface Why {
  readonly role?: string;
  readonly session: string;
  readonly call: string;
  readonly denied: string | null;
  readonly row: string;
  readonly grant: string | null;
  /** The owner's words on that grant; null also where only the audit tells of the decision, which does not hold them. */
  readonly reason: string | null;
  readonly taint: Labelled;
  /** null: of denials that were counted, where those were of several kinds. */
  readonly tool?: string | null;
  /** `unknown`: as with `tool`. */
  readonly verdict?: "allow" | "ask" | "deny" | "unknown";
  readonly at_ms?: number | null;
  /** How that grant's condition came out; `none`: it has none, or there is no grant. */
  readonly condition?: "none" | "match" | "error";
  /** The question that was asked about it, or whose approval released it. */
  readonly approval?: string | null;
  /** Of a question: the grants that ask. */
  readonly grants?: readonly string[];
  /**
   * Not null: no record names this call. Denials of its session that were counted instead of repeated, of which it
   * may be one; what is said above is then what they have in common.
   */
  readonly counted?: readonly CountedDenials[] | null;
  /** Whether the process remembered it, or the audit was looked at. */
  readonly from?: "memory" | "audit";
}

/** Denials of one kind within a minute. */
export interface CountedDenials {
  /** `(various)`: of many sessions and tools together. */
  readonly session: string;
  readonly first_call: string;
  /** Beyond the first. */
  readonly count: number;
  readonly tool: string;
  readonly verdict: string;
  /** When the minute was over. */
  readonly at_ms: number;
  readonly denied: string | null;
  readonly row: string;
  readonly grant: string | null;
  readonly condition: string;
  readonly taint: Labelled;
}

export interface SessionLine {
  readonly role: string;
  readonly session: string;
  readonly state: string;
  readonly taint: Labelled;
  readonly running: number;
  readonly waiting: number;
  readonly opened_by: string | null;
  readonly expires_at_ms: number | null;
  readonly last_used_at_ms: number | null;
}

/** What can be endorsed: its labels, and the version of them that was seen. */
export interface Tainted {
  readonly taint: Labelled;
  readonly version: number | string;
  readonly raised_by: CallName | null;
}

export interface WholeSession extends Tainted {
  readonly role: string;
  readonly session: string;
  readonly state: string;
  readonly role_taint?: Tainted;
  readonly taint_scope?: string | null;
  readonly opened_by: string | null;
  readonly request: string | null;
  readonly expires_at_ms: number | null;
  readonly watermark?: string | number | null;
  readonly questions_paused_until_ms?: number | null;
}

export interface WholeStore extends Tainted {
  readonly store: string;
  readonly item: string | null;
  readonly whole_taint: Labelled;
  readonly items:
    | readonly { readonly item: string; readonly taint: Labelled; readonly version: number }[]
    | null;
  readonly items_total: number;
}

export interface GrantLine {
  readonly id: string;
  readonly role: string;
  readonly effect: string;
  readonly tools: readonly string[];
  readonly sessions: readonly string[];
  readonly when: string | null;
  readonly taint_max: string | null;
  readonly taint_untrusted: boolean | null;
  readonly above_taint: string | null;
  readonly expires_at_ms: number | null;
  readonly expired: boolean;
  readonly reason: string | null;
  readonly runtime?: boolean;
  readonly by?: Actor | string | null;
  readonly added_at_ms?: number | null;
  readonly approval?: string | null;
  readonly max_calls?: {
    readonly calls: number;
    readonly per_ms: number | null;
    readonly used: number;
    readonly since_ms: number | null;
  } | null;
  readonly remembers?: string | null;
  readonly exact_arguments?: boolean;
}

export interface Status {
  readonly role: string;
  readonly draining: boolean;
  readonly policy: string;
  readonly policy_stale: boolean;
  readonly uptime_ms: number;
  /** From here on: for operators. */
  readonly version?: string | null;
  readonly policy_stale_because?: string | null;
  readonly running_calls?: number;
  readonly tools?: number;
  readonly grants?: number;
  readonly roles?: readonly RoleLine[];
  readonly warning?: string | null;
  readonly store?: { readonly condition: string };
  readonly pending_approvals?: number;
  readonly unknown_calls?: number;
  readonly audit?: { readonly seq: string | number };
}

export interface RoleLine {
  readonly role: string;
  readonly connections: number;
  readonly asking: number;
  readonly serving: number;
  readonly frozen: boolean;
  readonly frozen_sessions?: number;
  readonly taint: Labelled;
}

export interface ExplainedGrant {
  readonly grant: string;
  readonly effect: string;
  readonly failed: string | null;
  readonly condition: string | null;
  readonly condition_error: string | null;
  readonly expired: boolean;
  readonly within_taint: boolean | null;
  readonly spent?: boolean;
  /** The grant that remembers an approval of this ask. */
  readonly satisfied_by?: string | null;
}

export interface Explanation {
  readonly role: string;
  readonly session: string;
  readonly taint: { readonly class: string; readonly untrusted: boolean };
  readonly verdict: string;
  readonly row: string;
  readonly reason: string | null;
  readonly grant: string | null;
  readonly owner_says: string | null;
  readonly grants: readonly ExplainedGrant[];
}

/** What a verification came to, as the built-in tells it too. */
export interface AuditVerdict {
  readonly ok: boolean;
  readonly records: number;
  readonly first_seq: string;
  readonly last_seq: string;
  readonly finding: { readonly kind: string; readonly seq: string; readonly sentence: string } | null;
}

export interface CallsPage {
  readonly calls: readonly CallLine[];
  /** false: not all that are kept were looked at; go on with `before`. */
  readonly all_seen: boolean;
  /** What to give as `before` for the next page; null: there is none. */
  readonly next?: string | null;
}

/** One page of `callgate.audit.export`; each line is `{"hash":…,"record":{…}}`. */
export interface AuditPage {
  readonly lines: readonly string[];
  /** What to give as `from_seq` (backwards: as `before_seq`) for the next page; null: there is none. */
  readonly next_seq: string | null;
}

/** Labels in words: `confidential, untrusted`. */
export function labelsText({ class: dataClass, untrusted }: Labelled): string {
  return `${dataClass}, ${untrusted ? "untrusted" : "trusted"}`;
}

/** A call in words that the commands take. */
export function callText({ role, session, call }: CallName): string {
  return `${role === undefined ? "" : `${role}, `}session ${session}, call ${call}`;
}
