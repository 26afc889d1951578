// The messages that two processes exchange and the envelope around them, as values
// (spec: wire, Envelope). How they look as bytes: envelope.ts; their frames: frame.ts.

import type { DenyReason } from "../base/faults.ts";
import type { DataClass } from "../base/labels.ts";

export const PROTOCOL_VERSION = 1;

export const ERROR_CODES = ["bad_frame", "bad_version", "bad_message", "internal"] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/**
 * `T` is the type of the two texts that may be long and that the broker often only passes on
 * (`arguments`, `content`): `string` for everyone, `JsonString` (bytes not yet decoded) within the broker.
 */
export interface ToolRequest<T = string> {
  readonly session: string;
  /** u64; with the session it names one call for good. */
  readonly call: bigint;
  readonly tool: string;
  /** The model's JSON object as text; the codec never parses it. */
  readonly arguments: T;
}

export interface PendingApproval {
  readonly status: "pending_approval";
  readonly approval: string;
  /** u64, milliseconds since the Unix epoch. */
  readonly expires: bigint;
}

export interface ToolResult<T = string> {
  readonly status: "result";
  readonly content: T;
  readonly class: DataClass;
  readonly untrusted: boolean;
  readonly truncated: boolean;
}

export interface Failed {
  readonly status: "failed";
  readonly message: string;
}

export interface Denied {
  readonly status: "denied";
  readonly reason: DenyReason;
}

export type ToolResponse<T = string> = PendingApproval | ToolResult<T> | Failed | Denied;

export interface WireError {
  readonly code: ErrorCode;
  readonly detail: string;
}

export type Message<T = string> =
  | { readonly kind: "tool_request"; readonly body: ToolRequest<T> }
  | { readonly kind: "tool_response"; readonly body: ToolResponse<T> }
  | { readonly kind: "error"; readonly body: WireError };

export interface Envelope<T = string> {
  /** u32. Only version 1 decodes without a fault. */
  readonly v: number;
  /** u64 */
  readonly id: bigint;
  readonly final: boolean;
  readonly msg: Message<T>;
}
