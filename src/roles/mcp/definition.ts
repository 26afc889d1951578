// An MCP tool as the broker knows it, and back. Everything of a server's that a client will ever see of a tool stands
// in the definition that the broker pins; nothing else of the server's reaches a client but results. Names: what a
// server calls a tool, what the broker calls it, and what a client calls it, each mapped so that two never become one.
// Invariant: both mappings of names depend on the name alone, so a name means the same on every day.

import { createHash } from "node:crypto";
import { isToolName } from "../../base/ids.ts";

/** A tool as an MCP server lists it. Untrusted; of other members nothing is known and nothing passed on. */
export interface McpTool {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly inputSchema: JsonMembers;
  readonly outputSchema?: JsonMembers | undefined;
  readonly annotations?: JsonMembers | undefined;
  readonly icons?: readonly unknown[] | undefined;
  readonly _meta?: JsonMembers | undefined;
}

export type JsonMembers = Readonly<Record<string, unknown>>;

/** As `callgate.tools.announce` takes it and `callgate.tools.list` tells it. */
export interface BrokerTool {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly schema?: unknown;
  readonly annotations?: unknown;
}

/** What the broker is told of a tool. */
export interface AnnouncedTool {
  readonly name: string;
  readonly description: string;
  /** Left out where the broker would refuse it, and the owner wants the tool all the same. */
  readonly schema?: JsonMembers;
  readonly annotations: { readonly mcp: McpNotes };
}

/** `annotations.mcp`: what of the server's tool the broker's own members have no place for. */
export interface McpNotes {
  readonly v: 1;
  /** What the server calls the tool. */
  readonly name: string;
  readonly title?: string;
  /** The whole description, where it is too long for the broker's. */
  readonly description?: string;
  /** The schema of the arguments, where the broker was not given it. */
  readonly inputSchema?: JsonMembers;
  readonly outputSchema?: JsonMembers;
  readonly annotations?: JsonMembers;
  readonly icons?: readonly unknown[];
  readonly _meta?: JsonMembers;
}

/** What the broker takes as a description (src/broker/definitions.ts). */
const DESCRIPTION_CHARS_MAX = 8192;
/** What models take as a tool's name: the shortest limit among them. */
const MODEL_NAME_CHARS_MAX = 64;

const DIGEST_CHARS = 12;
/** A name that ends so by itself is mapped too: so no name is what another was mapped to. */
const BROKER_TAIL = /_[0-9a-f]{12}$/;
const CLIENT_TAIL = /-[0-9a-f]{12}$/;

/** The definition that is announced. `checked` false: the broker gets no schema to check arguments with. */
export function announcedTool(tool: McpTool, prefix: string, checked = true): AnnouncedTool {
  const description = tool.description ?? "";
  const isLong = description.length > DESCRIPTION_CHARS_MAX;
  const notes: McpNotes = {
    v: 1,
    name: tool.name,
    ...present("title", tool.title),
    ...(isLong ? { description } : {}),
    ...(checked ? {} : { inputSchema: tool.inputSchema }),
    ...present("outputSchema", tool.outputSchema),
    ...present("annotations", tool.annotations),
    ...present("icons", tool.icons),
    ...present("_meta", tool._meta),
  };
  return {
    name: brokerToolName(prefix, tool.name),
    description: isLong ? cut(description, DESCRIPTION_CHARS_MAX) : description,
    ...(checked ? { schema: tool.inputSchema } : {}),
    annotations: { mcp: notes },
  };
}

/**
 * The notes of a definition that an adapter announced; undefined where there are none, or other than this version
 * writes. Only where a tool has them is the content of its results a CallToolResult.
 */
export function mcpNotesOf({ annotations }: Pick<BrokerTool, "annotations">): McpNotes | undefined {
  const notes = membersOf(membersOf(annotations)?.["mcp"]);
  if (notes?.["v"] !== 1 || typeof notes["name"] !== "string") return undefined;
  const { title, description, inputSchema, outputSchema, icons } = notes;
  return {
    v: 1,
    name: notes["name"],
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof description === "string" ? { description } : {}),
    ...present("inputSchema", membersOf(inputSchema)),
    ...present("outputSchema", membersOf(outputSchema)),
    ...present("annotations", membersOf(notes["annotations"])),
    ...(Array.isArray(icons) ? { icons } : {}),
    ...present("_meta", membersOf(notes["_meta"])),
  };
}

/** Any tool of the broker's as an MCP client sees it, under `clientToolName`; an adapter's as its server described it. */
export function clientTool(tool: BrokerTool): McpTool {
  const { v, name: _, ...seen } = mcpNotesOf(tool) ?? { v: 1, name: "" };
  const { description = tool.description ?? undefined, inputSchema, ...rest } = seen;
  return {
    name: clientToolName(tool.name),
    ...(description === undefined || description === "" ? {} : { description }),
    inputSchema: inputSchema ?? objectSchema(tool.schema),
    ...rest,
  };
}

/** MCP wants a schema whose root says that it is of an object; of a tool without one anything is taken. */
function objectSchema(schema: unknown): JsonMembers {
  const members = membersOf(schema) ?? {};
  return members["type"] === "object" ? members : { ...members, type: "object" };
}

/**
 * `prefix` and the server's name, in the broker's grammar and at most 64 characters together, where each `.` counts as
 * two. A name that is so already stays as it is; any other has its words in lower case, what is no letter, digit, `-` or
 * `_` as `_`, is cut, and ends in `_` and twelve hexadecimal digits of the SHA-256 of the server's name.
 */
export function brokerToolName(prefix: string, name: string): string {
  const whole = prefix + name;
  if (fitsModels(whole) && isToolName(whole) && !BROKER_TAIL.test(whole)) return whole;
  const words = name
    .slice(0, 2 * MODEL_NAME_CHARS_MAX)
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "_")
    .replace(/^[^a-z]+/, "");
  const room = MODEL_NAME_CHARS_MAX - dotless(prefix).length - DIGEST_CHARS - 1;
  return `${prefix}${trimmed(words, Math.max(room, 1), "tool")}_${digestOf(name)}`;
}

/** What `brokerToolName` can keep its promises for: `fs.` or `fs_`, in the grammar, and not too long. */
export function isToolPrefix(prefix: string): boolean {
  return prefix === "" || (isToolName(`${prefix}a`) && dotless(prefix).length <= PREFIX_CHARS_MAX);
}

const PREFIX_CHARS_MAX = 40;

/**
 * The broker's name as models take it: letters, digits, `_` and `-`, at most 64. `.` becomes `__`; a name in which that
 * could be mistaken, or that is too long, is cut and ends in `-` and twelve digits of its own SHA-256.
 */
export function clientToolName(name: string): string {
  const isClear = !/__|_\.|\._/.test(name) && !CLIENT_TAIL.test(name);
  if (isClear && fitsModels(name)) return dotless(name);
  return `${trimmed(dotless(name), MODEL_NAME_CHARS_MAX - DIGEST_CHARS - 1, "tool")}-${digestOf(name)}`;
}

function dotless(name: string): string {
  return name.replaceAll(".", "__");
}

function fitsModels(name: string): boolean {
  return dotless(name).length <= MODEL_NAME_CHARS_MAX;
}

function digestOf(name: string): string {
  return createHash("sha256").update(name).digest("hex").slice(0, DIGEST_CHARS);
}

function trimmed(text: string, charsMax: number, otherwise: string): string {
  return text.slice(0, charsMax).replace(/[_-]+$/, "") || otherwise;
}

/** Between characters. */
function cut(text: string, charsMax: number): string {
  return `${text.slice(0, charsMax - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

function membersOf(value: unknown): JsonMembers | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonMembers) // any JSON object is one
    : undefined;
}

function present<K extends string, V>(name: K, value: V | undefined): { readonly [P in K]?: V } {
  return value === undefined ? {} : ({ [name]: value } as { readonly [P in K]: V });
}
