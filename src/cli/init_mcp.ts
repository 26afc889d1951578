// `callgate init --from-mcp`: reads a client's config file, which stays as it is, looks at each server once, and says what
// became of each. Nothing of the file is left out in silence.

import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { visibleLine } from "../base/display.ts";
import { counted } from "../base/json_text.ts";
import { UsageFault } from "./call.ts";
import { type Choice, ROLE_CHARS_MAX, type TakeOver } from "./init_choice.ts";
import { serverFile } from "./init_mcp_files.ts";
import type { Looks } from "./init_mcp_grants.ts";
import { lookAtServer, reachWords, type Seen } from "./mcp_look.ts";
import { folderOf } from "./mcp_placeholders.ts";
import { type McpServerEntry, readMcpServers } from "./mcp_servers_file.ts";
import { codeOf } from "./replace_file.ts";

export interface TakeOverHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly workingDirectory: string;
}

const FILE_BYTES_MAX = 1_048_576;

/** `given`: the client's file. */
export function takeOverFrom(given: string, { env, home, workingDirectory }: TakeOverHost): TakeOver {
  const path = resolve(workingDirectory, given);
  return (taken) => {
    const text = textOfFile(path);
    const fillIn = { env, home, folder: folderOf(path), readText: textOrNone };
    const read = readMcpServers(text, { roleCharsMax: ROLE_CHARS_MAX, taken, fillIn });
    if (!read.ok) throw new UsageFault(`--from-mcp: ${shown(path)} ${read.fault}`);
    return read.value;
  };
}

/** @throws UsageFault */
function textOfFile(path: string): string {
  let opened: number | undefined;
  try {
    opened = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(opened);
    if (!stats.isFile()) throw new UsageFault(`--from-mcp: ${shown(path)} is no file`);
    if (stats.size > FILE_BYTES_MAX)
      throw new UsageFault(`--from-mcp: ${shown(path)} is over a mebibyte long`);
    return readFileSync(opened, "utf8");
  } catch (error) {
    if (error instanceof UsageFault) throw error;
    throw new UsageFault(`--from-mcp: ${shown(path)} can't be read (${codeOf(error)})`);
  } finally {
    if (opened !== undefined) closeSync(opened);
  }
}

function textOrNone(path: string): string | undefined {
  try {
    return textOfFile(path);
  } catch {
    return undefined;
  }
}

/** At once: a program that is fetched before it runs takes its time. */
const LOOKS_AT_ONCE = 4;

export interface LookOptions {
  /** For each server. */
  readonly limitMs: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** The client's file, which no server has to see. */
  readonly file: string;
  readonly say: (line: string) => void;
}

/** Starts what the client starts each day; a server that does not start is one without suggestions. */
export async function lookAtServers(
  { providers }: Choice,
  { limitMs, env, home, file, say }: LookOptions,
): Promise<Looks> {
  const looks = new Map<string, Seen | string>();
  const waiting = providers.flatMap(({ server }) => (server === undefined ? [] : [server]));
  const next = async (): Promise<void> => {
    for (let server = waiting.shift(); server !== undefined; server = waiting.shift()) {
      const { role, reach, holes } = server;
      if (holes.length > 0) {
        looks.set(role, `it was not started, for want of ${holes.join(", ")}`);
        continue;
      }
      say(`${reach.kind === "url" ? "asking" : "starting"} ${role} (${reachWords(reach)}) for its tools`);
      const seen = await lookAtServer(reach, { prefix: `${role}.`, limitMs, env, home, hidden: [file] });
      if (!seen.ok) say(`${role} can't be looked at: ${seen.fault.replaceAll("\n", "\n  ")}`);
      looks.set(role, seen.ok ? seen.value : `init could not look: ${seen.fault.split("\n")[0] ?? ""}`);
    }
  };
  await Promise.all(Array.from({ length: LOOKS_AT_ONCE }, next));
  return looks;
}

/** `--no-start`. */
export function unlooked({ providers }: Choice): Looks {
  return new Map(providers.map(({ role }) => [role, "init was told not to start it (--no-start)"]));
}

/** What became of each server of the file, for a person. */
export function takenText({ providers, taken }: Choice, looks: Looks): string {
  if (taken === undefined) return "";
  const servers = providers.flatMap(({ server }) => (server === undefined ? [] : [server]));
  const width = Math.max(0, ...servers.map(({ role }) => role.length));
  const lines = servers.map(
    ({ role, name }) => `  ${role.padEnd(width)}  ${nameWords(role, name)}${lookWords(looks.get(role))}\n`,
  );
  const out = taken.leftOut.map((line) => `  ${line}\n`).join("");
  return `taken over, each server as a role:\n${lines.join("")}${out === "" ? "" : `left out:\n${out}`}\n`;
}

function nameWords(role: string, name: string): string {
  return role === name ? "" : `"${name}", `;
}

function lookWords(look: Seen | string | undefined): string {
  if (typeof look === "string") return visibleLine(look, 200);
  const { tools, leftOut } = look ?? { tools: [], leftOut: [] };
  const read = tools.filter(({ hints }) => hints.readOnly === true).length;
  const odd = leftOut.length === 0 ? "" : `, ${leftOut.length} left out (the config says why)`;
  return `${counted(tools.length, "tool")}${tools.length === 0 ? "" : `, ${read} of which it says only read`}${odd}`;
}

/** What a person has to do or to know of single servers. */
export function takenNotes({ providers, directory }: Choice): readonly string[] {
  const servers = providers.flatMap(({ server }) => (server === undefined ? [] : [server]));
  return servers.flatMap((server) => [
    ...holeNote(server, directory),
    ...server.remarks.map((remark) => `${server.role}: ${remark}`),
  ]);
}

function holeNote({ role, holes }: McpServerEntry, directory: string): readonly string[] {
  if (holes.length === 0) return [];
  const file = `${directory}/${serverFile(role)}`;
  return [`${role} needs ${holes.join(", ")}, which its client filled in: write the value into ${file}`];
}

function shown(path: string): string {
  return visibleLine(JSON.stringify(path), 300);
}
