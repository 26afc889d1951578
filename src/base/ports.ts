// The effects that the inner layers are given instead of reaching for them: time, randomness, the log,
// what the process takes.

export interface Clock {
  /** Milliseconds since the epoch; never goes back, and never stands still when the wall clock is set back. */
  nowMs(): number;
  /** Runs `task` once after `ms`; the returned function withdraws it. */
  after(ms: number, task: () => void): () => void;
  /** Runs `task` once in this turn of the event loop, after the input that is already there was handled. */
  afterInput(task: () => void): void;
}

/** Unguessable lower-case hex of `bytes` random bytes. */
export type Randomness = (bytes: number) => string;

/** Values that a log line may carry: never arguments, content, secrets or a peer's free text. */
export type LogFields = Readonly<
  Record<string, string | number | boolean | null | undefined | readonly string[]>
>;

export type LogLevel = "debug" | "info" | "warn" | "error";

/** One line with a stable `event` name (docs/logs.md lists them). */
export type Log = (level: LogLevel, event: string, fields: LogFields) => void;

/** Lower-case hex SHA-256 of a text. */
export type Digest = (text: string) => string;

/** Of the daemon's process. Read by the host, since it costs something and needs the platform. */
export interface ProcessFigures {
  readonly residentBytes: number;
  readonly heapBytes: number;
  /** User and system time since its start. */
  readonly cpuSeconds: number;
  /** The longest that the loop was held up since these were read last, in ms; 0 at the first time. */
  readonly loopDelayMaxMs: number;
}
