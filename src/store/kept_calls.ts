// One role's ended calls that are still in the store: where each is, oldest first, in plain arrays that
// the collector does not walk. What they say is on disk.
// Invariant: `find` knows exactly the calls between the oldest that was not taken and the newest.

import { CallIndex } from "./call_index.ts";

const CHUNK_CALLS = 4096;

export interface KeptCall {
  readonly session: string;
  readonly call: bigint;
  /** Number of its outcome's entry. */
  readonly outcome: number;
  /** Of its intent's; 0: there is none. */
  readonly intent: number;
  readonly parts: number;
  readonly charged: number;
  readonly endedAtMs: number;
}

class Chunk {
  readonly numbers = new Float64Array(CHUNK_CALLS * 3);
  readonly calls = new BigUint64Array(CHUNK_CALLS);
  readonly small = new Uint32Array(CHUNK_CALLS * 3);
}

interface SessionCalls {
  readonly name: string;
  readonly number: number;
  readonly calls: CallIndex;
}

export class KeptCalls {
  readonly #chunks: Chunk[] = [];
  readonly #sessions = new Map<string, SessionCalls>();
  readonly #names = new Map<number, SessionCalls>();
  #nextSession = 0;
  /** Places count all calls that ever were; those below `#oldest` are gone. */
  #oldest = 0;
  #end = 0;
  #firstChunk = 0;
  #charged = 0;

  get size(): number {
    return this.#end - this.#oldest;
  }

  /** Bytes that its calls are charged together. */
  get charged(): number {
    return this.#charged;
  }

  add(kept: KeptCall): void {
    const place = this.#end;
    this.#end += 1;
    if (place % CHUNK_CALLS === 0) this.#chunks.push(new Chunk());
    const { calls, number } = this.#session(kept.session);
    const chunk = this.#chunks.at(-1)!;
    const at = place % CHUNK_CALLS;
    const { numbers, small } = chunk;
    numbers[at * 3] = kept.outcome;
    numbers[at * 3 + 1] = kept.intent;
    numbers[at * 3 + 2] = kept.endedAtMs;
    chunk.calls[at] = kept.call;
    small[at * 3] = number;
    small[at * 3 + 1] = kept.parts;
    small[at * 3 + 2] = kept.charged;
    calls.put(kept.call, place);
    this.#charged += kept.charged;
  }

  find(session: string, call: bigint): KeptCall | undefined {
    const place = this.#sessions.get(session)?.calls.find(call);
    return place === undefined ? undefined : this.#at(place);
  }

  /** From the latest on; of `below` (a number of an outcome) and `endedMaxMs` only what fits both. */
  *newestFirst(below: number, endedMaxMs: number): Generator<KeptCall> {
    const fits = (place: number) => {
      const { numbers } = this.#chunkOf(place);
      const at = (place % CHUNK_CALLS) * 3;
      return numbers[at]! < below && numbers[at + 2]! <= endedMaxMs;
    };
    // Both rise with the place.
    let [low, high] = [this.#oldest, this.#end];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (fits(middle)) low = middle + 1;
      else high = middle;
    }
    for (let place = low - 1; place >= this.#oldest; place -= 1) yield this.#at(place);
  }

  /** The `index`-th oldest. */
  oldest(index: number): KeptCall | undefined {
    const place = this.#oldest + index;
    return place < this.#end ? this.#at(place) : undefined;
  }

  takeOldest(): void {
    const kept = this.oldest(0);
    if (kept === undefined) return;
    const session = this.#sessions.get(kept.session);
    session?.calls.take(kept.call);
    if (session?.calls.size === 0) {
      this.#sessions.delete(session.name);
      this.#names.delete(session.number);
    }
    this.#charged -= kept.charged;
    this.#oldest += 1;
    if (this.#oldest % CHUNK_CALLS !== 0) return;
    this.#chunks.shift();
    this.#firstChunk += 1;
  }

  #chunkOf(place: number): Chunk {
    return this.#chunks[Math.floor(place / CHUNK_CALLS) - this.#firstChunk]!;
  }

  #at(place: number): KeptCall {
    const chunk = this.#chunkOf(place);
    const at = place % CHUNK_CALLS;
    const { numbers, small } = chunk;
    return {
      session: this.#names.get(small[at * 3]!)!.name,
      call: chunk.calls[at]!,
      outcome: numbers[at * 3]!,
      intent: numbers[at * 3 + 1]!,
      endedAtMs: numbers[at * 3 + 2]!,
      parts: small[at * 3 + 1]!,
      charged: small[at * 3 + 2]!,
    };
  }

  #session(name: string): SessionCalls {
    let session = this.#sessions.get(name);
    if (session === undefined) {
      session = { name, number: this.#nextSession, calls: new CallIndex() };
      // Numbers come round after four thousand million sessions; the first ones are gone by then.
      this.#nextSession = (this.#nextSession + 1) >>> 0;
      this.#sessions.set(name, session);
      this.#names.set(session.number, session);
    }
    return session;
  }
}
