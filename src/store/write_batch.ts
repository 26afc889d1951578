// One batch of puts and deletes as bytes in one buffer, which moves to the thread that writes it and
// back without a copy: key length (u16), value length (u32; all ones: delete), key, value, and the next.
// Invariant: `each` tells exactly what `put`, `begin` with `finish`, and `delete` were given, in order.

const HEAD_BYTES = 6;
const DELETED = 0xffff_ffff;

export class WriteBatch {
  #bytes: Buffer;
  #view: DataView;
  #length: number;
  /** Where the entry that `begin` has opened starts. */
  #opened = -1;

  constructor(buffer: ArrayBuffer, length = 0) {
    this.#bytes = Buffer.from(buffer);
    this.#view = new DataView(buffer);
    this.#length = length;
  }

  /** Its buffer is back from the thread that it was moved to. */
  restore(buffer: ArrayBuffer): void {
    this.#bytes = Buffer.from(buffer);
    this.#view = new DataView(buffer);
  }

  /** Bytes in it. */
  get length(): number {
    return this.#length;
  }

  get buffer(): ArrayBuffer {
    return this.#view.buffer as ArrayBuffer; // only ever made over one
  }

  /** Where `begin` wants a value to be written; another one after the next `begin`. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  get view(): DataView {
    return this.#view;
  }

  put(key: Uint8Array, value: Uint8Array): void {
    const at = this.begin(key, value.length);
    this.#bytes.set(value, at);
    this.finish(at + value.length);
  }

  /** Of ASCII text. */
  putAscii(key: Uint8Array, value: string): void {
    const at = this.begin(key, value.length);
    this.finish(at + this.#bytes.write(value, at, "latin1"));
  }

  delete(key: Uint8Array): void {
    this.begin(key, 0);
    this.#view.setUint32(this.#opened + 2, DELETED, true);
    this.#opened = -1;
    this.#length += HEAD_BYTES + key.length;
  }

  /** Makes room for a value of at most `valueBytesMax`; returns where in `bytes` it begins. */
  begin(key: Uint8Array, valueBytesMax: number): number {
    const start = this.#length;
    this.#makeRoom(HEAD_BYTES + key.length + valueBytesMax);
    this.#view.setUint16(start, key.length, true);
    this.#bytes.set(key, start + HEAD_BYTES);
    this.#opened = start;
    return start + HEAD_BYTES + key.length;
  }

  /** Ends the value that `begin` has opened; `end` is where in `bytes` it ends. */
  finish(end: number): void {
    const start = this.#opened;
    const keyLength = this.#view.getUint16(start, true);
    this.#view.setUint32(start + 2, end - start - HEAD_BYTES - keyLength, true);
    this.#opened = -1;
    this.#length = end;
  }

  /** The entries in order; what it hands on are views. */
  each(put: (key: Buffer, value: Buffer) => void, del: (key: Buffer) => void): void {
    for (let at = 0; at < this.#length; ) {
      const keyAt = at + HEAD_BYTES;
      const valueAt = keyAt + this.#view.getUint16(at, true);
      const valueLength = this.#view.getUint32(at + 2, true);
      const key = this.#bytes.subarray(keyAt, valueAt);
      if (valueLength === DELETED) {
        del(key);
        at = valueAt;
      } else {
        at = valueAt + valueLength;
        put(key, this.#bytes.subarray(valueAt, at));
      }
    }
  }

  #makeRoom(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = new ArrayBuffer(Math.max(needed, this.#bytes.length * 2));
    const copy = Buffer.from(larger);
    copy.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = copy;
    this.#view = new DataView(larger);
  }
}
