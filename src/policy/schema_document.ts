// A schema document taken apart: every place in it that is a schema, by its JSON Pointer, its
// anchors, its dialect, its patterns, with every fault that can be seen without compiling. It reads
// nothing but the document: a reference that leads out of it is a fault. What lies under unknown
// keywords, `const`, `default` and the like is data, never a schema.

import type { Json, JsonObject } from "../base/json.ts";
import type { FaultList } from "./schema_fault.ts";
import {
  DESCRIPTIVE,
  KEYWORDS,
  NEWER_THAN_DRAFT_07,
  nearestKeyword,
  OTHER_IN_2019_09,
  REFUSED,
  type Shape,
  shapeFault,
} from "./schema_keywords.ts";
import { pointerToken, quoted } from "./schema_text.ts";
import { isArray, isObject } from "./schema_values.ts";

/** Values and members of a schema document, together. */
export const SCHEMA_VALUES_MAX = 20_000;
export const SCHEMA_DEPTH_MAX = 64;
/** Of all pointers together: long names above many schemas would multiply. */
const POINTERS_CHARS_MAX = 4_000_000;

export type Dialect = "2020-12" | "2019-09" | "draft-07";

const DIALECTS: ReadonlyMap<string, Dialect> = new Map<string, Dialect>([
  ["https://json-schema.org/draft/2020-12/schema", "2020-12"],
  ["https://json-schema.org/draft/2019-09/schema", "2019-09"],
  ["http://json-schema.org/draft-07/schema", "draft-07"],
  ["https://json-schema.org/draft-07/schema", "draft-07"],
]);

export interface SchemaNode {
  readonly pointer: string;
  readonly schema: boolean | JsonObject;
}

export interface SchemaDocument {
  readonly root: SchemaNode;
  /** By pointer; only places that are schemas. */
  readonly nodes: ReadonlyMap<string, SchemaNode>;
  /** Where a `$ref` leads; undefined where it leads nowhere in this document. */
  target(reference: string): SchemaNode | undefined;
  /** Every pattern, with where it stands. */
  readonly patterns: readonly { readonly pointer: string; readonly source: string }[];
}

/** Reads the whole document; the result is fit to be compiled only if `faults` stayed empty. */
export function readDocument(schema: Json, faults: FaultList): SchemaDocument | undefined {
  if (!isWithinBounds(schema, faults)) return undefined;
  if (typeof schema !== "boolean" && !isObject(schema)) {
    faults.add("", "root", "a schema must be an object, true or false");
    return undefined;
  }
  const reader = new Reader(schema, faults);
  reader.readAll();
  return reader;
}

function isWithinBounds(schema: Json, faults: FaultList): boolean {
  let values = 0;
  const pending: { value: Json; depth: number }[] = [{ value: schema, depth: 1 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const inner = isObject(next.value) ? [...next.value.values()] : isArray(next.value) ? next.value : [];
    values += 1 + inner.length;
    if (next.depth > SCHEMA_DEPTH_MAX) {
      faults.add("", "bound", `a schema may nest ${SCHEMA_DEPTH_MAX} values deep, no deeper`);
      return false;
    }
    if (values > SCHEMA_VALUES_MAX) {
      faults.add("", "bound", `a schema may have ${SCHEMA_VALUES_MAX} values and members, no more`);
      return false;
    }
    for (const value of inner) pending.push({ value, depth: next.depth + 1 });
  }
  return true;
}

class Reader implements SchemaDocument {
  readonly root: SchemaNode;
  readonly nodes = new Map<string, SchemaNode>();
  readonly patterns: { pointer: string; source: string }[] = [];
  readonly #anchors = new Map<string, SchemaNode>();
  readonly #references: { pointer: string; reference: string }[] = [];
  readonly #faults: FaultList;
  readonly #dialect: Dialect;
  readonly #id: string | undefined;
  #pointersChars = 0;
  #tooLong = false;

  constructor(schema: boolean | JsonObject, faults: FaultList) {
    this.root = { pointer: "", schema };
    this.#faults = faults;
    this.#dialect = dialectOf(schema, faults);
    this.#id = idOf(schema);
  }

  readAll(): void {
    this.#read(this.root);
    for (const { pointer, reference } of this.#references) {
      if (this.target(reference) !== undefined) continue;
      this.#faults.add(
        pointer,
        "reference",
        `it must lead to a schema of this document, as "#", "#/$defs/…" or "#anchor"; nothing is fetched`,
      );
    }
  }

  target(reference: string): SchemaNode | undefined {
    const fragment = this.#fragment(reference);
    if (fragment === undefined) return undefined;
    if (fragment === "") return this.root;
    if (!fragment.startsWith("/")) return this.#anchors.get(fragment);
    const tokens = fragment.slice(1).split("/");
    if (tokens.some((token) => /~(?![01])/.test(token))) return undefined;
    return this.nodes.get(fragment);
  }

  #fragment(reference: string): string | undefined {
    const hash = reference.indexOf("#");
    const base = hash < 0 ? reference : reference.slice(0, hash);
    if (base !== "" && base !== this.#id) return undefined;
    try {
      return hash < 0 ? "" : decodeURIComponent(reference.slice(hash + 1));
    } catch {
      return undefined;
    }
  }

  #read(node: SchemaNode): void {
    this.#pointersChars += node.pointer.length;
    if (this.#pointersChars > POINTERS_CHARS_MAX) {
      this.#refuseLength();
      return;
    }
    this.nodes.set(node.pointer, node);
    if (typeof node.schema === "boolean") return;
    for (const [keyword, value] of node.schema) this.#readKeyword(node, keyword, value);
    if (this.#dialect === "draft-07" && node.schema.has("$ref"))
      this.#refuseSiblings(node.pointer, node.schema);
  }

  #refuseLength(): void {
    if (this.#tooLong) return;
    this.#tooLong = true;
    this.#faults.add(
      "",
      "bound",
      "the names in this schema are too long for how many schemas lie beneath them",
    );
  }

  #readKeyword(node: SchemaNode, keyword: string, value: Json): void {
    if (keyword.startsWith("x-")) return;
    const pointer = `${node.pointer}/${pointerToken(keyword)}`;
    const shape = KEYWORDS.get(keyword);
    if (shape === undefined) {
      this.#refuse(pointer, keyword);
      return;
    }
    const wrong = itemsOfOlderDrafts(keyword, value) ?? shapeFault(shape, value);
    if (wrong !== undefined) {
      this.#faults.add(pointer, "value", wrong);
      return;
    }
    this.#checkDialect(pointer, keyword);
    this.#readInner(pointer, shape, value);
    this.#note(node, pointer, keyword, value);
  }

  #refuse(pointer: string, keyword: string): void {
    if (this.#faults.full) return;
    const instead = REFUSED.get(keyword);
    if (instead !== undefined) this.#faults.add(pointer, "unsupported", instead);
    else this.#faults.add(pointer, "keyword", unknownKeyword(keyword));
  }

  #checkDialect(pointer: string, keyword: string): void {
    const other =
      (this.#dialect === "draft-07" && NEWER_THAN_DRAFT_07.has(keyword)) ||
      (this.#dialect === "2019-09" && OTHER_IN_2019_09.has(keyword));
    if (!other) return;
    const advice = "name draft 2020-12 in $schema, or leave $schema out";
    this.#faults.add(
      pointer,
      "dialect",
      `${keyword} means nothing, or something else, in ${this.#dialect}: ${advice}`,
    );
  }

  /** In draft-07 they are passed over, in 2020-12 they hold: refused rather than read either way. */
  #refuseSiblings(pointer: string, schema: JsonObject): void {
    for (const keyword of schema.keys()) {
      if (DESCRIPTIVE.has(keyword) || keyword.startsWith("x-")) continue;
      const advice = "put the $ref into an allOf, or name draft 2020-12";
      this.#faults.add(
        `${pointer}/${pointerToken(keyword)}`,
        "dialect",
        `draft-07 ignores what stands beside $ref: ${advice}`,
      );
    }
  }

  #readInner(pointer: string, shape: Shape, value: Json): void {
    if (shape === "schema") this.#readSchema(pointer, value);
    if (shape === "schemas" && isArray(value)) {
      for (const [index, inner] of value.entries()) this.#readSchema(`${pointer}/${index}`, inner);
    }
    if (shape === "schema_map" && isObject(value)) {
      for (const [name, inner] of value) this.#readSchema(`${pointer}/${pointerToken(name)}`, inner);
    }
  }

  #readSchema(pointer: string, value: Json): void {
    if (typeof value === "boolean" || isObject(value)) this.#read({ pointer, schema: value });
  }

  #note(node: SchemaNode, pointer: string, keyword: string, value: Json): void {
    if (keyword === "patternProperties" && isObject(value)) {
      for (const source of value.keys())
        this.patterns.push({ pointer: `${pointer}/${pointerToken(source)}`, source });
    }
    if (typeof value !== "string") return;
    if (keyword === "pattern") this.patterns.push({ pointer, source: value });
    if (keyword === "$ref") this.#references.push({ pointer, reference: value });
    if (keyword === "$anchor") this.#noteAnchor(node, pointer, value);
    if (node.pointer === "") return;
    if (keyword === "$id") {
      this.#faults.add(pointer, "unsupported", "only the root may have one: use $anchor or $defs inside");
    }
    if (keyword === "$schema") this.#faults.add(pointer, "dialect", "only the root may name a dialect");
  }

  #noteAnchor(node: SchemaNode, pointer: string, name: string): void {
    if (!/^[A-Za-z_][-A-Za-z0-9._]*$/.test(name)) {
      this.#faults.add(pointer, "value", "must begin with a letter or _, then letters, digits, -, . and _");
    } else if (this.#anchors.has(name)) {
      this.#faults.add(pointer, "value", "another schema has the same anchor");
    } else {
      this.#anchors.set(name, node);
    }
  }
}

function unknownKeyword(keyword: string): string {
  const meant = nearestKeyword(keyword);
  const advice = meant === undefined ? "remove it, or begin its name with x-" : `perhaps ${meant} was meant`;
  return `${quoted(keyword)} is no keyword of JSON Schema 2020-12: ${advice}`;
}

function itemsOfOlderDrafts(keyword: string, value: Json): string | undefined {
  if (keyword !== "items" || !isArray(value)) return undefined;
  return "an array of schemas is of older drafts: write it as prefixItems";
}

function dialectOf(schema: boolean | JsonObject, faults: FaultList): Dialect {
  const name = typeof schema === "boolean" ? undefined : schema.get("$schema");
  if (typeof name !== "string") return "2020-12";
  const dialect = DIALECTS.get(name.endsWith("#") ? name.slice(0, -1) : name);
  if (dialect === undefined) {
    faults.add("/$schema", "dialect", `must be ${[...DIALECTS.keys()][0]}, or be left out`);
  }
  return dialect ?? "2020-12";
}

/** The root's own URI without its empty fragment. */
function idOf(schema: boolean | JsonObject): string | undefined {
  const id = typeof schema === "boolean" ? undefined : schema.get("$id");
  if (typeof id !== "string") return undefined;
  return id.endsWith("#") ? id.slice(0, -1) : id;
}
