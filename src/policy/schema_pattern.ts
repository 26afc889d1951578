// From the regular expressions that JSON Schema means (ECMA-262 with the `u` flag) to RE2's, with
// the same language of texts. Every atom is written out in code points, so that nothing is read by
// RE2 in its own way (`\s`, `.`, `[[:alpha:]]`). What has no linear-time counterpart is a fault.

import { fault, ok, type Result } from "../base/faults.ts";
import { complement, DIGIT, LINE_END, type Range, SPACE, unicodeClass, WORD } from "./schema_characters.ts";

export const PATTERN_CHARS_MAX = 1024;
/** Atoms, with every counted repetition written out. */
export const PATTERN_ATOMS_MAX = 4000;
/** What a Unicode property costs to compile, in atoms: its table is long, though shared by repetitions. */
const PROPERTY_ATOMS = 30;
const REPEAT_MAX = 1000;
const GROUPS_DEEP_MAX = 64;

export interface TranslatedPattern {
  /** RE2 syntax. */
  readonly expression: string;
  /** Of compiling it, in atoms. */
  readonly cost: number;
}

/** The fault says what is wrong and where, without quoting the pattern. */
export function translatePattern(source: string): Result<TranslatedPattern> {
  if (source.length > PATTERN_CHARS_MAX) return fault(`may have ${PATTERN_CHARS_MAX} characters, no more`);
  try {
    return ok(new Translator(source).translate());
  } catch (error) {
    if (error instanceof Untranslatable) return fault(error.message);
    throw error;
  }
}

/** Never leaves this file. */
class Untranslatable extends Error {}

interface Piece {
  readonly text: string;
  readonly atoms: number;
}

const EMPTY: Piece = { text: "", atoms: 0 };
const CONTROLS: ReadonlyMap<string, number> = new Map([
  ["t", 0x09],
  ["n", 0x0a],
  ["v", 0x0b],
  ["f", 0x0c],
  ["r", 0x0d],
]);

class Translator {
  readonly #source: string;
  #at = 0;
  #deep = 0;
  #properties = 0;

  constructor(source: string) {
    this.#source = source;
  }

  translate(): TranslatedPattern {
    const whole = this.#alternatives();
    if (this.#at < this.#source.length) this.#refuse("has a ) without its (");
    const cost = whole.atoms + this.#properties * PROPERTY_ATOMS;
    if (cost > PATTERN_ATOMS_MAX) this.#refuse("has too many Unicode properties");
    return { expression: whole.text, cost };
  }

  #alternatives(): Piece {
    let piece = this.#sequence();
    while (this.#take("|")) {
      const next = this.#sequence();
      piece = this.#sized(`${piece.text}|${next.text}`, piece.atoms + next.atoms + 1);
    }
    return piece;
  }

  #sequence(): Piece {
    let piece = EMPTY;
    while (this.#at < this.#source.length && !this.#looking("|") && !this.#looking(")")) {
      const next = this.#term();
      piece = this.#sized(piece.text + next.text, piece.atoms + next.atoms);
    }
    return piece;
  }

  #term(): Piece {
    for (const assertion of ["^", "$", "\\b", "\\B"]) {
      if (this.#take(assertion)) return this.#assertion(assertion);
    }
    return this.#repeated(this.#atom());
  }

  #assertion(text: string): Piece {
    if (/^[*+?{]/.test(this.#rest())) this.#refuse("repeats an assertion");
    return { text, atoms: 1 };
  }

  #atom(): Piece {
    if (this.#take("(")) return this.#group();
    if (this.#take("[")) return this.#characterClass();
    if (this.#take(".")) return { text: bracketed(complement(LINE_END)), atoms: 1 };
    if (this.#looking("\\")) return this.#escapedAtom();
    if (/^[*+?]/.test(this.#rest())) this.#refuse("repeats nothing");
    if (/^[{}\]]/.test(this.#rest())) this.#refuse("must escape {, } and ] with a backslash");
    return { text: codePoint(this.#character()), atoms: 1 };
  }

  #group(): Piece {
    this.#openGroup();
    this.#deep++;
    if (this.#deep > GROUPS_DEEP_MAX) this.#refuse(`may nest ${GROUPS_DEEP_MAX} groups, no more`);
    const inner = this.#alternatives();
    this.#deep--;
    if (!this.#take(")")) this.#refuse("has a ( without its )");
    return this.#sized(`(?:${inner.text})`, inner.atoms + 1);
  }

  #openGroup(): void {
    if (!this.#take("?")) return;
    if (this.#take(":")) return;
    if (/^(?:=|!|<=|<!)/.test(this.#rest())) {
      this.#refuse("uses lookaround, which has no linear-time reading: say it with allOf, or not");
    }
    const name = /^<[\p{ID_Start}$_][\p{ID_Continue}$]*>/u.exec(this.#rest());
    if (name === null) this.#refuse("has a (? that is neither (?: nor (?<name>");
    this.#at += name[0].length;
  }

  #repeated(atom: Piece): Piece {
    const quantifier = /^(?:[*+?]|\{(\d+)(,(\d*))?\})/.exec(this.#rest());
    if (quantifier === null) return atom;
    this.#at += quantifier[0].length;
    this.#take("?");
    if (/^(?:[*+?]|\{)/.test(this.#rest()))
      this.#refuse("repeats a repetition: put the inner one into a group");
    if (quantifier[1] === undefined) return this.#sized(atom.text + quantifier[0], atom.atoms + 1);
    return this.#counted(
      atom,
      quantifier[1],
      quantifier[2] === undefined ? quantifier[1] : (quantifier[3] ?? ""),
    );
  }

  #counted(atom: Piece, least: string, most: string): Piece {
    const low = Number(least);
    const high = most === "" ? undefined : Number(most);
    if (low > REPEAT_MAX || (high ?? 0) > REPEAT_MAX)
      this.#refuse(`may repeat up to ${REPEAT_MAX} times: use maxLength`);
    if (high !== undefined && high < low)
      this.#refuse("has a repetition whose bounds are the wrong way round");
    const copies = Math.max(high ?? low, 1);
    return this.#sized(
      `${atom.text}{${low},${high ?? ""}}`,
      (atom.atoms + (high === low ? 0 : 1)) * copies + 1,
    );
  }

  #escapedAtom(): Piece {
    this.#at++;
    if (/^(?:[1-9]|k)/.test(this.#rest())) {
      this.#refuse("uses a backreference, which has no linear-time reading");
    }
    const shorthand = this.#shorthand();
    const text = shorthand === undefined ? codePoint(this.#escapedCharacter()) : `[${shorthand}]`;
    return { text, atoms: 1 };
  }

  /** After the backslash: `\d`, `\w`, `\s`, `\p{…}` and their opposites, as the inside of a class. */
  #shorthand(): string | undefined {
    const letter = this.#source[this.#at] ?? "";
    const ranges = SHORTHANDS.get(letter);
    if (ranges !== undefined) {
      this.#at++;
      return written(ranges);
    }
    const property = /^[pP]\{([^}]*)\}/.exec(this.#rest());
    if (property === null) return undefined;
    this.#at += property[0].length;
    this.#properties++;
    const unicode = unicodeClass(property[1] ?? "", letter === "P");
    return (
      unicode ??
      this.#refuse("names a Unicode property other than a general category or a script's full name")
    );
  }

  /** After the backslash: one character. */
  #escapedCharacter(): number {
    const rest = this.#rest();
    const code = /^(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,6})\})/.exec(rest);
    if (code !== null) return this.#coded(code);
    const letter = rest[0] ?? "";
    const control = CONTROLS.get(letter);
    if (control !== undefined) {
      this.#at++;
      return control;
    }
    if (/^c[A-Za-z]/.test(rest)) {
      this.#at += 2;
      return rest.charCodeAt(1) % 32;
    }
    if (/^0(?!\d)/.test(rest)) {
      this.#at++;
      return 0;
    }
    if (!/^[!-/:-@[-`{-~]/.test(rest)) this.#refuse("has an escape that ECMA-262 does not know");
    return this.#character();
  }

  #coded(code: RegExpExecArray): number {
    this.#at += code[0].length;
    const value = Number.parseInt(code[1] ?? code[2] ?? code[3] ?? "", 16);
    const low = (value & ~0x3ff) === 0xd800 ? /^\\u([dD][c-fC-F][0-9a-fA-F]{2})/.exec(this.#rest()) : null;
    if (low !== null) {
      this.#at += low[0].length;
      return 0x10000 + ((value & 0x3ff) << 10) + (Number.parseInt(low[1] ?? "", 16) & 0x3ff);
    }
    if (value > 0x10ffff || (value & ~0x7ff) === 0xd800)
      this.#refuse("has an escape that is no Unicode character");
    return value;
  }

  #characterClass(): Piece {
    const negated = this.#take("^");
    let inside = "";
    while (!this.#take("]")) inside += this.#classMember();
    if (inside === "") return { text: bracketed(negated ? complement([]) : []), atoms: 1 };
    return { text: `[${negated ? "^" : ""}${inside}]`, atoms: 1 };
  }

  #classMember(): string {
    const low = this.#classAtom();
    if (!this.#looking("-") || this.#looking("-]")) return typeof low === "string" ? low : codePoint(low);
    this.#at++;
    const high = this.#classAtom();
    if (typeof low === "string" || typeof high === "string") {
      this.#refuse("has a range with a class at one end: escape the - with a backslash");
    }
    if (high < low) this.#refuse("has a range whose ends are the wrong way round");
    return `${codePoint(low)}-${codePoint(high)}`;
  }

  /** A code point, or the inside of a class. */
  #classAtom(): number | string {
    if (this.#at >= this.#source.length) this.#refuse("has a [ without its ]");
    if (!this.#take("\\")) return this.#character();
    if (this.#take("b")) return 0x08;
    return this.#shorthand() ?? this.#escapedCharacter();
  }

  #character(): number {
    const character = this.#source.codePointAt(this.#at);
    if (character === undefined) this.#refuse("ends too early");
    if ((character & ~0x7ff) === 0xd800) this.#refuse("has half a surrogate pair");
    this.#at += character > 0xffff ? 2 : 1;
    return character;
  }

  #sized(text: string, atoms: number): Piece {
    if (atoms > PATTERN_ATOMS_MAX)
      this.#refuse(`may have ${PATTERN_ATOMS_MAX} atoms with its repetitions written out`);
    return { text, atoms };
  }

  #rest(): string {
    return this.#source.slice(this.#at);
  }

  #looking(text: string): boolean {
    return this.#source.startsWith(text, this.#at);
  }

  #take(text: string): boolean {
    if (!this.#looking(text)) return false;
    this.#at += text.length;
    return true;
  }

  #refuse(why: string): never {
    throw new Untranslatable(`${why} (at character ${this.#at + 1})`);
  }
}

const SHORTHANDS: ReadonlyMap<string, readonly Range[]> = new Map([
  ["d", DIGIT],
  ["D", complement(DIGIT)],
  ["w", WORD],
  ["W", complement(WORD)],
  ["s", SPACE],
  ["S", complement(SPACE)],
]);

function codePoint(character: number): string {
  return `\\x{${character.toString(16)}}`;
}

function written(ranges: readonly Range[]): string {
  return ranges.map(([low, high]) => `${codePoint(low)}-${codePoint(high)}`).join("");
}

/** A class of just these; of none, one that nothing is in. */
function bracketed(ranges: readonly Range[]): string {
  return ranges.length > 0 ? `[${written(ranges)}]` : `[^${written(complement([]))}]`;
}
