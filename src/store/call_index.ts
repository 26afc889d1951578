// Where a session's ended calls are, by call id: ordered blocks of plain arrays, which the collector does
// not walk. Ids mostly come in order and go in order; whoever sends them in any other order moves no more
// than one block for each.
// Invariant: the ids in a block rise, no block is empty, and every block's ids are above those of the one before.

const BLOCK_CALLS = 256;
const BLOCK_CALLS_MIN = 16;

export class CallIndex {
  readonly #blocks: Block[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Puts a call that is not there at a place (an integer from 0). */
  put(call: bigint, place: number): void {
    this.#size += 1;
    const last = this.#blocks.at(-1);
    if (last === undefined || (last.isFull && call > last.highest)) {
      this.#blocks.push(Block.of(call, place));
      return;
    }
    const at = this.#blockOf(call);
    const block = this.#blocks[at]!;
    if (!block.isFull) return block.put(call, place);
    const upper = block.split();
    this.#blocks.splice(at + 1, 0, upper);
    (call < upper.lowest ? block : upper).put(call, place);
  }

  find(call: bigint): number | undefined {
    const last = this.#blocks.at(-1);
    if (last === undefined || call > last.highest) return undefined; // a new call's id, mostly
    return this.#blocks[this.#blockOf(call)]!.find(call);
  }

  take(call: bigint): void {
    if (this.#size === 0) return;
    const at = this.#blockOf(call);
    const block = this.#blocks[at]!;
    if (!block.take(call)) return;
    this.#size -= 1;
    if (block.size === 0) this.#blocks.splice(at, 1);
  }

  /** Index of the last block that begins at or below `call`, or of the first. There must be one. */
  #blockOf(call: bigint): number {
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.#blocks[middle]!.lowest <= call) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** Calls from `#start` to `#end`, in order: what goes from the front moves nothing. */
class Block {
  #calls: BigUint64Array;
  #places: Float64Array;
  #start = 0;
  #end: number;

  private constructor(calls: BigUint64Array, places: Float64Array, end: number) {
    this.#calls = calls;
    this.#places = places;
    this.#end = end;
  }

  static of(call: bigint, place: number): Block {
    const block = new Block(new BigUint64Array(BLOCK_CALLS_MIN), new Float64Array(BLOCK_CALLS_MIN), 0);
    block.put(call, place);
    return block;
  }

  get size(): number {
    return this.#end - this.#start;
  }

  get isFull(): boolean {
    return this.#end - this.#start === BLOCK_CALLS;
  }

  get lowest(): bigint {
    return this.#calls[this.#start]!;
  }

  get highest(): bigint {
    return this.#calls[this.#end - 1]!;
  }

  /** The block must not be full. */
  put(call: bigint, place: number): void {
    if (this.#end === this.#calls.length) this.#makeRoom();
    const at = this.#placeOf(call);
    if (at < this.#end) {
      this.#calls.copyWithin(at + 1, at, this.#end);
      this.#places.copyWithin(at + 1, at, this.#end);
    }
    this.#calls[at] = call;
    this.#places[at] = place;
    this.#end += 1;
  }

  find(call: bigint): number | undefined {
    const at = this.#placeOf(call);
    return at < this.#end && this.#calls[at] === call ? this.#places[at] : undefined;
  }

  take(call: bigint): boolean {
    const at = this.#placeOf(call);
    if (at === this.#end || this.#calls[at] !== call) return false;
    if (at === this.#start) {
      this.#start += 1;
      return true;
    }
    this.#calls.copyWithin(at, at + 1, this.#end);
    this.#places.copyWithin(at, at + 1, this.#end);
    this.#end -= 1;
    return true;
  }

  /** Gives its upper half away. */
  split(): Block {
    const middle = (this.#start + this.#end) >>> 1;
    const upper = new Block(
      this.#calls.slice(middle, this.#end),
      this.#places.slice(middle, this.#end),
      this.#end - middle,
    );
    this.#end = middle;
    return upper;
  }

  /** Where `call` is, or belongs. */
  #placeOf(call: bigint): number {
    if (this.size === 0 || call > this.highest) return this.#end;
    let low = this.#start;
    let high = this.#end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#calls[middle]! < call) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Moves what is there to the front; doubles where that is not enough. */
  #makeRoom(): void {
    const { size } = this;
    const capacity = size * 2 > this.#calls.length ? this.#calls.length * 2 : this.#calls.length;
    const calls = new BigUint64Array(capacity);
    const places = new Float64Array(capacity);
    calls.set(this.#calls.subarray(this.#start, this.#end));
    places.set(this.#places.subarray(this.#start, this.#end));
    this.#calls = calls;
    this.#places = places;
    this.#start = 0;
    this.#end = size;
  }
}
