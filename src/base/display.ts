// Text of a peer's as a person may see it: nothing in it can move the cursor, reorder or hide a word.

/**
 * Whatever does not show as what it is: controls (but line feed and tab), line separators, zero-width
 * and bidirectional characters, fillers, tags, variation selectors, private use, lone surrogates.
 */
const HIDDEN = /(?![\n\t])(?:\p{C}|\p{Zl}|\p{Zp}|\p{Default_Ignorable_Code_Point})/gu;

/** The same text with every such character written as `\u{hex}`. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** On one line: line feeds and tabs are written out too, and what is over `charsMax` is folded. */
export function visibleLine(text: string, charsMax = 200): string {
  const line = visible(text.length > charsMax * 4 ? text.slice(0, charsMax * 4) : text)
    .replaceAll("\n", "\\n")
    .replaceAll("\t", "\\t");
  return line.length <= charsMax && text.length <= charsMax * 4
    ? line
    : `${line.slice(0, charsMax)}… (${text.length} characters)`;
}
