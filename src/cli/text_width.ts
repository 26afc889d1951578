// How many columns of a terminal a text takes. Two measures: what it takes as a rule, to align with, and the most
// that a terminal may take, to stay within a width with.

import { SGR } from "./paint.ts";

/** East Asian wide and full-width characters, and emoji that are shown as pictures. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]$/u;
/** Set above or below the character before. */
const COMBINING = /^[\p{Mn}\p{Me}]$/u;
const ASCII = /^[\x20-\x7e]*$/;

/** As a terminal lays it out as a rule; for escaped text. Colours take none. */
export function usualColumns(text: string): number {
  if (ASCII.test(text)) return text.length;
  let columns = 0;
  for (const part of pieces(text)) columns += part.length > 1 && SGR.test(part) ? 0 : usualOf(part);
  return columns;
}

function usualOf(character: string): number {
  if (COMBINING.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** At least as many as a terminal takes for it. */
export function mostColumns(text: string): number {
  if (ASCII.test(text)) return text.length;
  let columns = 0;
  for (const part of pieces(text)) columns += part.length > 1 && SGR.test(part) ? 0 : mostOf(part);
  return columns;
}

export function mostOf(character: string): number {
  return (character.codePointAt(0) ?? 0) < 0x1100 ? 1 : 2;
}

/** Characters, and colours as one piece each. */
export function pieces(text: string): readonly string[] {
  return text.match(/\u001b\[[0-9;]*m|[\s\S]/gu) ?? [];
}

/** At most so many columns of it, `…` in place of what is left out. */
export function cutTo(text: string, columns: number): string {
  if (mostColumns(text) <= columns) return text;
  let kept = "";
  let room = columns - mostOf(MARK);
  for (const character of text) {
    room -= mostOf(character);
    if (room < 0) break;
    kept += character;
  }
  return `${kept.replace(HALF_ESCAPE, "").trimEnd()}${MARK}`;
}

const MARK = "…";
/** Of what display.ts escapes: it must not read as another character. */
const HALF_ESCAPE = /\\(?:u(?:\{[0-9a-f]*)?)?$/;
