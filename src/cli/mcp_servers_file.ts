// The MCP servers that a client's config file names, as `callgate init --from-mcp` reads them: `mcpServers` of desktop
// clients and most editors, `servers` of VS Code, `context_servers` of Zed, `mcp` of opencode. Each server of the file is
// either taken over or left out with a reason; nothing is guessed. Invariant: the file holds secrets, so no message
// quotes a value; names of servers and members are escaped.

import { visibleLine } from "../base/display.ts";
import { fault, ok, type Result } from "../base/faults.ts";
import { isRoleName } from "../base/ids.ts";
import { parseJsonc } from "./jsonc.ts";
import { type Filled, type FillIn, fillIn } from "./mcp_placeholders.ts";
import {
  holesIn,
  type McpServerReach,
  type Members,
  membersOf,
  readEntry,
  unreadMembers,
} from "./mcp_server_entry.ts";

export interface McpServerEntry {
  /** As the file has it, escaped. */
  readonly name: string;
  /** The role that stands for it: of the name, in the grammar of roles, and no other server's. */
  readonly role: string;
  readonly reach: McpServerReach;
  /** Placeholders that the client fills in and that are not known here: `${input:token}`. */
  readonly holes: readonly string[];
  /** Half sentences about what could not be taken over of it. */
  readonly remarks: readonly string[];
}

/** Where in the file the servers stand, and so the one entry for callgate. */
export type McpFileForm = "mcpServers" | "servers" | "context_servers" | "mcp.servers" | "mcp";

export interface McpServersRead {
  readonly form: McpFileForm;
  readonly servers: readonly McpServerEntry[];
  /** A line each, for people. */
  readonly leftOut: readonly string[];
}

export interface McpReading {
  readonly roleCharsMax: number;
  /** Names of roles that are given away. */
  readonly taken: readonly string[];
  readonly fillIn: FillIn;
}

const FORMS: readonly McpFileForm[] = ["mcpServers", "servers", "context_servers", "mcp.servers", "mcp"];
const SERVERS_MAX = 64;

/** The fault is half a sentence about the file. */
export function readMcpServers(text: string, reading: McpReading): Result<McpServersRead> {
  const parsed = parseJsonc(text);
  if (!parsed.ok) return parsed;
  const { value, repeated } = parsed.value;
  const form = FORMS.find((one) => membersOf(below(value, one)) !== undefined);
  if (form === undefined) return fault(`names no servers: ${formsMissing(value)}`);
  const [twice] = repeated.filter((path) => path.join("\0").startsWith(form.split(".").join("\0")));
  if (twice !== undefined) return fault(`has ${visibleLine(twice.join(" / "), 200)} twice: take one away`);
  const given = Object.entries(membersOf(below(value, form)) ?? {});
  if (given.length > SERVERS_MAX) return fault(`names more than ${SERVERS_MAX} servers`);
  return ok({ form, ...sorted(given, reading) });
}

/** Some programs keep a list of servers instead. */
function formsMissing(value: unknown): string {
  const odd = FORMS.find((one) => below(value, one) !== undefined);
  if (odd === undefined) return `it has none of ${FORMS.join(", ")}`;
  return `its ${odd} is not what clients have there, an object with the servers by their names`;
}

function below(value: unknown, form: McpFileForm): unknown {
  return form.split(".").reduce((at: unknown, name) => membersOf(at)?.[name], value);
}

function sorted(
  given: readonly (readonly [string, unknown])[],
  { roleCharsMax, taken, fillIn: known }: McpReading,
): Omit<McpServersRead, "form"> {
  const roles = new Set(taken);
  const servers: McpServerEntry[] = [];
  const leftOut: string[] = [];
  for (const [full, entry] of given) {
    const name = visibleLine(full, 60);
    const read = readServer(membersOf(entry), known);
    if (!read.ok) leftOut.push(`${name} ${read.fault}`);
    else {
      const role = roleOf(full, roleCharsMax, roles);
      roles.add(role);
      servers.push({ name, role, ...read.value });
    }
  }
  return { servers, leftOut };
}

function readServer(
  entry: Members | undefined,
  known: FillIn,
): Result<Pick<McpServerEntry, "reach" | "holes" | "remarks">> {
  if (entry === undefined) return fault("is no object");
  if (entry["disabled"] === true || entry["enabled"] === false) return fault("is switched off in the file");
  if (entry["source"] === "extension" || (entry["settings"] !== undefined && entry["command"] === undefined))
    return fault("comes with an extension of the client's, so its command is not in the file");
  const filled = fillIn(entry, known);
  if (!filled.ok) return filled;
  const read = readEntry(filled.value.entry);
  if (!read.ok) return read;
  if (isCallgate(read.value)) return fault("is callgate itself");
  return ok({ reach: read.value, holes: holesIn(read.value), remarks: remarksOf(entry, filled.value) });
}

/** Of an earlier init: a gate behind itself answers to nobody. */
function isCallgate(reach: McpServerReach): boolean {
  if (reach.kind === "url") return false;
  const words = [reach.command, ...reach.args];
  return words.some((word, i) => word === "mcp" && words[i + 1] === "serve");
}

function remarksOf(entry: Members, { remarks }: Filled): readonly string[] {
  const unread = unreadMembers(entry).map((name) => visibleLine(name, 40));
  return [
    ...remarks,
    ...(unread.length === 0 ? [] : [`not taken over, being the client's own: ${unread.join(", ")}`]),
  ];
}

/** The same for the same file, whatever stands beside it: the first has the name, later ones a number. */
function roleOf(name: string, charsMax: number, taken: ReadonlySet<string>): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/[_-]{2,}/g, "-")
    .replace(/^[^a-z]+|[_-]+$/g, "");
  const base = plain === "" ? "server" : plain;
  for (let number = 1; ; number++) {
    const tail = number === 1 ? "" : `-${number}`;
    const role = `${base.slice(0, charsMax - tail.length).replace(/[_-]+$/, "")}${tail}`;
    if (isRoleName(role) && !taken.has(role)) return role;
  }
}
