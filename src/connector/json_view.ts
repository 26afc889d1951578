// Documents as JSON, for people, tests and tools (spec: connector, 8): binary as lower-case hexadecimal, everything
// else as itself. It is never sent.

import type { Node, Shape } from "./shape.ts";

/** Of a valid document: plain data that JSON.stringify takes. */
export function view<T>(shape: Shape<T>, value: T): unknown {
  return viewed(shape.node, value);
}

/**
 * The value that a view stands for; not checked: `encode` does that. What is no view of this shape stays as it is,
 * or is left out, so that it is found there.
 */
export function fromView<T>(shape: Shape<T>, json: unknown): unknown {
  return unviewed(shape.node, json);
}

function viewed(node: Node, value: unknown): unknown {
  return converted(node, value, (bytes) =>
    bytes instanceof Uint8Array ? Buffer.from(bytes).toString("hex") : bytes,
  );
}

const HEX = /^(?:[0-9a-f]{2})*$/;

function unviewed(node: Node, json: unknown): unknown {
  return converted(node, json, (hex) =>
    typeof hex === "string" && HEX.test(hex) ? Buffer.from(hex, "hex") : undefined,
  );
}

/** The same value with all binary converted. */
function converted(node: Node, value: unknown, convert: (binary: unknown) => unknown): unknown {
  switch (node.kind) {
    case "bytes":
      return convert(value);
    case "optional":
      return value === null ? null : converted(node.of, value, convert);
    case "list":
      return Array.isArray(value) ? value.map((item) => converted(node.of, item, convert)) : value;
    case "choice":
      return convertedMembers(value, node.cases, convert);
    case "map":
      return convertedMembers(value, node.fields, convert);
    default:
      return value;
  }
}

function convertedMembers(
  value: unknown,
  fields: readonly { readonly name: string; readonly node: Node }[],
  convert: (binary: unknown) => unknown,
): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const field = fields.find((one) => one.name === name);
      return [name, field === undefined ? member : converted(field.node, member, convert)];
    }),
  );
}
