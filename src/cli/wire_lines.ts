// Lines of a byte stream, one at a time and each within a bound: a line that is longer is skipped to
// its end and told as such, never held.

export type Line =
  | { readonly number: number; readonly text: Buffer }
  | { readonly number: number; readonly fault: "too_long" | "unreadable" };

const LINE_BYTES_FIRST = 4096;
const LF = 0x0a;
const CR = 0x0d;

/**
 * The lines that are not empty, numbered from 1 as they stand, without LF or CRLF. `text` is good until the
 * next line is asked for. A stream that fails ends with a line `unreadable`. Leaving early destroys the stream.
 */
export async function* readLines(input: NodeJS.ReadableStream, lineBytesMax: number): AsyncGenerator<Line> {
  const gathered = new GatheredLine(lineBytesMax);
  let number = 1;
  try {
    for await (const chunk of input) {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      let start = 0;
      for (let end = bytes.indexOf(LF); end >= 0; end = bytes.indexOf(LF, start)) {
        gathered.add(bytes.subarray(start, end));
        if (!gathered.isEmpty) yield gathered.take(number);
        gathered.clear();
        number += 1;
        start = end + 1;
      }
      gathered.add(bytes.subarray(start));
    }
  } catch {
    yield { number, fault: "unreadable" };
    return;
  }
  if (!gathered.isEmpty) yield gathered.take(number);
}

/** The line so far, in one buffer that grows with what has arrived. */
class GatheredLine {
  readonly #bytesMax: number;
  #bytes: Buffer = Buffer.allocUnsafeSlow(LINE_BYTES_FIRST);
  #filled = 0;
  #tooLong = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get isEmpty(): boolean {
    return !this.#tooLong && this.#textBytes === 0;
  }

  /** Without a CR at the end. */
  get #textBytes(): number {
    return this.#filled > 0 && this.#bytes[this.#filled - 1] === CR ? this.#filled - 1 : this.#filled;
  }

  add(piece: Buffer): void {
    const needed = this.#filled + piece.length;
    this.#tooLong ||= needed > this.#bytesMax + 1; // a CR may yet be its last
    if (this.#tooLong) return;
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(grown, 0, 0, this.#filled);
      this.#bytes = grown;
    }
    piece.copy(this.#bytes, this.#filled);
    this.#filled = needed;
  }

  take(number: number): Line {
    const textBytes = this.#textBytes;
    if (this.#tooLong || textBytes > this.#bytesMax) return { number, fault: "too_long" };
    return { number, text: this.#bytes.subarray(0, textBytes) };
  }

  clear(): void {
    this.#filled = 0;
    this.#tooLong = false;
  }
}
