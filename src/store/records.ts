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

export interface CallRecord {
  readonly key: CallKey;
  readonly tool: string;
  /** The caller's string, byte for byte: what a retry is compared with. */
  readonly arguments: string;
  /** Of the peer that asked first; undefined where the kernel did not say. */
  readonly uid: number | undefined;
  state: CallState;
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
}

/** What is written down for its own sake. That a call was decided, dispatched and ended is told by its changes. */
export type AuditRecord =
  | { readonly kind: "decision"; readonly decision: DecisionRecord }
  | { readonly kind: "delivery"; readonly key: CallKey; readonly how: "joined" | "replayed" }
  | { readonly kind: "change"; readonly what: string; readonly by: string; readonly subject: string };

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
    }
  /** Nothing ran after all: the intent is taken back, and the id is as good as unused. */
  | { readonly kind: "withdrawn"; readonly record: CallRecord }
  | { readonly kind: "message"; readonly record: CallRecord; readonly message: Buffer }
  /** The final message. The labels of all its messages are in the record. */
  | {
      readonly kind: "outcome";
      readonly record: CallRecord;
      readonly message: Buffer;
      readonly status: "result" | "failed" | "denied";
      readonly code: FailCode | undefined;
      readonly atMs: number;
    }
  | { readonly kind: "taint"; readonly scope: TaintScope; readonly labels: Labels; readonly by: CallKey }
  | { readonly kind: "session_opened"; readonly session: SessionRecord }
  | { readonly kind: "session_closed"; readonly role: string; readonly id: string }
  | {
      readonly kind: "frozen";
      readonly role: string;
      readonly session: string | undefined;
      readonly frozen: boolean;
    }
  | { readonly kind: "pinned"; readonly pin: PinRecord }
  | { readonly kind: "audit"; readonly record: AuditRecord };
