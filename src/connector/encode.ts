// A document to its canonical bytes. Invariant: what comes out decodes to the same value; a value that is not valid,
// whatever it is, gives nothing.

import { Writer } from "./message_pack.ts";
import type { Field, MapNode, Node, Shape } from "./shape.ts";

/** What most documents without a long text take. */
const BYTES_EXPECTED = 1024;

/**
 * Undefined: the value is no valid document. Throws only what a getter of the value throws. `bytesExpected`: about what it
 * will take, where the caller knows; a better guess is faster, a wrong one costs a copy.
 */
export function encode<T>(
  shape: Shape<T>,
  value: unknown,
  bytesExpected = BYTES_EXPECTED,
): Buffer | undefined {
  const writer = new Writer(bytesExpected);
  return write(shape.node, value, writer) ? writer.end() : undefined;
}

/** Whether it could be written; what was written of another value is of no use. */
function write(node: Node, value: unknown, writer: Writer): boolean {
  switch (node.kind) {
    case "constant":
      writer.encoded(node.encoded);
      return value === node.text;
    case "text":
      return typeof value === "string" && writeText(value, node, writer);
    case "bytes":
      return value instanceof Uint8Array && writeBytes(value, node, writer);
    case "integer":
      if (!Number.isSafeInteger(value)) return false;
      return writeInteger(value as number, node, writer);
    case "boolean":
      if (typeof value !== "boolean") return false;
      writer.boolean(value);
      return true;
    case "optional":
      if (value !== null) return write(node.of, value, writer);
      writer.nil();
      return true;
    case "list":
      return Array.isArray(value) && writeList(value, node.of, writer);
    case "tag": {
      const found = node.tags.find(({ name }) => name === value);
      if (found === undefined) return false;
      writer.encoded(found.encoded);
      return true;
    }
    case "choice":
      return isRecord(value) && writeChoice(value, node.cases, writer);
    case "map":
      return isRecord(value) && writeMap(value, node, writer);
  }
}

function writeText(text: string, { rule }: Extract<Node, { kind: "text" }>, writer: Writer): boolean {
  // A text has no more UTF-16 units than bytes: one that is far too long is not measured first.
  if (text === "" || text.length > rule.bytesMax || !text.isWellFormed()) return false;
  const length = Buffer.byteLength(text);
  if (length > rule.bytesMax || !rule.fits(text)) return false;
  writer.text(text, length);
  return true;
}

function writeBytes(bytes: Uint8Array, node: Extract<Node, { kind: "bytes" }>, writer: Writer): boolean {
  if (bytes.length < node.bytesMin || bytes.length > node.bytesMax) return false;
  if (!node.zero && bytes.every((byte) => byte === 0)) return false;
  writer.binary(bytes);
  return true;
}

function writeInteger(value: number, node: Extract<Node, { kind: "integer" }>, writer: Writer): boolean {
  if (value < node.min || value > node.max) return false;
  writer.integer(value);
  return true;
}

function writeList(items: readonly unknown[], of: Node, writer: Writer): boolean {
  writer.array(items.length);
  for (const item of items) {
    if (!write(of, item, writer)) return false;
  }
  return true;
}

function writeChoice(value: Readonly<Record<string, unknown>>, cases: readonly Field[], writer: Writer) {
  const [name, ...others] = Object.keys(value);
  const found = cases.find((one) => one.name === name);
  if (found === undefined || others.length > 0) return false;
  writer.map(1);
  writer.encoded(found.encoded);
  return write(found.node, value[found.name], writer);
}

function writeMap(value: Readonly<Record<string, unknown>>, { fields, rules }: MapNode, writer: Writer) {
  if (Object.keys(value).length !== fields.length) return false;
  writer.map(fields.length);
  for (const { name, encoded, node } of fields) {
    writer.encoded(encoded);
    if (!write(node, value[name], writer)) return false;
  }
  return rules.every(({ holds }) => holds(value));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
