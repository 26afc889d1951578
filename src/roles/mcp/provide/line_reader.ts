// A stream of bytes as lines, as they come in pieces of any size. Holds at most one line that is not whole yet.

import { fault, ok, type Result } from "../../../base/faults.ts";

const NEWLINE = 0x0a;

export class LineReader {
  readonly #bytesMax: number;
  #pieces: Buffer[] = [];
  #bytes = 0;

  /** `bytesMax`: of one line without its end. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The lines that are whole now, without line feeds; or that one is too long, after which nothing is of use. */
  take(chunk: Buffer): Result<readonly Buffer[], "too_long"> {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end));
      if (this.#bytes > this.#bytesMax) return fault("too_long");
      lines.push(this.#line());
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
    return this.#bytes > this.#bytesMax ? fault("too_long") : ok(lines);
  }

  /** What no line feed ended. */
  rest(): Buffer {
    return this.#line();
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#bytes += piece.length;
  }

  #line(): Buffer {
    const [first = Buffer.alloc(0)] = this.#pieces;
    const line = this.#pieces.length <= 1 ? first : Buffer.concat(this.#pieces, this.#bytes);
    this.#pieces = [];
    this.#bytes = 0;
    return line;
  }
}
