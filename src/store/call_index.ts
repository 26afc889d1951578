// Where a session's ended calls are, by call id. Ids mostly come in order and go in order, so they are
// kept in order in plain arrays, which the collector does not walk; one that comes late is moved to its place.
// Invariant: the ids from `#start` to `#end` rise; a place of -1 is one that was taken out.

const CAPACITY_MIN = 16;
const GONE = -1;

export class CallIndex {
  #calls = new BigUint64Array(CAPACITY_MIN);
  #places = new Float64Array(CAPACITY_MIN);
  #start = 0;
  #end = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Puts a call that is not there at a place (an integer from 0). */
  put(call: bigint, place: number): void {
    if (this.#end === this.#calls.length) this.#makeRoom();
    let at = this.#end;
    while (at > this.#start && this.#calls[at - 1]! > call) at -= 1;
    if (at < this.#end) {
      this.#calls.copyWithin(at + 1, at, this.#end);
      this.#places.copyWithin(at + 1, at, this.#end);
    }
    this.#calls[at] = call;
    this.#places[at] = place;
    this.#end += 1;
    this.#size += 1;
  }

  find(call: bigint): number | undefined {
    const at = this.#search(call);
    return at === undefined ? undefined : this.#places[at];
  }

  take(call: bigint): void {
    const at = this.#search(call);
    if (at === undefined) return;
    this.#places[at] = GONE;
    this.#size -= 1;
    while (this.#start < this.#end && this.#places[this.#start] === GONE) this.#start += 1;
  }

  #search(call: bigint): number | undefined {
    if (this.#start === this.#end || call > this.#calls[this.#end - 1]!) return undefined; // a new call's id, mostly
    let low = this.#start;
    let high = this.#end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#calls[middle]! < call) low = middle + 1;
      else high = middle;
    }
    // An id that was taken out and put again stands twice; the living one is among its equals.
    for (let at = low; at < this.#end && this.#calls[at] === call; at += 1)
      if (this.#places[at] !== GONE) return at;
    return undefined;
  }

  /** Drops what was taken out; doubles where that is not enough. */
  #makeRoom(): void {
    const capacity = this.#size * 2 > this.#calls.length ? this.#calls.length * 2 : this.#calls.length;
    const calls = new BigUint64Array(capacity);
    const places = new Float64Array(capacity);
    let kept = 0;
    for (let at = this.#start; at < this.#end; at += 1) {
      if (this.#places[at] === GONE) continue;
      calls[kept] = this.#calls[at]!;
      places[kept] = this.#places[at]!;
      kept += 1;
    }
    this.#calls = calls;
    this.#places = places;
    this.#start = 0;
    this.#end = kept;
  }
}
