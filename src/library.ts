// The package's one public entry: the client library, and the wire codec for those who need neither of
// its two ends. What is not exported here may change at any time.

export type { DenyReason, FailCode } from "./base/faults.ts";
export type { DataClass, Labels } from "./base/labels.ts";
export type { Address } from "./client/address.ts";
export type { ReconnectOptions } from "./client/backoff.ts";
export type { Call } from "./client/call.ts";
export { type Caller, type ConnectOptions, connect } from "./client/caller.ts";
export type { Arguments, CallOptions } from "./client/calls.ts";
export type { Effects } from "./client/effects.ts";
export { CallgateError, type ClientErrorCode } from "./client/error.ts";
export type { Handled, Handler, Request } from "./client/jobs.ts";
export {
  type Announced,
  type ProvideOptions,
  type Provider,
  provide,
  type ToolDefinition,
} from "./client/provider.ts";
export { decodeBody } from "./wire/envelope.ts";
export { FrameFault, type FrameOutcome } from "./wire/fault.ts";
export { decodeFrame, encodeFrame, FrameReader } from "./wire/frame.ts";
export type {
  Denied,
  Envelope,
  ErrorCode,
  Failed,
  Message,
  PendingApproval,
  ToolRequest,
  ToolResponse,
  ToolResult,
  WireError,
} from "./wire/message.ts";
