// How far a role's pruned calls go: for each session the highest id that went, for a bounded number
// of sessions; the oldest then share one.
// Invariant: an id that was pruned stays at or below its session's watermark for good.

/** Sessions of a role that each have a watermark of their own. */
export const WATERMARKS_KEPT = 65_536;

export class Watermarks {
  readonly #own = new Map<string, bigint>();
  /** It may refuse a new id, and never lets an old one run. */
  #shared: bigint | undefined;
  readonly #keptMax: number;

  constructor(keptMax = WATERMARKS_KEPT) {
    this.#keptMax = keptMax;
  }

  of(session: string): bigint | undefined {
    return this.#own.get(session) ?? this.#shared;
  }

  /** undefined: it has none of its own. */
  own(session: string): bigint | undefined {
    return this.#own.get(session);
  }

  get shared(): bigint | undefined {
    return this.#shared;
  }

  /** Sessions whose own watermark went into the shared one are handed to `gone`. */
  raise(session: string, call: bigint, gone: (session: string) => void = () => undefined): void {
    // A session whose own one is gone begins again from the shared one, not from below it.
    const before = this.of(session);
    this.#own.delete(session);
    this.#own.set(session, before === undefined || call > before ? call : before);
    if (this.#own.size > this.#keptMax) this.#shareOldest(gone);
  }

  raiseShared(call: bigint): void {
    if (this.#shared === undefined || call > this.#shared) this.#shared = call;
  }

  #shareOldest(gone: (session: string) => void): void {
    for (const [session, watermark] of this.#own) {
      this.#own.delete(session);
      this.raiseShared(watermark);
      gone(session);
      return;
    }
  }
}
