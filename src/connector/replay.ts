// What the service wants of a store for its turns (spec: connector, 6.3): one record for each request that was run.
// How it is kept is the store's; records as bytes are in replay_record.ts.
// Invariant: what a promise said is written is on disk, all of it; of what it said is not, nothing is there.

/** What is known of a request that was run, or may have been. */
export interface ReplayHead {
  readonly caller: string;
  readonly requestId: string;
  /** Of the key that the caller had: what was sealed under another one is of no use to it. 32 bytes. */
  readonly keySha256: Buffer;
  /** By which the same invocation is known again. 32 bytes. */
  readonly invocationSha256: Buffer;
  readonly expiresAtUnixMs: number;
}

/** `completed`: its response frame is kept too. */
export interface ReplayRecord extends ReplayHead {
  readonly state: "active" | "completed";
}

/** Keys are those of digest.ts, `replayKey`. Nobody changes a record while a change of it is being written. */
export interface ReplayStore {
  /** At once. `damaged`: something is there that is no record any more. */
  find(key: Buffer): ReplayRecord | "damaged" | undefined;
  /** Of a completed record: the frame, byte for byte. Undefined: it is damaged. */
  frame(key: Buffer): Buffer | undefined;
  /** Resolves to whether it is durable. Only where there is no record. */
  activate(key: Buffer, head: ReplayHead): Promise<boolean>;
  /** Resolves to whether it is durable; where it is not, the active one stands. */
  complete(key: Buffer, head: ReplayHead, frame: Buffer): Promise<boolean>;
  /** Keys of records that expire before that time, the soonest first, at most so many. No frame is read for it. */
  expiringBefore(unixMs: number, limit: number): readonly Buffer[];
  /** All of them or none; resolves to how many records are gone for good. */
  forget(keys: readonly Buffer[]): Promise<number>;
  /**
   * The latest expiry of all that was ever forgotten; 0 where nothing was. What expires then or before may have run,
   * whatever a clock says that was set back.
   */
  readonly forgottenUpToMs: number;
  /** Resolves when everything is on disk, and another process may open it. */
  close(): Promise<void>;
}
