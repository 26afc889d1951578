// Why a value is no valid document, for people: the first place where it breaks its shape, and what stands there by
// the contract. `encode` alone decides whether it is valid; this only tells, and quotes nothing of the value.

import type { Field, MapNode, Node, Shape } from "./shape.ts";

/** A sentence without its full stop; undefined: nothing is wrong with it, or nothing that can be told. */
export function explainValue<T>(shape: Shape<T>, value: unknown): string | undefined {
  return explain(shape.node, value, "");
}

function explain(node: Node, value: unknown, at: string): string | undefined {
  switch (node.kind) {
    case "constant":
      return value === node.text ? undefined : says(at, JSON.stringify(node.text));
    case "text":
      return explainText(node, value, at);
    case "bytes":
      return explainBytes(node, value, at);
    case "integer": {
      const fits = Number.isSafeInteger(value) && Number(value) >= node.min && Number(value) <= node.max;
      return fits ? undefined : says(at, `a whole number from ${node.min} to ${node.max}`);
    }
    case "boolean":
      return typeof value === "boolean" ? undefined : says(at, "true or false");
    case "optional":
      return value === null ? undefined : explain(node.of, value, at);
    case "list":
      if (!Array.isArray(value)) return says(at, "a list");
      return first(value, (item, i) => explain(node.of, item, `${at}[${i}]`));
    case "tag":
      return node.tags.some(({ name }) => name === value) ? undefined : says(at, oneOf(node.tags));
    case "choice":
      return explainChoice(node.cases, value, at);
    case "map":
      return explainMap(node, value, at);
  }
}

function explainText({ rule }: Extract<Node, { kind: "text" }>, value: unknown, at: string) {
  if (typeof value !== "string") return says(at, `a text (${rule.says})`);
  const isText = value !== "" && value.isWellFormed() && Buffer.byteLength(value) <= rule.bytesMax;
  return isText && rule.fits(value) ? undefined : says(at, `a text of this kind: ${rule.says}`);
}

function explainBytes(node: Extract<Node, { kind: "bytes" }>, value: unknown, at: string) {
  const { bytesMin, bytesMax, zero } = node;
  const length = value instanceof Uint8Array ? value.length : -1;
  const isZero = !zero && value instanceof Uint8Array && value.every((byte) => byte === 0);
  if (length >= bytesMin && length <= bytesMax && !isZero) return undefined;
  const count = bytesMin === bytesMax ? `${bytesMin} bytes` : `${bytesMin} byte or more`;
  return says(at, `${count} in lower-case hexadecimal${zero ? "" : ", not all zero"}`);
}

function explainChoice(cases: readonly Field[], value: unknown, at: string): string | undefined {
  const [name, ...others] = isRecord(value) ? Object.keys(value) : [];
  const found = cases.find((one) => one.name === name);
  if (!isRecord(value) || found === undefined || others.length > 0)
    return says(at, `an object with one member, ${oneOf(cases)}`);
  return explain(found.node, value[found.name], inside(at, found.name));
}

function explainMap({ fields, rules }: MapNode, value: unknown, at: string): string | undefined {
  if (!isRecord(value)) return says(at, "an object");
  const missing = fields.find(({ name }) => !Object.hasOwn(value, name));
  if (missing !== undefined) return `${inside(at, missing.name)} is missing`;
  if (Object.keys(value).length !== fields.length)
    return `${at === "" ? "it" : at} has a member that is not known; known are ${fields.map(({ name }) => name).join(", ")}`;
  const wrong = first(fields, ({ name, node }) => explain(node, value[name], inside(at, name)));
  return wrong ?? rules.find(({ holds }) => !holds(value))?.says;
}

function first<I>(items: readonly I[], told: (item: I, index: number) => string | undefined) {
  for (const [i, item] of items.entries()) {
    const found = told(item, i);
    if (found !== undefined) return found;
  }
  return undefined;
}

function says(at: string, expected: string): string {
  return `${at === "" ? "it" : at} must be ${expected}`;
}

function inside(at: string, name: string): string {
  return at === "" ? name : `${at}.${name}`;
}

function oneOf(words: readonly { readonly name: string }[]): string {
  return words.map(({ name }) => name).join(" or ");
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
