// Bytes to a document: strictly, whole, in one walk along the shape. Invariant: what is accepted is the canonical encoding
// of the value that is returned, and the walk goes no deeper than the shape does.

import { MALFORMED, Reader } from "./message_pack.ts";
import type { MapNode, Node, Shape } from "./shape.ts";

/** Undefined: malformed, for whatever reason; no finer error is part of the contract. Binary is a view of `bytes`. */
export function decode<T>(shape: Shape<T>, bytes: Uint8Array): T | undefined {
  const reader = new Reader(bytes);
  try {
    const value = read(shape.node, reader);
    return reader.atEnd ? (value as T) : undefined;
  } catch (error) {
    if (error === MALFORMED) return undefined;
    throw error;
  }
}

function read(node: Node, reader: Reader): unknown {
  switch (node.kind) {
    case "constant":
      if (!reader.takes(node.encoded)) throw MALFORMED;
      return node.text;
    case "text": {
      const text = reader.text(node.rule.bytesMax);
      if (text === "" || !node.rule.fits(text)) throw MALFORMED;
      return text;
    }
    case "bytes":
      return readBytes(reader.binary(node.bytesMin, node.bytesMax), node.zero);
    case "integer": {
      const value = reader.integer();
      if (value < node.min || value > node.max) throw MALFORMED;
      return value;
    }
    case "boolean":
      return reader.boolean();
    case "optional":
      return reader.nil() ? null : read(node.of, reader);
    case "list":
      return readList(node.of, reader);
    case "tag":
      return taken(node.tags, reader).name;
    case "choice": {
      reader.map(1);
      const found = taken(node.cases, reader);
      return { [found.name]: read(found.node, reader) };
    }
    case "map":
      return readMap(node, reader);
  }
}

function readBytes(bytes: Buffer, zero: boolean): Buffer {
  if (!zero && bytes.every((byte) => byte === 0)) throw MALFORMED;
  return bytes;
}

/** An item takes a byte at least, so an array that grows as its items come is bounded by what came. */
function readList(of: Node, reader: Reader): readonly unknown[] {
  const items: unknown[] = [];
  for (let left = reader.array(); left > 0; left--) items.push(read(of, reader));
  return items;
}

function taken<K extends { readonly encoded: Buffer }>(keys: readonly K[], reader: Reader): K {
  for (const key of keys) {
    if (reader.takes(key.encoded)) return key;
  }
  throw MALFORMED;
}

function readMap({ fields, rules }: MapNode, reader: Reader): Readonly<Record<string, unknown>> {
  reader.map(fields.length);
  const value: Record<string, unknown> = {};
  for (const { name, encoded, node } of fields) {
    if (!reader.takes(encoded)) throw MALFORMED;
    value[name] = read(node, reader);
  }
  for (const { holds } of rules) {
    if (!holds(value)) throw MALFORMED;
  }
  return value;
}
