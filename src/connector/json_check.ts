// Whether a text is JSON (RFC 8259), without making anything of it: a caller writes `{},` a million times in one request, and
// what a parser made of that would be twenty times as large. Invariant: it says of every text what JSON.parse says, up
// to the depth that it is given; it goes forward only, and no deeper than that.

/** Whether the top is an object and no more than `depthMax` objects and arrays are open at once, the top counted. */
export function isJsonObjectText(text: string, depthMax: number): boolean {
  const scan = new Scan(text, depthMax);
  return scan.isObject();
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const SPACE = 0x20;
const SMALL_U = 0x75;
const ESCAPED = '"\\/bfnrt';
const HEX_4 = /[0-9a-fA-F]{4}/y;

class Scan {
  readonly #text: string;
  readonly #depthMax: number;
  #at = 0;
  #depth = 0;

  constructor(text: string, depthMax: number) {
    this.#text = text;
    this.#depthMax = depthMax;
  }

  isObject(): boolean {
    this.#space();
    if (this.#next() !== OPEN_OBJECT || !this.#value()) return false;
    return this.#at === this.#text.length;
  }

  /** Not a number past the end: no comparison holds. */
  #next(): number {
    return this.#text.charCodeAt(this.#at);
  }

  #takes(unit: number): boolean {
    if (this.#next() !== unit) return false;
    this.#at++;
    return true;
  }

  #space(): void {
    for (;;) {
      const unit = this.#next();
      if (unit !== SPACE && unit !== 0x0a && unit !== 0x0d && unit !== 0x09) return;
      this.#at++;
    }
  }

  /** With the spaces around it. */
  #value(): boolean {
    this.#space();
    if (!this.#bareValue()) return false;
    this.#space();
    return true;
  }

  #bareValue(): boolean {
    switch (this.#next()) {
      case OPEN_OBJECT:
        return this.#nested(CLOSE_OBJECT);
      case OPEN_ARRAY:
        return this.#nested(CLOSE_ARRAY);
      case QUOTE:
        return this.#string();
      case 0x74:
        return this.#word("true");
      case 0x66:
        return this.#word("false");
      case 0x6e:
        return this.#word("null");
      default:
        return this.#number();
    }
  }

  #nested(close: number): boolean {
    if (++this.#depth > this.#depthMax) return false;
    this.#at++;
    this.#space();
    if (!this.#takes(close)) {
      do {
        if (close === CLOSE_OBJECT && !this.#name()) return false;
        if (!this.#value()) return false;
      } while (this.#takes(COMMA));
      if (!this.#takes(close)) return false;
    }
    this.#depth--;
    return true;
  }

  /** Of a member, with its colon. */
  #name(): boolean {
    this.#space();
    if (!this.#string()) return false;
    this.#space();
    return this.#takes(COLON);
  }

  #string(): boolean {
    if (!this.#takes(QUOTE)) return false;
    for (;;) {
      const unit = this.#next();
      if (!(unit >= SPACE)) return false; // a control character, or the end
      this.#at++;
      if (unit === QUOTE) return true;
      if (unit === BACKSLASH && !this.#escape()) return false;
    }
  }

  #escape(): boolean {
    if (!this.#takes(SMALL_U)) {
      const isKnown = this.#at < this.#text.length && ESCAPED.includes(this.#text.charAt(this.#at));
      this.#at++;
      return isKnown;
    }
    HEX_4.lastIndex = this.#at;
    this.#at += 4;
    return HEX_4.test(this.#text);
  }

  #word(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false;
    this.#at += word.length;
    return true;
  }

  #number(): boolean {
    this.#takes(MINUS);
    if (!this.#takes(ZERO) && !this.#digits()) return false;
    if (this.#takes(POINT) && !this.#digits()) return false;
    if (!this.#takes(0x65) && !this.#takes(0x45)) return true;
    if (!this.#takes(PLUS)) this.#takes(MINUS);
    return this.#digits();
  }

  #digits(): boolean {
    const start = this.#at;
    while (this.#next() >= ZERO && this.#next() <= NINE) this.#at++;
    return this.#at > start;
  }
}
