// The published schemas: what a shape says, as JSON Schema 2020-12 over the JSON view. Rules that a schema can't
// state (bytes of UTF-8, rules over several fields) stand there as comments.

import { INTEGER_MAX } from "./limits.ts";
import type { MapNode, Node } from "./shape.ts";
import type { TextRule } from "./text_rules.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Of the JSON view of what a node describes. `id`: its name, as the contract has it. */
export function jsonSchema(node: Node, id: string): JsonSchema {
  const definitions = new Map<string, JsonSchema>();
  const top = schemaOf(node, definitions);
  const name = node.kind === "map" ? node.name : undefined;
  const own = name === undefined ? top : (definitions.get(name) ?? top);
  if (name !== undefined) definitions.delete(name);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: id,
    title: name,
    ...own,
    $defs: Object.fromEntries([...definitions].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

function schemaOf(node: Node, definitions: Map<string, JsonSchema>): JsonSchema {
  switch (node.kind) {
    case "constant":
      return { const: node.text };
    case "text":
      return named(node.rule.name, definitions, () => textSchema(node.rule));
    case "bytes":
      return bytesSchema(node.bytesMin, node.bytesMax, node.zero);
    case "integer":
      return { type: "integer", minimum: node.min, maximum: Math.min(node.max, INTEGER_MAX) };
    case "boolean":
      return { type: "boolean" };
    case "optional":
      return { anyOf: [schemaOf(node.of, definitions), { type: "null" }] };
    case "list":
      return { type: "array", items: schemaOf(node.of, definitions) };
    case "tag":
      return { enum: node.tags.map(({ name }) => name) };
    case "choice":
      return {
        oneOf: node.cases.map((one) => objectSchema([[one.name, schemaOf(one.node, definitions)]])),
      };
    case "map":
      return named(node.name, definitions, () => mapSchema(node, definitions));
  }
}

function named(name: string, definitions: Map<string, JsonSchema>, make: () => JsonSchema): JsonSchema {
  if (!definitions.has(name)) definitions.set(name, make());
  return { $ref: `#/$defs/${name}` };
}

function textSchema({ says, bytesMax, pattern }: TextRule): JsonSchema {
  return {
    description: says,
    type: "string",
    minLength: 1,
    ...(Number.isFinite(bytesMax) ? { maxLength: bytesMax } : {}),
    ...(pattern === undefined ? {} : { pattern }),
  };
}

function bytesSchema(bytesMin: number, bytesMax: number, zero: boolean): JsonSchema {
  const most = Number.isFinite(bytesMax) ? bytesMax : "";
  const count = bytesMin === bytesMax ? `${bytesMin}` : `${bytesMin},${most}`;
  const notZero = zero ? {} : { not: { pattern: "^0*$" } };
  return { description: "hexadecimal", type: "string", pattern: `^(?:[0-9a-f]{2}){${count}}$`, ...notZero };
}

function mapSchema({ fields, rules }: MapNode, definitions: Map<string, JsonSchema>): JsonSchema {
  const object = objectSchema(fields.map(({ name, node }) => [name, schemaOf(node, definitions)]));
  return rules.length === 0 ? object : { ...object, $comment: rules.map(({ says }) => says).join("; ") };
}

function objectSchema(members: readonly (readonly [name: string, schema: JsonSchema])[]): JsonSchema {
  return {
    type: "object",
    properties: Object.fromEntries(members),
    required: members.map(([name]) => name),
    additionalProperties: false,
  };
}
