// TOML text to a tree in which every key and value knows where it stands. The one file that knows
// the TOML library; what the keys mean is not known here. Tables are Maps, so a key named
// `__proto__` is a key. The tree is bounded in depth; integers are exact or refused.

import { type AST, ParseError, parseTOML } from "toml-eslint-parser";
import {
  type ConfigFault,
  FILE_START,
  type Position,
  printable,
  quote,
  type Report,
} from "./config_faults.ts";

export interface TomlEntry {
  readonly keyAt: Position;
  readonly value: TomlNode;
}

export interface TomlTable {
  readonly kind: "table";
  readonly at: Position;
  readonly entries: ReadonlyMap<string, TomlEntry>;
}

export interface TomlArray {
  readonly kind: "array";
  readonly at: Position;
  readonly items: readonly TomlNode[];
}

export type TomlNode =
  | TomlTable
  | TomlArray
  | { readonly kind: "string"; readonly at: Position; readonly value: string }
  /** A safe integer. */
  | { readonly kind: "integer"; readonly at: Position; readonly value: number }
  | { readonly kind: "float"; readonly at: Position; readonly value: number }
  | { readonly kind: "boolean"; readonly at: Position; readonly value: boolean }
  /** A date and time with its offset; `value` in milliseconds since the epoch. */
  | { readonly kind: "instant"; readonly at: Position; readonly value: number }
  /** A date or time that does not say where: no instant. */
  | { readonly kind: "local_time"; readonly at: Position };

export interface TomlRead {
  /** undefined where the text is no TOML. With faults, it is what could be read beside them. */
  readonly root: TomlTable | undefined;
  readonly faults: readonly ConfigFault[];
}

const DEPTH_MAX = 32;
const DUPLICATES_MAX = 100;

/**
 * A syntax error ends the reading and is the only one of its kind in the answer; duplicate keys are
 * all reported, and the rest of the file is still in the tree (each first one stands).
 */
export function parseToml(text: string): TomlRead {
  const faults: ConfigFault[] = [];
  const report: Report = (at, message) => void faults.push({ ...at, message });
  try {
    const parsed = parseAroundDuplicates(text, report);
    const root = parsed === undefined ? undefined : new TreeBuilder(parsed, report).build();
    return { root, faults };
  } catch (error) {
    // The library recurses over nested values and spreads long strings over the stack.
    if (!(error instanceof RangeError)) throw error;
    report(FILE_START, "a value is too long or nested too deeply to be read; split it");
    return { root: undefined, faults };
  }
}

interface Parsed {
  readonly program: AST.TOMLProgram;
  readonly edits: Edits;
}

/**
 * The library stops at the first duplicate key. Each is renamed in the text to something that
 * nobody wrote and left out of the tree, so that one run tells everything.
 */
function parseAroundDuplicates(text: string, report: Report): Parsed | undefined {
  const edits = new Edits();
  let current = text;
  for (;;) {
    try {
      return { program: parseTOML(current, { tomlVersion: "1.1" }), edits };
    } catch (error) {
      if (!(error instanceof ParseError)) throw error;
      const at = edits.original(error.lineNumber, error.column);
      const key = error.message === DUPLICATE ? keyAt(current, error.index) : undefined;
      if (key === undefined || edits.names.size >= DUPLICATES_MAX) {
        report(at, syntaxMessage(error.message));
        return undefined;
      }
      report(at, `duplicate key ${quote(key)}: it is already set above or in another table; keep one`);
      const renamed = edits.rename(error.lineNumber, error.column, key.length);
      current = `${current.slice(0, error.index)}${renamed}${current.slice(error.index + key.length)}`;
    }
  }
}

const KEY = /[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y;

function keyAt(text: string, index: number): string | undefined {
  KEY.lastIndex = index;
  return KEY.exec(text)?.[0];
}

/** Which keys were renamed, and what that did to the columns behind them on their line. */
class Edits {
  readonly names = new Set<string>();
  readonly #shifts: { readonly line: number; readonly column: number; readonly by: number }[] = [];

  rename(line: number, column: number, length: number): string {
    const name = `\u{e000}${this.names.size}`;
    this.names.add(name);
    this.#shifts.push({ line, column, by: name.length + 2 - length });
    return `"${name}"`;
  }

  /** From the library's position (column from 0, in the edited text) to the file's. */
  original(line: number, column: number): Position {
    let original = column;
    // Backwards: each edit was made in a text that already held the ones before it.
    for (const shift of this.#shifts.toReversed()) {
      if (shift.line === line && shift.column < original) original -= shift.by;
    }
    return { line, column: original + 1 };
  }
}

interface MutableTable extends TomlTable {
  readonly entries: Map<string, { readonly keyAt: Position; readonly value: MutableNode }>;
}
interface MutableArray extends TomlArray {
  readonly items: MutableNode[];
}
type MutableNode = MutableTable | MutableArray | Exclude<TomlNode, TomlTable | TomlArray>;

class TreeBuilder {
  readonly #parsed: Parsed;
  readonly #report: Report;

  constructor(parsed: Parsed, report: Report) {
    this.#parsed = parsed;
    this.#report = report;
  }

  build(): TomlTable {
    const root = emptyTable(FILE_START);
    for (const statement of this.#parsed.program.body[0].body) {
      if (statement.type === "TOMLKeyValue") this.#put(root, statement, 0);
      else this.#putTable(root, statement);
    }
    return root;
  }

  #putTable(root: MutableTable, node: AST.TOMLTable): void {
    const path = this.#path(node.key, 0);
    const last = path?.at(-1);
    if (path === undefined || last === undefined) return;
    const parent = this.#descend(root, path.slice(0, -1));
    const table = parent && (node.kind === "array" ? this.#append(parent, last) : this.#open(parent, last));
    if (table === undefined) return;
    for (const entry of node.body) this.#put(table, entry, path.length);
  }

  #put(table: MutableTable, node: AST.TOMLKeyValue, depth: number): void {
    const path = this.#path(node.key, depth);
    const last = path?.at(-1);
    if (path === undefined || last === undefined) return;
    const value = this.#value(node.value, depth + path.length);
    const parent = this.#descend(table, path.slice(0, -1));
    if (parent === undefined || value === undefined) return;
    if (parent.entries.has(last.name)) this.#duplicate(last);
    else parent.entries.set(last.name, { keyAt: last.at, value });
  }

  /** undefined: a duplicate that was reported already, or too deep. */
  #path(key: AST.TOMLKey, depth: number): readonly KeyPart[] | undefined {
    const parts = key.keys.map((part) => ({
      name: part.type === "TOMLBare" ? part.name : part.value,
      at: this.#at(part),
    }));
    if (parts.some((part) => this.#parsed.edits.names.has(part.name))) return undefined;
    return depth + parts.length > DEPTH_MAX ? this.#tooDeep(this.#at(key)) : parts;
  }

  #descend(table: MutableTable, path: readonly KeyPart[]): MutableTable | undefined {
    let current: MutableTable | undefined = table;
    for (const part of path) current = current && this.#open(current, part);
    return current;
  }

  /** The table under a key, made where there is none; of an array of tables, the last. */
  #open(parent: MutableTable, part: KeyPart): MutableTable | undefined {
    const found = parent.entries.get(part.name)?.value;
    if (found === undefined) {
      const table = emptyTable(part.at);
      parent.entries.set(part.name, { keyAt: part.at, value: table });
      return table;
    }
    const table = found.kind === "array" ? found.items.at(-1) : found;
    return table?.kind === "table" ? table : this.#duplicate(part);
  }

  #append(parent: MutableTable, part: KeyPart): MutableTable | undefined {
    const table = emptyTable(part.at);
    const found = parent.entries.get(part.name)?.value;
    if (found === undefined) {
      parent.entries.set(part.name, {
        keyAt: part.at,
        value: { kind: "array", at: part.at, items: [table] },
      });
    } else if (found.kind === "array") found.items.push(table);
    else return this.#duplicate(part);
    return table;
  }

  #value(node: AST.TOMLContentNode, depth: number): MutableNode | undefined {
    const at = this.#at(node);
    if (depth > DEPTH_MAX) return this.#tooDeep(at);
    if (node.type === "TOMLArray") {
      const items = node.elements.map((element) => this.#value(element, depth + 1));
      return { kind: "array", at, items: items.filter((item) => item !== undefined) };
    }
    if (node.type === "TOMLInlineTable") {
      const table = emptyTable(at);
      for (const entry of node.body) this.#put(table, entry, depth);
      return table;
    }
    return this.#scalar(node, at);
  }

  #scalar(node: AST.TOMLValue, at: Position): MutableNode | undefined {
    switch (node.kind) {
      case "string":
        return { kind: "string", at, value: node.value };
      case "boolean":
        return { kind: "boolean", at, value: node.value };
      case "float":
        return { kind: "float", at, value: node.value };
      case "integer":
        return this.#integer(node.bigint, at);
      case "offset-date-time":
        return { kind: "instant", at, value: node.value.getTime() };
      default:
        return { kind: "local_time", at };
    }
  }

  #integer(value: bigint, at: Position): MutableNode | undefined {
    const number = Number(value);
    if (Number.isSafeInteger(number)) return { kind: "integer", at, value: number };
    this.#report(at, "an integer must lie between -9007199254740991 and 9007199254740991");
    return undefined;
  }

  #duplicate(part: KeyPart): undefined {
    this.#report(part.at, `duplicate key ${quote(part.name)}: it already has a value; keep one`);
  }

  #tooDeep(at: Position): undefined {
    this.#report(at, `nested too deeply; at most ${DEPTH_MAX} levels`);
  }

  #at(node: { readonly loc: AST.HasLocs["loc"] }): Position {
    return this.#parsed.edits.original(node.loc.start.line, node.loc.start.column);
  }
}

interface KeyPart {
  readonly name: string;
  readonly at: Position;
}

function emptyTable(at: Position): MutableTable {
  return { kind: "table", at, entries: new Map() };
}

// The library's errors carry no code, only these sentences (a test fails when they change).
const DUPLICATE = "Defining a key multiple times is invalid";

const ADVICE: ReadonlyMap<string, string> = new Map([
  ["Unterminated string constant", "the text is not closed; end it with the quote that it began with"],
  ["Unterminated table-key", "the table's name is not closed; write [name] or [[name]]"],
  ["Unterminated array", "the list is not closed; end it with ]"],
  ["Unterminated inline table", "the inline table is not closed; end it with }"],
  ["Empty bare keys are not allowed", "a name is missing here; write [name]"],
  [
    "Must be a newline",
    'something follows the value; one setting a line, and text and durations in quotes ("10s")',
  ],
  ["Expected equal (=) token", "an = is missing; write name = value"],
  ["Unspecified values are invalid", "the value is missing; write name = value"],
  ["Expected comma (,) token", "a comma is missing between two values, or the closing bracket"],
  [
    "Unexpected character",
    'unexpected character; text values stand in quotes ("..."), true and false in lower case',
  ],
  ["Unexpected token", "this cannot stand here; write name = value, [table] or [[list of tables]]"],
  ["The key, equals sign, and value must be on the same line", "name, = and value must be on one line"],
  [
    "Leading zeros are not allowed",
    'a number must not begin with 0; a file mode is text in quotes, such as "0600"',
  ],
  [
    "Invalid character in escape sequence",
    "no such escape in \"...\"; double the backslash, or use '...' which knows no escapes",
  ],
  ["Unexpected invalid date", "there is no such date; write it as 2027-01-31T00:00:00Z"],
  ["Unexpected invalid time", "there is no such time; write it as 2027-01-31T23:59:59Z"],
]);

function syntaxMessage(library: string): string {
  return `not valid TOML: ${ADVICE.get(library) ?? printable(library)}`;
}
