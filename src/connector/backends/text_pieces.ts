// A text that comes in pieces, however small: kept in few strings, joined once. Pure.

const LOOSE_MAX = 1024;

export class TextPieces {
  /** Each of many pieces. */
  readonly #joined: string[] = [];
  #loose: string[] = [];

  push(piece: string): void {
    if (this.#loose.push(piece) < LOOSE_MAX) return;
    this.#joined.push(this.#loose.join(""));
    this.#loose = [];
  }

  text(): string {
    return this.#joined.join("") + this.#loose.join("");
  }
}
