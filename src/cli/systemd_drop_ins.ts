// What one role is given beside its template, as drop-ins: its socket's group and mode, what its program serves and may
// reach. Texts only.

import type { FilesRoot } from "../roles/files/roots.ts";
import { NETWORK } from "./systemd_sandbox.ts";
import { type Places, startLine, USER_PREFIX } from "./systemd_units.ts";
import { type Assignment, CREDENTIALS, pathWord, section, unitText } from "./systemd_words.ts";

/** Group and mode of one role's socket; its owner is the daemon. */
export interface SocketAccess {
  readonly group: string;
  readonly mode: number;
}

/** What differs from the template, for a role whose config says so; undefined: nothing does. */
export function socketDropIn(role: string, { group, mode }: SocketAccess): string | undefined {
  const lines: Assignment[] = [];
  if (group !== `${USER_PREFIX}${role}`) lines.push(["SocketGroup", group]);
  if (mode !== 0o660) lines.push(["SocketMode", mode.toString(8).padStart(4, "0")]);
  if (lines.length === 0) return undefined;
  return unitText(`As the config has role ${role}.`, section("Socket", lines));
}

/** A drop-in beside the template: what this role's files provider serves, and sees. */
export function filesDropIn({ program, sockets }: Places, role: string, given: FilesGiven): string {
  const { prefix, roots, user } = given;
  const words = [
    ...["role", "files", "--socket", `${sockets}/${role}.sock`],
    ...(prefix === "" ? [] : ["--prefix", prefix]),
    ...roots.flatMap((root) => ["--root", rootOption(root)]),
  ];
  const bound = (writable: boolean) => roots.filter((root) => root.writable === writable);
  const lines = (name: string, of: readonly FilesRoot[]): readonly Assignment[] =>
    of.map(({ path }) => [name, pathWord(path)]);
  return unitText(
    `What role ${role} serves.`,
    section("Service", [
      ...asUser(user),
      ["ExecStart", ""],
      startLine(program, ...words),
      ...lines("BindReadOnlyPaths", bound(false)),
      ...lines("BindPaths", bound(true)),
    ]),
  );
}

export interface FilesGiven {
  readonly prefix: string;
  readonly roots: readonly FilesRoot[];
  /** Where it is not the one that the template has. */
  readonly user: string | undefined;
}

/** As `callgate role files --root` takes it, with everything said. */
export function rootOption({ class: name, untrusted, writable, path }: FilesRoot): string {
  return `${name},${untrusted ? "untrusted" : "trusted"},${writable ? "rw" : "ro"}:${path}`;
}

export interface McpGiven {
  readonly prefix: string;
  readonly command: readonly string[];
  readonly url: string | undefined;
  /** With how it is reached, secrets included; root's. Instead of a command or an address. */
  readonly serverFile: string | undefined;
  /** What its arguments name of the disk: shown, and not opened. */
  readonly named: readonly string[];
  readonly network: boolean;
  readonly env: readonly string[];
  /** Of the disk, beside the machine's programs. */
  readonly read: readonly string[];
  readonly write: readonly string[];
  readonly user: string | undefined;
}

/** A drop-in beside the template: the server that this role runs, and what it may reach. */
export function mcpDropIn({ program, sockets }: Places, role: string, given: McpGiven): string {
  const words = [
    ...["mcp", "provide", "--socket", `${sockets}/${role}.sock`, "--prefix", given.prefix],
    ...(given.url === undefined ? [] : ["--url", given.url]),
    ...(given.serverFile === undefined ? [] : ["--server-file", `${CREDENTIALS}/server`]),
    ...given.env.flatMap((variable) => ["--env", variable]),
    ...(given.command.length === 0 ? [] : ["--", ...given.command]),
  ];
  const open: readonly Assignment[] = [["PrivateNetwork", "no"], ["IPAddressDeny", ""], ...NETWORK];
  return unitText(
    `The MCP server of role ${role}.`,
    section("Service", [
      ...asUser(given.user),
      ["ExecStart", ""],
      startLine(program, ...words),
      ...handedOver(given),
      ...given.read.map((path): Assignment => ["BindReadOnlyPaths", pathWord(path)]),
      ...given.write.map((path): Assignment => ["BindPaths", pathWord(path)]),
      ...given.read.map((path): Assignment => ["ExecPaths", pathWord(path)]),
      ...(given.network ? open : []),
    ]),
  );
}

/** The unit gets a copy of the file; what the server serves of the disk is its owner's to open. */
function handedOver({ serverFile, named }: McpGiven): readonly Assignment[] {
  if (serverFile === undefined) return [];
  const comment = (text: string): Assignment => ["#", text];
  return [
    comment(
      "How the server is reached, secrets included: root alone reads the file, and this unit gets a copy.",
    ),
    ["LoadCredential", `server:${serverFile.replaceAll("%", "%%")}`],
    ...(named.length === 0
      ? []
      : [comment("Its arguments name these. To open one to it: systemctl edit, with")]),
    ...named.flatMap((path) => [comment(`BindReadOnlyPaths=${path}`), comment(`BindPaths=${path}`)]),
  ];
}

function asUser(user: string | undefined): readonly Assignment[] {
  return user === undefined
    ? []
    : [
        ["User", user],
        ["Group", user],
      ];
}

/** Which sockets the daemon has: whatever starts it starts them first, so that it never runs without one of them. */
export function daemonDropIn(sockets: readonly string[]): string {
  return unitText("The sockets of the config's roles.", section("Service", [["Sockets", sockets.join(" ")]]));
}
