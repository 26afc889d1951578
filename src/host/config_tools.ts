// `[tools.NAME]`: which role provides a tool, what its calls may do and cost, and what its
// arguments look like. Schemas are compiled here by a port; faults in them are reported at the
// place in the file that they are about.

import type { Result } from "../base/faults.ts";
import { BUILTIN_PREFIX, isRoleName, isToolName } from "../base/ids.ts";
import { type Json, type JsonObject, parseJson } from "../base/json.ts";
import { classAbove, DATA_CLASSES } from "../base/labels.ts";
import type { ToolPolicy } from "../policy/policy.ts";
import type { ArgumentsSchema, SchemaFault } from "../policy/schema.ts";
import { type Located, type Position, printable, quote, type Report, suggestion } from "./config_faults.ts";
import type { RoleDraft } from "./config_roles.ts";
import {
  duration,
  flag,
  integer,
  json,
  list,
  oneOf,
  type Reader,
  readTable,
  type TableRead,
  table,
  text,
} from "./config_shape.ts";
import type { TomlNode, TomlTable } from "./config_toml.ts";

export const TOOL_DEFAULTS = { timeoutMs: 60_000, resultBytesMax: 262_144 } as const;

const RESULT_BYTES_MAX = 67_108_864;
const EFFECTS = ["read", "write", "send", "spend", "execute"] as const;

/** The schema and the node that it was read from, so that its faults can be placed. */
interface InlineSchema {
  readonly json: Json;
  readonly node: TomlNode;
}

const inlineSchema: Reader<InlineSchema> = (node, name, report) => {
  const value = table(node, name, report) && json(node, name, report);
  return value === undefined ? undefined : { json: value, node };
};

const storeName: Reader<string | false> = (node, name, report) => {
  if (node.kind === "boolean" && !node.value) return false;
  return text("the name of a store (lower-case letters, digits, _ or -) or false", isRoleName)(
    node,
    name,
    report,
  );
};

const TOOL_SHAPE = {
  role: text("the name of the role that provides it"),
  description: text(),
  effect: oneOf(EFFECTS),
  class: oneOf(DATA_CLASSES),
  untrusted: flag,
  timeout: duration("1ms", "1d"),
  max_result_bytes: integer(1, RESULT_BYTES_MAX),
  on_oversize: oneOf(["cut", "fail"]),
  schema: inlineSchema,
  schema_file: text("the path of a JSON file", (path) => !path.includes("\0")),
  destinations: list(text("the name of an argument"), "a list of names of arguments"),
  store: storeName,
  store_key: text("the name of an argument"),
  record: oneOf(["durable", "memory"]),
  audit_arguments: list(text("the name of an argument"), "a list of names of arguments"),
} as const;

export type ToolRead = TableRead<typeof TOOL_SHAPE>;

/** A tool and where its parts stand. Faulty parts were reported and are at their defaults. */
export interface ToolDraft {
  readonly policy: ToolPolicy;
  readonly read: ToolRead;
  readonly at: Position;
  /** A schema was written and is no good: nothing more is said about what it lacks. */
  readonly schemaRefused: boolean;
}

export interface SchemaPorts {
  readonly compileSchema: (schema: Json) => Promise<Result<ArgumentsSchema, readonly SchemaFault[]>>;
  /** Text of a file; the path is relative to the config's directory. The fault says why not. */
  readonly readRelative: (path: string) => Promise<Result<string>>;
}

export async function readTools(
  tools: TomlTable,
  roles: ReadonlyMap<string, RoleDraft>,
  ports: SchemaPorts,
  report: Report,
): Promise<ReadonlyMap<string, ToolDraft>> {
  const drafts = new Map<string, ToolDraft>();
  for (const [name, entry] of tools.entries) {
    checkName(name, entry.keyAt, report);
    const found = table(entry.value, `tools.${quote(name)}`, report);
    if (found === undefined) continue;
    const read = readTable(found, toolRules(name, found), report);
    drafts.set(name, await compileTool(name, read, entry.keyAt, roles, ports, report));
  }
  return drafts;
}

/** Whether a tool of this name would be, or could pass for, one of the broker's. */
function isReserved(name: string): boolean {
  return name.startsWith(BUILTIN_PREFIX) || `${name}.` === BUILTIN_PREFIX;
}

function checkName(name: string, at: Position, report: Report): void {
  if (isReserved(name)) report(at, `${quote(name)} belongs to the broker itself; choose another name`);
  else if (!isToolName(name)) {
    report(
      at,
      `${quote(name)} is no tool name; write a lower-case letter, then letters, digits, _ or -, ` +
        "in parts joined by single dots (at most 128 characters)",
    );
  }
}

function toolRules(name: string, found: TomlTable) {
  const dotted = [...found.entries]
    .filter(([key, entry]) => entry.value.kind === "table" && !Object.hasOwn(TOOL_SHAPE, key))
    .map(([key]): [string, string] => [
      key,
      `a tool name with a dot stands in quotes: [tools.${quote(`${name}.${key}`)}]`,
    ]);
  return { name: "a tool", shape: TOOL_SHAPE, required: ["role"], elsewhere: new Map(dotted) } as const;
}

async function compileTool(
  name: string,
  read: ToolRead,
  at: Position,
  roles: ReadonlyMap<string, RoleDraft>,
  ports: SchemaPorts,
  report: Report,
): Promise<ToolDraft> {
  const { fields } = read;
  const schema = await compileSchema(read, ports, report);
  const role = fields.role?.value ?? "";
  const policy: ToolPolicy = {
    name,
    role,
    description: fields.description?.value,
    effect: fields.effect?.value ?? "execute",
    floor: { class: fields.class?.value ?? "public", untrusted: fields.untrusted?.value ?? true },
    timeoutMs: fields.timeout?.value ?? TOOL_DEFAULTS.timeoutMs,
    resultBytesMax: fields.max_result_bytes?.value ?? TOOL_DEFAULTS.resultBytesMax,
    onOversize: fields.on_oversize?.value ?? "cut",
    schema,
    destinations: (fields.destinations?.value ?? []).map((argument) => argument.value),
    store: fields.store?.value === false ? undefined : (fields.store?.value ?? role),
    storeKey: fields.store_key?.value,
    record: fields.record?.value ?? "durable",
    auditArguments: (fields.audit_arguments?.value ?? []).map((argument) => argument.value),
  };
  checkRole(read, roles, report);
  checkArguments(read, schema, report);
  checkRecord(read, report);
  const schemaRefused = schema === undefined && (read.keys.has("schema") || read.keys.has("schema_file"));
  return { policy, read, at, schemaRefused };
}

function checkRole(read: ToolRead, roles: ReadonlyMap<string, RoleDraft>, report: Report): void {
  const { role, class: floor } = read.fields;
  if (role === undefined) return;
  const provider = roles.get(role.value)?.policy;
  if (provider === undefined) {
    report(role.at, `no role ${quote(role.value)}; ${suggestion(role.value, roles.keys(), "roles")}`);
  } else if (floor !== undefined && classAbove(floor.value, provider.classMax)) {
    report(
      floor.at,
      `class ${quote(floor.value)} is above class_max ${quote(provider.classMax)} of role ${provider.name}, ` +
        "so every result would fail; lower the one or raise the other",
    );
  }
}

/** Names of arguments that a schema does not declare are misspelt, or never looked at. */
function checkArguments(read: ToolRead, schema: ArgumentsSchema | undefined, report: Report): void {
  const { destinations, store, store_key: storeKey, audit_arguments: audited } = read.fields;
  if (store?.value === false && storeKey !== undefined) {
    report(storeKey.at, "store_key means nothing beside store = false; remove one of them");
  }
  const declared = schema && declaredArguments(schema);
  if (declared === undefined) return;
  const named: (Located<string> | undefined)[] = [
    ...(destinations?.value ?? []),
    storeKey,
    ...(audited?.value ?? []),
  ];
  for (const argument of named) {
    if (argument === undefined || declared.has(argument.value)) continue;
    const advice = suggestion(argument.value, declared.keys(), "arguments");
    report(argument.at, `the schema declares no argument ${quote(argument.value)}; ${advice}`);
  }
}

/** A call with an effect that nobody wrote down could run twice. */
function checkRecord({ fields, keys }: ToolRead, report: Report): void {
  const { record, effect } = fields;
  if (record?.value !== "memory" || effect?.value === "read") return;
  if (effect === undefined && keys.has("effect")) return;
  const found = effect === undefined ? "this one declares none" : `this one has ${quote(effect.value)}`;
  report(
    record.at,
    `record = "memory" forgets at a restart what ran, so it is for tools with effect = "read" alone; ${found}`,
  );
}

export function declaredArguments(schema: ArgumentsSchema): JsonObject {
  const properties = schema.source instanceof Map ? schema.source.get("properties") : undefined;
  return properties instanceof Map ? properties : new Map();
}

async function compileSchema(
  read: ToolRead,
  ports: SchemaPorts,
  report: Report,
): Promise<ArgumentsSchema | undefined> {
  const { schema, schema_file: file } = read.fields;
  if (read.keys.has("schema") && read.keys.has("schema_file")) {
    report(read.keys.get("schema_file") ?? read.at, "a tool has schema or schema_file, not both; remove one");
    return undefined;
  }
  const source = schema?.value.json ?? (file && (await readSchemaFile(file, ports, report)));
  if (source === undefined) return undefined;
  const compiled = await ports.compileSchema(source);
  if (compiled.ok) return compiled.value;
  for (const found of compiled.fault) {
    const where = found.pointer === "" ? "" : ` at ${quote(found.pointer)}`;
    if (file !== undefined) report(file.at, `${quote(file.value)}${where}: ${printable(found.message)}`);
    else if (schema !== undefined) {
      report(nodeAt(schema.value.node, found.pointer).at, `schema${where}: ${printable(found.message)}`);
    }
  }
  return undefined;
}

const SCHEMA_LIMITS = { depth: 64, nodes: 65_536, integerDigits: 308 } as const;

async function readSchemaFile(
  file: Located<string>,
  ports: SchemaPorts,
  report: Report,
): Promise<Json | undefined> {
  const content = await ports.readRelative(file.value);
  if (!content.ok) return void report(file.at, `cannot read ${quote(file.value)}: ${content.fault}`);
  const parsed = parseJson(content.value, SCHEMA_LIMITS);
  if (parsed.ok) return parsed.value;
  const line = content.value.slice(0, parsed.fault.offset).split("\n").length;
  return void report(
    file.at,
    `${quote(file.value)} line ${line} is no strict JSON: ${printable(parsed.fault.message)}`,
  );
}

/** The node that a JSON Pointer leads to, or the last one on the way. */
function nodeAt(from: TomlNode, pointer: string): TomlNode {
  let node = from;
  for (const token of pointer.split("/").slice(1)) {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
    const next = node.kind === "table" ? node.entries.get(key)?.value : itemAt(node, key);
    if (next === undefined) break;
    node = next;
  }
  return node;
}

function itemAt(node: TomlNode, key: string): TomlNode | undefined {
  return node.kind === "array" ? node.items[Number(key)] : undefined;
}
