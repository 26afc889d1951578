// The tools and grants of a provider of files in the config that `callgate init` writes. The schemas are
// those that `callgate role files` itself states, so a call that passes the gate is one that it takes.

import { DATA_CLASSES } from "../base/labels.ts";
import {
  FILES_TOOLS,
  type FilesToolDefinition,
  type FilesToolName,
  filesToolDefinitions,
} from "../roles/files/definitions.ts";
import { FILES_LIMITS } from "../roles/files/limits.ts";
import type { FilesRoot } from "../roles/files/roots.ts";
import type { ProviderChoice } from "./init_choice.ts";

/** In front of its tools' names; the provider that is called `files` has none. */
export function filesPrefix(role: string): string {
  return role === "files" ? "" : `${role}.`;
}

export function filesTools({ role, roots }: ProviderChoice): string {
  const served = filesToolDefinitions(roots, FILES_LIMITS).filter(({ name }) => isServed(name, roots));
  return [
    ...(roots.every(({ untrusted }) => untrusted) ? [] : [AS_LABELLED]),
    ...served.map((definition) => tool(role, roots, definition)),
    ...(roots.some(({ writable }) => writable) ? [] : [NOT_WRITABLE]),
  ].join("\n");
}

function isServed(name: FilesToolName, roots: readonly FilesRoot[]): boolean {
  return name !== "write_file" || roots.some(({ writable }) => writable);
}

const AS_LABELLED = `# untrusted = false: a result is as trusted as the provider says, which is only what comes out of a
# directory that its command line calls trusted.
`;

const NOT_WRITABLE = `# There is no write_file: no directory is writable (rw). See examples/callgate.toml for one.
`;

function tool(role: string, roots: readonly FilesRoot[], definition: FilesToolDefinition): string {
  const { name } = definition;
  const writes = name === "write_file";
  const full = `${filesPrefix(role)}${name}`;
  return `[tools.${full.includes(".") ? `"${full}"` : full}]
role = "${role}"
effect = "${writes ? "write" : "read"}"
${floor(roots, writes)}${writes ? 'destinations = ["path"]\n' : ""}${KEYED.has(name) ? 'store_key = "path"\n' : ""}${schema(definition)}`;
}

/** These act on one file; the others tell of many, and carry what any of them was written with. */
const KEYED: ReadonlySet<FilesToolName> = new Set(["read_file", "write_file"]);

/** The least that a result is. Where the directories differ, the provider's own label says the rest. */
function floor(roots: readonly FilesRoot[], writes: boolean): string {
  const lowest = DATA_CLASSES.find((name) => roots.some((root) => root.class === name)) ?? "internal";
  const classLine = `class = "${lowest}"\n`;
  if (writes)
    return `${classLine}# "Written" is the provider's own word, not a text from outside.\nuntrusted = false\n`;
  if (roots.every(({ untrusted }) => untrusted)) return `${classLine}untrusted = true\n`;
  return `${classLine}untrusted = false\n`;
}

function schema({ schema: of }: FilesToolDefinition): string {
  const { properties, required } = of as {
    readonly properties: Readonly<Record<string, unknown>>;
    readonly required: readonly string[];
  };
  const members = Object.entries(properties).map(
    ([name, value]) => `schema.properties.${name} = ${toml(value)}`,
  );
  return [
    'schema.type = "object"',
    ...members,
    `schema.required = ${toml(required)}`,
    "schema.additionalProperties = false",
    "",
  ].join("\n");
}

/** A value of JSON on one line of TOML. Strings here are the program's own. */
function toml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${name} = ${toml(member)}`);
  return `{ ${members.join(", ")} }`;
}

export function filesGrants(caller: string, { role, roots }: ProviderChoice): string {
  const reads = FILES_TOOLS.filter((name) => name !== "write_file");
  const writable = roots.filter((root) => root.writable);
  return [
    `# Reading takes nothing out of the house, so it is allowed whatever was read before; what is read is
# from then on the session's taint.
[[grants]]
id = "${caller}-reads-${role}"
role = "${caller}"
tools = ${toml(reads.map((name) => `${filesPrefix(role)}${name}`))}
effect = "allow"
when = '${roots.map(under).join(" || ")}'
taint_max = "restricted"
taint_untrusted = true
`,
    ...writable.map((root, i) =>
      writes(`${caller}-writes-${role}${i === 0 ? "" : `-${i + 1}`}`, caller, role, root),
    ),
  ].join("\n");
}

function writes(id: string, caller: string, role: string, root: FilesRoot): string {
  const tools = `tools = ["${filesPrefix(role)}write_file"]`;
  return `# Writing is free while the session has read nothing untrusted, and nothing above the directory's
# class; after that a person is asked about each call.
[[grants]]
id = "${id}"
role = "${caller}"
${tools}
effect = "allow"
when = '${under(root)}'
taint_max = "${root.class}"
taint_untrusted = false
above_taint = "ask"
approval_ttl = "15m"
reason = "What was read meanwhile may have asked for this."

# A person is always asked before a file is replaced: an ask goes before an allow.
[[grants]]
id = "${id}-over"
role = "${caller}"
${tools}
effect = "ask"
when = '${under(root)} && has(args.mode) && args.mode == "overwrite"'
taint_max = "restricted"
taint_untrusted = true
approval_ttl = "15m"
reason = "It replaces what is there."
`;
}

function under({ path }: FilesRoot): string {
  return `under(args.path, "${path}")`;
}
