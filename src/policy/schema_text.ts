// How names, pointers and limits are written into messages. Only what the schema declares passes
// through here, and a schema may come from a hostile provider: everything is cut, and what a
// terminal or a reader could mistake (controls, bidirectional marks, separators) is escaped.

const NAME_CHARS_MAX = 64;
const LIST_ENTRIES_MAX = 20;
const LIST_CHARS_MAX = 300;
const PLAIN_NAME = /^[A-Za-z0-9_.$@-]{1,64}$/;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** One reference token of a JSON Pointer. */
export function pointerToken(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** In double quotes, escaped and cut. */
export function quoted(text: string, charsMax: number = NAME_CHARS_MAX): string {
  const shown = text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
  return JSON.stringify(shown).replace(UNPRINTABLE, escaped);
}

function escaped(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** Bare where nothing in it could mislead, else quoted. */
export function named(name: string): string {
  return PLAIN_NAME.test(name) ? name : quoted(name);
}

/** As many as fit, in order, with `…` for the rest. */
export function listed(entries: Iterable<string>): string {
  const shown: string[] = [];
  let chars = 0;
  for (const entry of entries) {
    chars += entry.length + 2;
    if (shown.length === LIST_ENTRIES_MAX || chars > LIST_CHARS_MAX) return [...shown, "…"].join(", ");
    shown.push(entry);
  }
  return shown.join(", ");
}

/** A number of the schema, cut. */
export function numeral(value: number | bigint): string {
  const text = String(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
