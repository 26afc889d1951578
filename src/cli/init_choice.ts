// What `callgate init` is to write: its words and options, checked. Everything that goes into a file comes
// from here, so every name and path in a Choice fits TOML, a condition, a unit and a shell as it stands.

import { resolve } from "node:path";
import { visible, visibleLine } from "../base/display.ts";
import { isRoleName } from "../base/ids.ts";
import { parseRootOption, ROOT_OPTION_SYNTAX } from "../roles/files/root_option.ts";
import type { FilesRoot } from "../roles/files/roots.ts";
import { UsageFault } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import type { McpServerEntry, McpServersRead } from "./mcp_servers_file.ts";

/**
 * A role that provides tools: directories by `callgate role files`, an MCP server by `callgate mcp provide`, or, without roots
 * and server, anything that announces them.
 */
export interface ProviderChoice {
  readonly role: string;
  readonly roots: readonly FilesRoot[];
  readonly server?: McpServerEntry;
}

export interface Choice {
  /** `here`: a tryout, all of it in the directory and by one user. `service`: for systemd, each role a user of its own. */
  readonly kind: "here" | "service";
  /** Absolute. */
  readonly directory: string;
  readonly callers: readonly string[];
  /** Users of this machine who run a caller's program themselves, by the caller; any other caller gets a user of its own. */
  readonly clients: ReadonlyMap<string, string>;
  readonly providers: readonly ProviderChoice[];
  /** What was read of a client's config file. */
  readonly taken?: McpServersRead;
  /** Names of the users who operate it; none in a tryout, where that is whoever runs it. */
  readonly operators: readonly string[];
  /** Who made the choice. */
  readonly uid: number;
}

/** How the command is started: words in front of `serve`. */
export type Program = readonly string[];

export const OPERATOR_ROLE = "operator";
/** In front of a role's name it is the name of the role's user, which has 31 characters at most. */
export const USER_PREFIX = "callgate-";
export const ROLE_CHARS_MAX = 31 - USER_PREFIX.length;
/** Names that a path, a unit or a rule of the daemon has taken. */
const TAKEN = ["callgate", OPERATOR_ROLE, "operators"];
const USER_NAME = /^[a-z_][a-z0-9_-]{0,30}$/;
/** Where a service serves files from while nobody has said where. */
const SERVICE_ROOT = "/srv/callgate";
/** `sun_path` without its NUL. */
const SOCKET_PATH_BYTES_MAX = 107;

/** Reads a client's config file, given the names of roles that its servers can't have. @throws UsageFault */
export type TakeOver = (taken: readonly string[]) => McpServersRead;

/** @throws UsageFault */
export function readChoice([given]: Words, flags: Flags, uid: number, takeOver?: TakeOver): Choice {
  const directory = plainPath(resolve(given ?? "callgate"), "the directory");
  const kind = kindOf(directory, flags);
  const operators = list(flags, "operator");
  if (kind === "here" && operators.length > 0)
    throw new UsageFault(
      "--operator names users of a service (--systemd); in a tryout you operate it yourself",
    );
  const { callers, clients } = callersOf(orElse(list(flags, "caller"), ["agent"]), kind);
  const otherwise = takeOver === undefined ? ["files"] : [];
  const named = providersOf(orElse(list(flags, "provider"), otherwise), kind, directory);
  const taken = takeOver?.([...TAKEN, ...callers, ...named.map(({ role }) => role)]);
  const servers = (taken?.servers ?? []).map((server) => ({ role: server.role, roots: [], server }));
  const choice: Choice = {
    ...{ kind, directory, callers, clients, operators, uid },
    providers: [...named, ...servers],
    ...(taken === undefined ? {} : { taken }),
  };
  checkNames(choice);
  checkSockets(choice);
  return choice;
}

function kindOf(directory: string, flags: Flags): Choice["kind"] {
  if (flags["here"] === true) return "here";
  return flags["systemd"] === true || directory.startsWith("/etc/") ? "service" : "here";
}

function list(flags: Flags, name: string): readonly string[] {
  const value = flags[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

function orElse(given: readonly string[], otherwise: readonly string[]): readonly string[] {
  return given.length > 0 ? given : otherwise;
}

/** `agent`, or `agent=alice`: that user of this machine runs the program. */
function callersOf(given: readonly string[], kind: Choice["kind"]): Pick<Choice, "callers" | "clients"> {
  const parts = given.map((text) => text.split(/=(.*)/s));
  const clients = new Map<string, string>();
  for (const [role = "", user] of parts) {
    if (user === undefined) continue;
    if (kind === "here")
      throw new UsageFault(
        "--caller NAME=USER is for a service (--systemd); in a tryout you are all of them",
      );
    if (!USER_NAME.test(user)) throw new UsageFault(`--caller: ${shown(user)} is no user's name`);
    clients.set(role, user);
  }
  return { callers: parts.map(([role = ""]) => role), clients };
}

/** The roots of one role may be given one by one: `--provider files=/a --provider files=rw:/b`. */
function providersOf(given: readonly string[], kind: Choice["kind"], directory: string): ProviderChoice[] {
  const roots = new Map<string, FilesRoot[]>();
  for (const text of given) {
    const cut = text.indexOf("=");
    const role = cut < 0 ? text : text.slice(0, cut);
    const known = roots.get(role) ?? [];
    roots.set(role, cut < 0 ? known : [...known, rootOf(text.slice(cut + 1))]);
  }
  return [...roots].map(([role, own]) => {
    const isBare = role === "files" && own.length === 0;
    return { role, roots: isBare ? defaultRoots(kind, directory) : own };
  });
}

function rootOf(option: string): FilesRoot {
  const root = parseRootOption(option);
  if (!root.ok) throw new UsageFault(`--provider NAME=ROOT: ${root.fault}; not ${shown(option)}`);
  const { path } = root.value;
  if (path === "/") throw new UsageFault("--provider NAME=ROOT: / is the whole machine; name a directory");
  if (path !== resolve(path))
    throw new UsageFault(`--provider NAME=ROOT: write ${shown(path)} as ${shown(resolve(path))}`);
  if (path.includes(":"))
    throw new UsageFault(`--provider NAME=ROOT: init takes no path with a colon: ${shown(path)}`);
  plainPath(path, "--provider NAME=ROOT: the path");
  return root.value;
}

/** A tryout has something to read that is trusted and something that is not: that is what the gate is about. */
function defaultRoots(kind: Choice["kind"], directory: string): readonly FilesRoot[] {
  if (kind === "service")
    return [{ path: SERVICE_ROOT, class: "internal", untrusted: true, writable: false }];
  return [
    { path: `${directory}/notes`, class: "internal", untrusted: false, writable: true },
    { path: `${directory}/inbox`, class: "internal", untrusted: true, writable: false },
  ];
}

/** What would need other quoting in each of the files is refused instead. */
function plainPath(path: string, what: string): string {
  if (visible(path) === path && !/["'\\`\n\t]/.test(path)) return path;
  throw new UsageFault(
    `${what} has a character that init does not write into files (a quote, a backslash, one that does not show): ${shown(path)}`,
  );
}

function checkNames({ callers, clients, providers, operators }: Choice): void {
  const roles = [...callers, ...providers.map(({ role }) => role)];
  for (const role of roles) checkRole(role);
  const twice = roles.find((role, i) => roles.indexOf(role) !== i);
  if (twice !== undefined)
    throw new UsageFault(
      `${shown(twice)} is named twice; each caller and provider is a process of its own, with a name of its own`,
    );
  for (const user of operators)
    if (!USER_NAME.test(user)) throw new UsageFault(`--operator: ${shown(user)} is no user's name`);
  const both = operators.find((user) => [...clients.values()].includes(user));
  if (both !== undefined)
    throw new UsageFault(
      `${shown(both)} can't both run a caller and answer its questions: nobody approves for their own user`,
    );
}

function checkRole(role: string): void {
  if (!isRoleName(role) || role.length > ROLE_CHARS_MAX)
    throw new UsageFault(
      `${shown(role)} is no role's name here: a lower-case letter, then lower-case letters, digits, _ or -, at most ${ROLE_CHARS_MAX} together${role.includes("/") ? ` (a provider of files is NAME=ROOT, a root being ${ROOT_OPTION_SYNTAX})` : ""}`,
    );
  if (TAKEN.includes(role)) throw new UsageFault(`${shown(role)} is taken; choose another name`);
}

function checkSockets({ kind, directory, callers, providers }: Choice): void {
  if (kind === "service") return;
  const roles = [OPERATOR_ROLE, ...callers, ...providers.map(({ role }) => role)];
  const longest = Math.max(...roles.map((role) => Buffer.byteLength(`${directory}/run/${role}.sock`)));
  if (longest > SOCKET_PATH_BYTES_MAX)
    throw new UsageFault(
      `the sockets' paths would have ${longest} bytes where the kernel takes ${SOCKET_PATH_BYTES_MAX}: choose a shorter directory`,
    );
}

function shown(text: string): string {
  return visibleLine(JSON.stringify(text), 300);
}
