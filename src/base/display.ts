// Text of a peer's as a person may see it: nothing in it can move the cursor, reorder or hide a word.

/**
 * Whatever does not show as what it is: controls (but line feed and tab), line separators, zero-width
 * and bidirectional characters, fillers, tags, variation selectors, private use, lone surrogates.
 */
const HIDDEN = /(?![\n\t])(?:\p{C}|\p{Zl}|\p{Zp}|\p{Default_Ignorable_Code_Point})/gu;

/** Half a character or half an escape at the end of a cut line. */
const CUT = /(?:[\ud800-\udbff]|\\(?:u(?:\{[0-9a-f]*)?)?)$/;

/** The same text with every such character written as `\u{hex}`. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** On one line: line feeds and tabs are written out too, and what is over `charsMax` is folded. */
export function visibleLine(text: string, charsMax = 200): string {
  const start = text.slice(0, charsMax); // an escape is never shorter than what it stands for
  const line = visible(start).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
  if (text.length <= charsMax && line.length <= charsMax) return line;
  return `${line.slice(0, charsMax).replace(CUT, "")}… (${text.length} characters)`;
}
