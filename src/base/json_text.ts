// JSON text for a person's eyes, made from the text itself and not from parsed numbers: every number
// stands as it was written. Strings show what they mean, odd characters marked; what is long is folded,
// and each fold says how much it hides, outside of the quotes, where no string can pretend to be it.

import { visible } from "./display.ts";

export interface Folding {
  /** UTF-16 units of a string above which its middle is hidden. */
  readonly stringChars: number;
  /** Lines above which the rest is hidden. */
  readonly lines: number;
}

export const FOLDED: Folding = { stringChars: 240, lines: 80 };
export const UNFOLDED: Folding = {
  stringChars: Number.POSITIVE_INFINITY,
  lines: Number.POSITIVE_INFINITY,
};

export interface ShownJson {
  readonly lines: readonly string[];
  /** Whether anything is hidden. */
  readonly folded: boolean;
}

/** A whole token at a time; a string is walked without a step back. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]|[^\s{}[\]:,"]+/gs;

/** `text` is valid JSON (the broker has parsed it); of any other text something readable comes out. */
export function shownJson(text: string, folding: Folding): ShownJson {
  const page = new Page(folding);
  const tokens = text.match(TOKEN) ?? [];
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at] ?? "";
    const next = tokens[at + 1] ?? "";
    if ((token === "{" && next === "}") || (token === "[" && next === "]")) {
      page.add(token + next);
      at += 1;
    } else page.take(token);
  }
  return page.finish();
}

class Page {
  readonly #folding: Folding;
  readonly #lines: string[] = [];
  #line = "";
  #depth = 0;
  #hiddenLines = 0;
  #folded = false;

  constructor(folding: Folding) {
    this.#folding = folding;
  }

  add(text: string): void {
    this.#line += text;
  }

  take(token: string): void {
    switch (token) {
      case "{":
      case "[":
        this.add(token);
        this.#depth += 1;
        this.#newLine();
        return;
      case "}":
      case "]":
        this.#depth = Math.max(0, this.#depth - 1);
        this.#newLine();
        this.add(token);
        return;
      case ",":
        this.add(token);
        this.#newLine();
        return;
      case ":":
        this.add(": ");
        return;
      default:
        this.add(this.#scalar(token));
    }
  }

  finish(): ShownJson {
    this.#newLine();
    const lines = this.#lines;
    if (this.#hiddenLines > 0) lines.push(`… ${counted(this.#hiddenLines, "more line")} hidden`);
    return { lines, folded: this.#folded || this.#hiddenLines > 0 };
  }

  #newLine(): void {
    if (this.#lines.length < this.#folding.lines) this.#lines.push(this.#line);
    else this.#hiddenLines += 1;
    this.#line = "  ".repeat(this.#depth);
  }

  #scalar(token: string): string {
    if (!token.startsWith('"')) return visible(token);
    const meant = stringOf(token);
    if (meant === undefined) return visible(token);
    if (meant.length <= this.#folding.stringChars) return quoted(meant);
    this.#folded = true;
    return folded(meant, this.#folding.stringChars);
  }
}

/** The beginning and the end: what matters may stand at either. */
function folded(text: string, charsMax: number): string {
  const head = text.slice(0, whole(text, Math.floor((charsMax * 2) / 3)));
  const tail = text.slice(whole(text, text.length - (charsMax - head.length)));
  const hidden = text.length - head.length - tail.length;
  return `${quoted(head)} … ${counted(hidden, "character")} hidden … ${quoted(tail)}`;
}

/** Not between the two halves of one character. */
function whole(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at + 1 : at;
}

/** A string as JSON has it, with whatever does not show as what it is marked. */
export function quoted(text: string): string {
  return visible(JSON.stringify(text));
}

function stringOf(token: string): string | undefined {
  try {
    const value: unknown = JSON.parse(token);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** The members of an object's text in their order: each name, and its value's text as it stands. */
export function membersOf(text: string): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  let depth = 0;
  let name: string | undefined;
  let value = "";
  for (const token of text.match(TOKEN) ?? []) {
    if (token === "}" || token === "]") depth -= 1;
    const ends = (depth === 1 && token === ",") || depth === 0;
    if (ends && name !== undefined) {
      members.set(name, value);
      name = undefined;
    } else if (depth === 1 && name === undefined) name = stringOf(token);
    else if (depth > 1 || token !== ":") value += token;
    if (depth === 1 && token === ":") value = "";
    if (token === "{" || token === "[") depth += 1;
  }
  return members;
}

const ODD = /[^\x20-\x7e\n\t]/gu;
const ODD_SHOWN_MAX = 8;

/** The characters of a text that are not ASCII, each with its number: what looks like a letter may be another. */
export function notAscii(text: string): string | undefined {
  const found = [...new Set(text.match(ODD) ?? [])];
  if (found.length === 0) return undefined;
  const named = found.slice(0, ODD_SHOWN_MAX).map((character) => {
    const number = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    return `${visible(character)} U+${number}`;
  });
  const more = found.length > ODD_SHOWN_MAX ? `, and ${found.length - ODD_SHOWN_MAX} more` : "";
  return `${named.join(", ")}${more}`;
}
