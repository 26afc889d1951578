// JSON as editors' settings files have it: with comments and commas before a closing bracket. What is read is what such a
// client reads, but a member that stands twice is told of: which of the two holds is otherwise anybody's guess.
// Invariant: no message quotes the text, which may hold secrets.

import { fault, ok, type Result } from "../base/faults.ts";
import { parseJson } from "../base/json.ts";

export interface JsoncRead {
  readonly value: unknown;
  /** Members that stand twice in one object: the names on the way to each, of lists their positions. */
  readonly repeated: readonly (readonly string[])[];
}

/** Comments, and commas before a closing bracket, as blanks: so what is left stands where it stood. */
function bare(text: string): string {
  const pieces: string[] = [];
  let comma = -1;
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = endOfPiece(text, at);
    const piece = text.slice(at, end);
    if (/^\/[/*]/.test(piece)) {
      pieces.push(piece.replace(/[^\n\r]/g, " "));
      continue;
    }
    if (/^[}\]]/.test(piece) && comma >= 0) pieces[comma] = " ";
    if (piece === ",") comma = pieces.length;
    else if (piece.trim() !== "") comma = -1;
    pieces.push(piece);
  }
  return pieces.join("");
}

/** Of the string, comment, comma or bracket that begins there, or of what is none of these. */
function endOfPiece(text: string, at: number): number {
  const two = text.slice(at, at + 2);
  if (two === "//") return after(/[^\n\r]*/y, text, at);
  if (two === "/*") {
    const end = text.indexOf("*/", at + 2);
    return end < 0 ? text.length : end + 2;
  }
  if (text[at] === '"') return after(/"[^"\\]*(?:\\[\s\S][^"\\]*)*"?/y, text, at);
  return Math.max(at + 1, after(/[^"/,}\]]*/y, text, at));
}

/** `form`: sticky. */
function after(form: RegExp, text: string, at: number): number {
  form.lastIndex = at;
  return form.test(text) ? form.lastIndex : at;
}

const ANY = { depth: Number.POSITIVE_INFINITY, nodes: Number.POSITIVE_INFINITY, integerDigits: 1000 };

/** The fault is half a sentence: "is no JSON (line 7)". */
export function parseJsonc(text: string): Result<JsoncRead> {
  const json = bare(text.replace(/^\ufeff/, " "));
  if (json.trim() === "") return fault("is empty");
  try {
    return ok({ value: JSON.parse(json), repeated: repeatedIn(json) });
  } catch {
    // The engine's own message quotes the text.
    const strict = parseJson(json, ANY);
    const line = strict.ok ? "" : ` (line ${json.slice(0, strict.fault.offset).split("\n").length})`;
    return fault(`is no JSON${line}`);
  }
}

interface Level {
  /** Of an object; a list has none. */
  readonly names: Set<string> | undefined;
  /** The member, or the position in the list, that comes now. */
  at: string;
}

/** `json`: valid. */
function repeatedIn(json: string): readonly (readonly string[])[] {
  const levels: Level[] = [];
  const repeated: string[][] = [];
  for (const [token, string, colon] of json.matchAll(/("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}[\],]/g)) {
    const level = levels.at(-1);
    if (string !== undefined && colon !== undefined && level !== undefined) {
      level.at = String(JSON.parse(string));
      if (level.names?.has(level.at)) repeated.push(levels.map(({ at }) => at));
      level.names?.add(level.at);
    } else if (token === "{") levels.push({ names: new Set(), at: "" });
    else if (token === "[") levels.push({ names: undefined, at: "0" });
    else if (token === "}" || token === "]") levels.pop();
    else if (token === "," && level?.names === undefined && level !== undefined)
      level.at = String(Number(level.at) + 1);
  }
  return repeated;
}
