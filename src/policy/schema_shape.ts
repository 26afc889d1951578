// What can be said of a schema without a value: whether it refers to itself without going into a
// member, whether it can describe an object, whether it refuses unknown members. Where that is not
// plain, the answer is the one that denies.

import type { Json } from "../base/json.ts";
import type { SchemaDocument, SchemaNode } from "./schema_document.ts";
import type { FaultList } from "./schema_fault.ts";
import { pointerToken } from "./schema_text.ts";
import { isArray, isObject } from "./schema_values.ts";

const ALL_HOLD = ["allOf"] as const;
const SAME_VALUE_LISTS = ["allOf", "anyOf", "oneOf"] as const;
const SAME_VALUE_SINGLES = ["if", "then", "else", "not"] as const;

/** The schemas that a schema applies to the same value. */
function sameValueSchemas(document: SchemaDocument, node: SchemaNode): readonly SchemaNode[] {
  if (typeof node.schema === "boolean") return [];
  const singles = SAME_VALUE_SINGLES.flatMap((keyword) => under(document, node, keyword));
  const dependent = keysOf(node.schema.get("dependentSchemas")).flatMap((name) =>
    under(document, node, "dependentSchemas", name),
  );
  return [...referred(document, node), ...lists(document, node, SAME_VALUE_LISTS), ...singles, ...dependent];
}

function under(
  document: SchemaDocument,
  node: SchemaNode,
  keyword: string,
  key?: string,
): readonly SchemaNode[] {
  const tail = key === undefined ? "" : `/${pointerToken(key)}`;
  const inner = document.nodes.get(`${node.pointer}/${keyword}${tail}`);
  return inner === undefined ? [] : [inner];
}

function lists(
  document: SchemaDocument,
  node: SchemaNode,
  keywords: readonly string[],
): readonly SchemaNode[] {
  const schema = node.schema;
  if (typeof schema === "boolean") return [];
  return keywords.flatMap((keyword) =>
    keysOf(schema.get(keyword)).flatMap((key) => under(document, node, keyword, key)),
  );
}

function keysOf(value: Json | undefined): readonly string[] {
  if (value === undefined) return [];
  if (isArray(value)) return value.map((_, index) => String(index));
  return isObject(value) ? [...value.keys()] : [];
}

function referred(document: SchemaDocument, node: SchemaNode): readonly SchemaNode[] {
  const reference = typeof node.schema === "boolean" ? undefined : node.schema.get("$ref");
  const target = typeof reference === "string" ? document.target(reference) : undefined;
  return target === undefined ? [] : [target];
}

/** A schema that comes back to itself on the same value would never be done. */
export function refuseCircles(document: SchemaDocument, faults: FaultList): void {
  const states = new Map<SchemaNode, "open" | "done">();
  for (const first of document.nodes.values()) {
    const path: { node: SchemaNode; next: SchemaNode[] }[] = [];
    const open = (node: SchemaNode): void => {
      states.set(node, "open");
      path.push({ node, next: [...sameValueSchemas(document, node)] });
    };
    if (!states.has(first)) open(first);
    for (let at = path.at(-1); at !== undefined; at = path.at(-1)) {
      const next = at.next.pop();
      if (next === undefined) {
        states.set(at.node, "done");
        path.pop();
      } else if (states.get(next) === "open") {
        faults.add(
          at.node.pointer,
          "reference",
          "it leads back to itself without going into a member or item",
        );
      } else if (!states.has(next)) open(next);
    }
  }
}

/** All schemas that are reached from one by steps of a kind, itself among them. */
function reached(
  document: SchemaDocument,
  from: SchemaNode,
  step: (document: SchemaDocument, node: SchemaNode) => readonly SchemaNode[],
): readonly SchemaNode[] {
  const found = new Set([from]);
  for (const node of found) for (const next of step(document, node)) found.add(next);
  return [...found];
}

/** What must hold wherever the schema itself holds. */
function everyHolding(document: SchemaDocument, node: SchemaNode): readonly SchemaNode[] {
  return [...referred(document, node), ...lists(document, node, ALL_HOLD)];
}

/** Whether an object could match at all, as far as that is plain. */
export function refuseOtherThanObjects(document: SchemaDocument, faults: FaultList): void {
  if (reached(document, document.root, everyHolding).every(admitsObjects)) return;
  const advice = 'give it "type": "object"';
  faults.add("", "root", `the arguments of a tool are an object, which this never is: ${advice}`);
}

function admitsObjects({ schema }: SchemaNode): boolean {
  if (typeof schema === "boolean") return schema;
  const type = schema.get("type");
  if (type !== undefined && !(isArray(type) ? type : [type]).includes("object")) return false;
  const constant = schema.get("const");
  if (constant !== undefined && !isObject(constant)) return false;
  const values = schema.get("enum");
  return values === undefined || !isArray(values) || values.some(isObject);
}

/**
 * Whether only members that the schema declares by name get through, at the top. A schema that
 * admits names by a pattern, or that counts all as evaluated somewhere, is not closed.
 */
export function isClosed(document: SchemaDocument): boolean {
  const holding = reached(document, document.root, everyHolding);
  if (holding.some(({ schema }) => closesByItself(schema))) return true;
  const sealed = holding.filter(
    ({ schema }) => typeof schema !== "boolean" && schema.get("unevaluatedProperties") === false,
  );
  if (sealed.length === 0) return false;
  const opened = leadingToOpen(document);
  return sealed.some((node) => !opened.has(node));
}

function closesByItself(schema: SchemaNode["schema"]): boolean {
  if (typeof schema === "boolean") return false;
  return schema.get("additionalProperties") === false && !schema.has("patternProperties");
}

/** All schemas from which one that opens is reached on the same value; found backwards, each looked at once. */
function leadingToOpen(document: SchemaDocument): ReadonlySet<SchemaNode> {
  const from = new Map<SchemaNode, SchemaNode[]>();
  for (const node of document.nodes.values()) {
    for (const next of sameValueSchemas(document, node)) {
      const sources = from.get(next);
      if (sources === undefined) from.set(next, [node]);
      else sources.push(node);
    }
  }
  const found = new Set([...document.nodes.values()].filter(opens));
  for (const node of found) for (const source of from.get(node) ?? []) found.add(source);
  return found;
}

/** Whether it evaluates members that it does not name. */
function opens({ schema }: SchemaNode): boolean {
  if (typeof schema === "boolean") return false;
  const rests = [schema.get("additionalProperties"), schema.get("unevaluatedProperties")];
  return schema.has("patternProperties") || rests.some((rest) => rest !== undefined && rest !== false);
}
