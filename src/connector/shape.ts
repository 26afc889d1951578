// The vocabulary that documents are defined in. A shape is data: the codec, the JSON view and the published
// schemas all read the same one, so they can't tell different stories. Invariant: a shape is a tree, so
// whoever walks it goes no deeper than the deepest document does.

import { INTEGER_MAX } from "./limits.ts";
import { textHead } from "./message_pack.ts";
import type { TextRule } from "./text_rules.ts";

/** Of values of type T. Made by the functions below only. */
export interface Shape<T> {
  readonly node: Node;
  /** For the compiler alone: a shape of one type is none of another. */
  readonly holds?: (value: T) => T;
}

export type Node =
  | { readonly kind: "constant"; readonly text: string; readonly encoded: Buffer }
  | { readonly kind: "text"; readonly rule: TextRule }
  | { readonly kind: "bytes"; readonly bytesMin: number; readonly bytesMax: number; readonly zero: boolean }
  | { readonly kind: "integer"; readonly min: number; readonly max: number }
  | { readonly kind: "boolean" }
  | { readonly kind: "optional"; readonly of: Node }
  | { readonly kind: "list"; readonly of: Node }
  | { readonly kind: "tag"; readonly tags: readonly Key[] }
  | { readonly kind: "choice"; readonly cases: readonly Field[] }
  | MapNode;

/** A text that the contract fixes, with its encoding. */
export interface Key {
  readonly name: string;
  readonly encoded: Buffer;
}

export interface Field extends Key {
  readonly node: Node;
}

export interface MapNode {
  readonly kind: "map";
  readonly name: string;
  /** At most 15, in the order of the contract. */
  readonly fields: readonly Field[];
  readonly rules: readonly Rule[];
}

/** A rule over several fields of a map. */
export interface Rule {
  readonly says: string;
  /** Of a value whose fields hold each for itself. */
  readonly holds: (value: unknown) => boolean;
}

export function constant<T extends string>(text: T): Shape<T> {
  return { node: { kind: "constant", text, encoded: key(text).encoded } };
}

export function text(rule: TextRule): Shape<string> {
  return { node: { kind: "text", rule } };
}

export function bytes(bytesMin: number, bytesMax: number): Shape<Uint8Array> {
  return { node: { kind: "bytes", bytesMin, bytesMax, zero: true } };
}

/** Not all zero. */
export function bytesNotZero(count: number): Shape<Uint8Array> {
  return { node: { kind: "bytes", bytesMin: count, bytesMax: count, zero: false } };
}

/** Both bounds belong to it. */
export function integer(min = 0, max = INTEGER_MAX): Shape<number> {
  return { node: { kind: "integer", min, max } };
}

export const BOOLEAN: Shape<boolean> = { node: { kind: "boolean" } };

export function optional<T>(of: Shape<T>): Shape<T | null> {
  return { node: { kind: "optional", of: of.node } };
}

export function list<T>(of: Shape<T>): Shape<readonly T[]> {
  return { node: { kind: "list", of: of.node } };
}

/** One of the words. */
export function tag<T extends string>(tags: readonly T[]): Shape<T> {
  return { node: { kind: "tag", tags: tags.map(key) } };
}

type CasesOf<T> = T extends unknown ? keyof T & string : never;
type ContentOf<T, K> = T extends Readonly<Record<K & string, infer C>> ? C : never;

/** A map of one entry, from the word to its content. */
export function choice<T extends object>(
  cases: {
    readonly [K in CasesOf<T>]: Shape<ContentOf<T, K>>;
  },
): Shape<T> {
  return { node: { kind: "choice", cases: fieldsOf(cases) } };
}

/** All fields, in the order that they stand in. */
export function map<T extends object>(
  name: string,
  fields: { readonly [K in keyof T & string]: Shape<T[K]> },
  rules: readonly { readonly says: string; readonly holds: (value: T) => boolean }[] = [],
): Shape<T> {
  return {
    // The codec asks a rule only about values that have this shape.
    node: { kind: "map", name, fields: fieldsOf(fields), rules: rules as readonly Rule[] },
  };
}

function fieldsOf(shapes: Readonly<Record<string, { readonly node: Node }>>): readonly Field[] {
  return Object.entries(shapes).map(([name, shape]) => ({ ...key(name), node: shape.node }));
}

function key(name: string): Key {
  return { name, encoded: Buffer.concat([textHead(Buffer.byteLength(name)), Buffer.from(name)]) };
}
