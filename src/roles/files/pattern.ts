// What a search looks for: names by a literal or a simple glob, contents by a literal. No regular
// expression of the caller is ever run. Pure, and linear in the text for every pattern.

import { characterStart } from "./text_window.ts";

/**
 * With `*` (any characters, none too) or `?` (one character) the pattern is the whole name; without
 * them it may stand anywhere in the name. Case counts.
 */
export function nameMatches(pattern: string, name: string): boolean {
  if (!/[*?]/.test(pattern)) return name.includes(pattern);
  return globMatches(Array.from(pattern), Array.from(name));
}

/** Greedy with one point of return, so that at most |pattern| × |name| steps are taken. */
function globMatches(pattern: readonly string[], name: readonly string[]): boolean {
  let at = 0;
  let star = -1;
  let starAt = 0;
  let next = 0;
  while (at < name.length) {
    if (pattern[next] === "*") {
      star = next++;
      starAt = at;
    } else if (next < pattern.length && (pattern[next] === "?" || pattern[next] === name[at])) {
      next += 1;
      at += 1;
    } else if (star >= 0) {
      next = star + 1;
      at = ++starAt;
    } else return false;
  }
  while (pattern[next] === "*") next += 1;
  return next === pattern.length;
}

export interface LineMatch {
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

const NEWLINE = 0x0a;

/** The first `max` lines in which `needle` begins; `bytes` are valid UTF-8. */
export function matchingLines(
  bytes: Buffer,
  needle: Buffer,
  max: number,
  lineCharsMax: number,
): { readonly lines: readonly LineMatch[]; readonly more: boolean } {
  const lines: LineMatch[] = [];
  let line = 1;
  let lineStart = 0;
  let found = bytes.indexOf(needle);
  while (found >= 0) {
    for (let end = bytes.indexOf(NEWLINE, lineStart); end >= 0 && end < found; ) {
      line += 1;
      lineStart = end + 1;
      end = bytes.indexOf(NEWLINE, lineStart);
    }
    if (lines.length === max) return { lines, more: true };
    const lineEnd = endOfLine(bytes, found);
    lines.push({ line, text: excerpt(bytes, lineStart, found, lineEnd, lineCharsMax) });
    found = lineEnd < bytes.length ? bytes.indexOf(needle, lineEnd + 1) : -1;
  }
  return { lines, more: false };
}

function endOfLine(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(NEWLINE, from);
  return end < 0 ? bytes.length : end;
}

/** The line, or the part of a long one around what was found. Bytes stand for characters: never more. */
function excerpt(bytes: Buffer, start: number, found: number, end: number, max: number): string {
  const from = end - start <= max ? start : Math.max(start, found - Math.floor(max / 4));
  const to = Math.min(end, from + max);
  return bytes.toString("utf8", characterStart(bytes, from), characterStart(bytes, to));
}
