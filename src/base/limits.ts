// Every bound that callgate has, with its default. What an owner can set is in the example config
// (examples/callgate.toml), which a test compares with these.

/** Bytes of the largest frame body (spec: wire, Frame). Not configurable. */
export const FRAME_BYTES_MAX = 1_048_576;

/** Of `arguments`: what the strict parser accepts before anything else looks at them. */
export const ARGUMENTS_LIMITS = {
  depth: 64,
  /** Values and keys together. */
  nodes: 65_536,
  /** Digits of one integer literal. */
  integerDigits: 308,
} as const;

/** Per role (config: `[roles.NAME.limits]`). */
export interface RoleLimits {
  readonly connections: number;
  readonly connects_per_second: number;
  readonly calls_per_second: number;
  readonly calls_in_flight: number;
  /** Callers that wait for one running call beside the first. */
  readonly joins: number;
  /** Bytes received and held: partial frames, arguments of calls in flight and parts of their results. */
  readonly queued_bytes_in: number;
  /** Bytes waiting to be written to all of the role's connections. */
  readonly queued_bytes_out: number;
  readonly sessions: number;
  /** Bytes of recorded outcomes kept for replay. */
  readonly stored_bytes: number;
  /** Questions that wait for a human; one session has at most half of them. */
  readonly pending_approvals: number;
  /** New questions within an hour; one session has at most half of them. */
  readonly questions_per_hour: number;
}

export const ROLE_LIMITS_DEFAULT: RoleLimits = {
  connections: 64,
  connects_per_second: 100,
  calls_per_second: 50_000,
  calls_in_flight: 1024,
  joins: 64,
  queued_bytes_in: 16_777_216,
  queued_bytes_out: 33_554_432,
  sessions: 4096,
  stored_bytes: 67_108_864,
  pending_approvals: 64,
  questions_per_hour: 120,
};
