// Shapes of what the broker must not forget. Values only; who writes them when is the broker's.

import type { FailCode } from "../base/faults.ts";
import type { Labels } from "../base/labels.ts";

/** A call is (role, session, call): named once for good. */
export interface CallKey {
  readonly role: string;
  readonly session: string;
  readonly call: bigint;
}

export type CallState = "dispatched" | "ended";

/** Who did something: a user in a role; the host itself is `HOST`. */
export interface Actor {
  readonly role: string;
  /** undefined: the kernel did not say. */
  readonly uid: number | undefined;
}

/** No role can have this name. */
export const HOST: Actor = { role: "[host]", uid: undefined };

export type CallStatus = "result" | "failed" | "denied";

export interface CallRecord {
  readonly key: CallKey;
  readonly tool: string;
  /** The caller's string, byte for byte: what a retry is compared with. */
  readonly arguments: string;
  /** Of the peer that asked first; undefined where the kernel did not say. */
  readonly uid: number | undefined;
  /** false: a harmless read whose owner prefers speed (`record = "memory"`); a restart forgets it. Its audit is written all the same. */
  readonly durable: boolean;
  /**
   * What equal calls of a role have in common, whatever their ids and the spelling of their arguments:
   * `equalDigest` of tool and parsed arguments. undefined for a `read`, and for the broker's own tools.
   */
  readonly equal: string | undefined;
  /** When it was decided. */
  readonly askedAtMs: number;
  state: CallState;
  /** Set when it has ended. */
  status: CallStatus | undefined;
  /** With `failed`. */
  code: FailCode | undefined;
  /** Bytes of each message's `msg` as the caller got them, in order; `pending_approval` left out. */
  readonly messages: Buffer[];
  /** Of all messages together: joined into the taint on every delivery. */
  labels: Labels;
  endedAtMs: number;
}

export interface SessionRecord {
  readonly role: string;
  readonly id: string;
  /** The user's words that it was opened with. */
  readonly request: string | undefined;
  /** The taint of whoever wrote those words; undefined where there are none. */
  readonly requestLabels: Labels | undefined;
  readonly openedBy: string | undefined;
  readonly expiresAtMs: number | undefined;
}

/** What an operator or the config took as the definition of an announced tool. */
export interface PinRecord {
  readonly tool: string;
  readonly role: string;
  /** Lower-case hex SHA-256 of the canonical text of the definition. */
  readonly digest: string;
  /** Canonical JSON of the definition. */
  readonly definition: string;
  readonly acceptedBy: string;
}

/** What is written down about a call's decision: enough to say why. */
export interface DecisionRecord {
  readonly key: CallKey;
  readonly tool: string;
  readonly atMs: number;
  readonly verdict: "allow" | "ask" | "deny";
  readonly row: string;
  readonly grant: string | undefined;
  readonly denied: string | undefined;
  /** The owner's words on that grant, or the broker's own. */
  readonly reason: string | undefined;
  readonly taint: Labels;
  /** How the condition of that grant came out; `none`: it has none, or there is no grant. */
  readonly condition: "none" | "match" | "error";
}

/**
 * What is written down for its own sake. That a call was decided, dispatched, answered and ended, that
 * a question was asked and answered, and every other change of state is told by its change.
 */
export type AuditRecord =
  | { readonly kind: "decision"; readonly decision: DecisionRecord }
  /** Equal decisions since the last record of that kind, counted instead of repeated: denials, and what the broker itself reads. */
  | { readonly kind: "repeated"; readonly decision: DecisionRecord; readonly count: number }
  | {
      readonly kind: "delivery";
      readonly key: CallKey;
      readonly how: "joined" | "replayed";
      readonly to: Actor;
    }
  /** A request that failed before anything of it was dispatched; asked again it is decided afresh. */
  | {
      readonly kind: "failed";
      readonly key: CallKey;
      readonly tool: string;
      readonly code: FailCode;
      readonly count: number;
    }
  | {
      readonly kind: "peer_refused";
      readonly role: string;
      readonly uid: number | undefined;
      readonly pid: number | undefined;
      readonly why: string;
      readonly count: number;
    }
  | { readonly kind: "change"; readonly what: string; readonly by: Actor; readonly subject: string };

/** A session's state as it is kept; the taint is kept under its own scope. */
export interface StoredSession {
  readonly session: SessionRecord;
  readonly closed: boolean;
}

export type ApprovalState = "pending" | "approved" | "refused" | "expired" | "withdrawn" | "void";

/** A question to a human about one call, and what became of it. */
export interface ApprovalRecord {
  /** Unguessable. */
  readonly id: string;
  readonly key: CallKey;
  readonly tool: string;
  /** The exact stored bytes: what runs when it is approved. */
  readonly arguments: string;
  readonly equal: string;
  readonly uid: number | undefined;
  readonly pid: number | undefined;
  /** Digest of the pinned definition that it was asked under. */
  readonly definition: string | undefined;
  /** The grants whose question it is (ids), and the row that asked. */
  readonly grants: readonly string[];
  readonly row: string;
  readonly policy: string;
  /** The session's taint when it was asked, and the call that raised it. */
  readonly taint: Labels;
  readonly raisedBy: CallKey | undefined;
  /** The equal call whose outcome nobody knows: why it is asked although a grant allows it. */
  readonly doubt: CallKey | undefined;
  readonly askedAtMs: number;
  readonly expiresAtMs: number;
  readonly state: ApprovalState;
  /** Set when it is no longer pending and somebody decided. */
  readonly decidedBy: Actor | undefined;
  readonly decidedAtMs: number | undefined;
  /** Of a refused one: until then an equal call of the role is refused without asking. */
  readonly refusedUntilMs: number | undefined;
}

/** A grant that lives in the store: the policy's Grant without what is compiled, and where it came from. */
export interface StoredGrant {
  readonly id: string;
  readonly role: string;
  readonly tools: readonly string[];
  readonly sessions: readonly string[];
  readonly effect: "allow" | "ask" | "deny";
  /** Source of its condition. */
  readonly when: string | undefined;
  readonly taintMax: Labels | undefined;
  readonly aboveTaint: "deny" | "ask";
  readonly expiresAtMs: number | undefined;
  readonly maxCalls: { readonly calls: number; readonly perMs: number | undefined } | undefined;
  readonly remembers: string | undefined;
  readonly equal: string | undefined;
  readonly reason: string | undefined;
  readonly by: Actor;
  /** Of its words: what their writer had been given when it wrote them. */
  readonly labels: Labels;
  readonly addedAtMs: number;
  /** The approval that it remembers; undefined for one that was added. */
  readonly approval: string | undefined;
}

/** How often a grant with `max_calls` was used in the period that began at `sinceMs`. */
export interface GrantUses {
  readonly grant: string;
  readonly sinceMs: number;
  readonly used: number;
}

/** Whose taint: a role's own, a session's, or a store's (with the item's key, where items are told apart). */
export type TaintScope =
  | { readonly of: "role"; readonly role: string }
  | { readonly of: "session"; readonly role: string; readonly session: string }
  | { readonly of: "store"; readonly store: string; readonly key: string | undefined };

export type Change =
  /** Decided so, and about to reach that provider (undefined: a tool of the broker's own). */
  | {
      readonly kind: "intent";
      readonly record: CallRecord;
      readonly decision: DecisionRecord;
      readonly provider: string | undefined;
      /** Digest of the tool's pinned definition, where it was announced. */
      readonly definition?: string | undefined;
      /** The approval that released it. */
      readonly approval?: string | undefined;
      /** The values of these top-level arguments go into the audit as they are (`audit_arguments`), the rest as digest and length. */
      readonly clear?: readonly string[];
    }
  /** Nothing ran after all: the intent is taken back, and the id is as good as unused. */
  | { readonly kind: "withdrawn"; readonly record: CallRecord }
  | { readonly kind: "message"; readonly record: CallRecord; readonly message: Buffer }
  /** The final message. The labels of all its messages are in the record. */
  | {
      readonly kind: "outcome";
      readonly record: CallRecord;
      readonly message: Buffer;
      readonly status: CallStatus;
      readonly code: FailCode | undefined;
      readonly atMs: number;
      /** Who is about to hear it; nobody where all have gone. */
      readonly to?: readonly Actor[];
      /** An operator wrote it in place of an outcome that nobody knew. */
      readonly settledBy?: Actor;
    }
  | { readonly kind: "taint"; readonly scope: TaintScope; readonly labels: Labels; readonly by: CallKey }
  /** The only change that lowers a taint. */
  | {
      readonly kind: "endorsed";
      readonly scope: TaintScope;
      readonly before: Labels;
      readonly labels: Labels;
      readonly by: Actor;
      readonly reason: string | undefined;
    }
  | { readonly kind: "session_opened"; readonly session: SessionRecord; readonly by: Actor }
  | { readonly kind: "session_closed"; readonly role: string; readonly id: string; readonly by: Actor }
  | {
      readonly kind: "frozen";
      readonly role: string;
      readonly session: string | undefined;
      readonly frozen: boolean;
      readonly by: Actor;
    }
  | { readonly kind: "pinned"; readonly pin: PinRecord; readonly by: Actor }
  /** Asked, answered, expired, withdrawn or void: the whole record as it is from now on. */
  | { readonly kind: "approval"; readonly approval: ApprovalRecord }
  /** Ended for so long that nothing asks for it any more. Not audited. */
  | { readonly kind: "approval_forgotten"; readonly id: string }
  | { readonly kind: "grant_added"; readonly grant: StoredGrant }
  | {
      readonly kind: "grant_gone";
      readonly id: string;
      readonly why: "revoked" | "expired" | "used_up";
      readonly by: Actor;
    }
  /** Not audited: each use is told by the call that used it. `uses` undefined: forgotten. */
  | { readonly kind: "grant_used"; readonly grant: string; readonly uses: GrantUses | undefined }
  | { readonly kind: "audit"; readonly record: AuditRecord };
