// What `callgate install` is asked for: its options, checked against the config, as a request. Everything that goes into
// a unit comes from here, and is a path, a role's name or a word.

import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { visible, visibleLine } from "../base/display.ts";
import type { InstalledConfig } from "../base/installed_config.ts";
import { parseRootOption, ROOT_OPTION_SYNTAX } from "../roles/files/root_option.ts";
import type { FilesRoot } from "../roles/files/roots.ts";
import { UsageFault } from "./call.ts";
import { type Flags, textOf, type Words } from "./command_row.ts";
import type { InstallRequest } from "./install_plan.ts";
import { parseServerFile } from "./mcp_server_entry.ts";
import { isInHomes, type Program, USUAL_PROGRAM } from "./systemd_sandbox.ts";
import { directoryOf, type Places } from "./systemd_units.ts";

/** What the installer looks at on the machine. */
export interface InstallHost {
  readonly uid: number;
  readonly node: string;
  readonly script: string;
  readonly systemd: number | undefined;
  readonly isUser: (name: string) => boolean;
}

const STOP_SECONDS_MIN = 60;
/** For what comes after the drain: the last answers, the store. */
const AFTER_DRAIN_SECONDS = 20;

/** @throws UsageFault */
export function requestOf(
  words: Words,
  flags: Flags,
  config: InstalledConfig,
  host: InstallHost,
): InstallRequest {
  const places = placesOf(config, host);
  const request: InstallRequest = {
    places,
    roles: config.roles,
    files: filesOf(list(flags, "files")),
    mcp: new Map([...mcpOf(words, flags), ...serversOf(list(flags, "server"))]),
    systemd: host.systemd,
    isUser: host.isUser,
  };
  const names = new Set(config.roles.map(({ name }) => name));
  const missing = [...request.files.keys(), ...request.mcp.keys()].find((role) => !names.has(role));
  if (missing !== undefined) throw new UsageFault(`the config has no role ${shown(missing)}`);
  const twice = [...request.files.keys()].find((role) => request.mcp.has(role));
  if (twice !== undefined) throw new UsageFault(`${shown(twice)} is one program: --files or --mcp`);
  return request;
}

function placesOf(config: InstalledConfig, host: InstallHost): Places {
  const { path, socketsDir, stateDir, schemaDirs, drainTimeoutMs } = config;
  const program = programOf(host);
  const all = [path, socketsDir, stateDir, ...schemaDirs, program.node, program.script];
  for (const one of all) plainPath(one);
  for (const one of [path, stateDir, program.node, program.script]) {
    if (isInHomes(one))
      throw new UsageFault(
        `${shown(one)} is in a home directory, where the services' users don't get: move it`,
      );
  }
  const directory = directoryOf(path);
  if (["/", "/etc", "/usr", "/var", "/srv", "/opt", "/tmp"].includes(directory))
    throw new UsageFault(
      `the config is to be in a directory of its own, which the daemon sees: not in ${directory}`,
    );
  const drain = Math.ceil(drainTimeoutMs / 1000) + AFTER_DRAIN_SECONDS;
  return {
    program,
    config: path,
    sockets: socketsDir,
    state: stateDir,
    schemas: schemaDirs.filter((one) => one !== directory),
    stopSeconds: Math.max(STOP_SECONDS_MIN, drain),
  };
}

/** As it is installed here; from its source, where it usually is. */
export function programOf({ node, script }: Pick<InstallHost, "node" | "script">): Program {
  if (!isInstalled(script)) return USUAL_PROGRAM;
  const real = realpathSync(script);
  return { node: realpathSync(node), script: real, directories: [packageOf(real)] };
}

export function isInstalled(script: string): boolean {
  return script !== "" && !script.endsWith(".ts");
}

/** Up from `dist/bin/callgate.js`; where its dependencies lie beside it and not in it, all that lies there. */
function packageOf(script: string): string {
  const own = dirname(dirname(dirname(script)));
  if (existsSync(join(own, "node_modules"))) return own;
  const outermost = script.indexOf("/node_modules/");
  return outermost < 0 ? own : script.slice(0, outermost + "/node_modules".length);
}

/** The roots of one role may be given one by one. */
function filesOf(given: readonly string[]): ReadonlyMap<string, readonly FilesRoot[]> {
  const roots = new Map<string, readonly FilesRoot[]>();
  for (const text of given) {
    const cut = text.indexOf("=");
    if (cut < 0) throw new UsageFault(`--files is ROLE=ROOT, a root being ${ROOT_OPTION_SYNTAX}`);
    const root = parseRootOption(text.slice(cut + 1));
    if (!root.ok) throw new UsageFault(`--files ROLE=ROOT: ${root.fault}; not ${shown(text)}`);
    plainPath(root.value.path);
    const role = text.slice(0, cut);
    roots.set(role, [...(roots.get(role) ?? []), root.value]);
  }
  return roots;
}

function mcpOf(words: Words, flags: Flags): InstallRequest["mcp"] {
  const role = textOf(flags, "mcp");
  const command = words.filter((word) => word !== undefined);
  const url = textOf(flags, "url");
  const [read, write, env] = [list(flags, "read"), list(flags, "write"), list(flags, "env")];
  const isMore = url !== undefined || read.length + write.length + env.length > 0 || command.length > 0;
  if (role === undefined) {
    if (isMore || flags["network"] === true)
      throw new UsageFault(
        "a command, --url, --network, --env, --read and --write are an MCP server's: --mcp ROLE",
      );
    return new Map();
  }
  if ((url === undefined) === (command.length === 0))
    throw new UsageFault("--mcp ROLE wants the server's command, after --, or its --url");
  for (const path of [...read, ...write]) plainPath(path);
  for (const word of [...command, ...env]) plainWord(word);
  const network = flags["network"] === true || url !== undefined;
  return new Map([[role, { ...NO_SERVER, command, url, network, env, read, write }]]);
}

const NO_SERVER = {
  command: [],
  url: undefined,
  serverFile: undefined,
  named: [],
  env: [],
  read: [],
  write: [],
};

/** What is in such a file can be a program that asks the network: the client that it is from let it. */
function serversOf(given: readonly string[]): InstallRequest["mcp"] {
  return new Map(
    given.map((text) => {
      const cut = text.indexOf("=");
      const serverFile = text.slice(cut + 1);
      if (cut < 1) throw new UsageFault(`--server is ROLE=FILE, not ${shown(text)}`);
      plainPath(serverFile);
      return [text.slice(0, cut), { ...NO_SERVER, serverFile, named: namedIn(serverFile), network: true }];
    }),
  );
}

/** Paths among its arguments are most often what it serves. A file that can't be read is told of when it is used. */
function namedIn(serverFile: string): readonly string[] {
  try {
    const read = parseServerFile(readFileSync(serverFile, "utf8"));
    if (!read.ok || read.value.kind === "url") return [];
    return read.value.args.filter((one) => one.length <= PATH_CHARS_MAX && PLAIN_PATH.test(one));
  } catch {
    return [];
  }
}

const PATH_CHARS_MAX = 255;
const PLAIN_PATH = /^(?:\/[A-Za-z0-9][A-Za-z0-9_.@-]*)+\/?$/;

function list(flags: Flags, name: string): readonly string[] {
  const value = flags[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

function plainPath(path: string): void {
  if (!path.startsWith("/")) throw new UsageFault(`${shown(path)} is no absolute path`);
  if (/[:"'\\]/.test(path))
    throw new UsageFault(
      `${shown(path)} has a colon, a quote or a backslash, which units take for something else`,
    );
  plainWord(path);
}

/** What would break a line of a unit, or show as something else there. */
function plainWord(text: string): void {
  if (visible(text) === text && !/[\n\r\t]/.test(text)) return;
  throw new UsageFault(`${shown(text)} has a character that does not show, and units are for people to read`);
}

function shown(text: string): string {
  return visibleLine(JSON.stringify(text), 300);
}
