// What clients fill in when they read their config files, filled in as they do it where that is known here: variables of
// the environment, the user's home, the folder that the file belongs to, and a file of variables beside it. What is not
// known (`${input:token}`, which the client asks its user for) is left as it stands, to be told of.

import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { fault, ok, type Result } from "../base/faults.ts";
import { type Members, membersOf } from "./mcp_server_entry.ts";

export interface FillIn {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder that the client has open when it reads this file, where the file's place says it. */
  readonly folder: string | undefined;
  readonly home: string;
  /** undefined: it can't be read. */
  readonly readText: (path: string) => string | undefined;
}

export interface Filled {
  readonly entry: Members;
  /** Half sentences. */
  readonly remarks: readonly string[];
}

/** Directories in a project, or in a home, that clients keep their file in. */
const CLIENTS_OWN: ReadonlySet<string> = new Set([
  ".vscode",
  ".cursor",
  ".zed",
  ".gemini",
  ".roo",
  ".kilocode",
]);

/** `path`: of the client's file, absolute. */
export function folderOf(path: string): string | undefined {
  const directory = dirname(path);
  if (basename(path) === ".mcp.json") return directory;
  return CLIENTS_OWN.has(basename(directory)) ? dirname(directory) : undefined;
}

/** The fault is half a sentence about the server. */
export function fillIn(entry: Members, known: FillIn): Result<Filled> {
  const filled = filledEntry(entry, known);
  const { envFile, cwd, command } = filled;
  const place = placeOf(cwd, command, known);
  if (!place.ok) return place;
  if (envFile === undefined) return ok({ entry: { ...filled, ...place.value }, remarks: [] });
  const variables = typeof envFile === "string" ? variablesIn(envFile, known) : undefined;
  if (variables === undefined)
    return fault("has its variables in a file (envFile) that can't be read: put them into env");
  const env = { ...variables, ...membersOf(filled["env"]) };
  const remarks = ["the variables of its envFile are taken over as they are now"];
  return ok({ entry: { ...filled, ...place.value, env }, remarks });
}

/** Editors start a server in their folder. */
function placeOf(cwd: unknown, command: unknown, { folder }: FillIn): Result<Members> {
  if (cwd === undefined || cwd === null)
    return ok(folder === undefined || command === undefined ? {} : { cwd: folder });
  if (typeof cwd !== "string" || isAbsolute(cwd) || cwd.includes("${")) return ok({ cwd });
  if (folder === undefined) return fault("has a cwd that is not absolute, and nobody knows to what");
  return ok({ cwd: resolve(folder, cwd) });
}

function variablesIn(path: string, { folder, readText }: FillIn): Members | undefined {
  if (path.includes("${") || (!isAbsolute(path) && folder === undefined)) return undefined;
  const text = readText(isAbsolute(path) ? path : join(folder ?? "", path));
  return text === undefined ? undefined : parseEnv(text);
}

/** A shell fills in its own: in what it is given only what no shell knows is a placeholder. */
const SHELLS: ReadonlySet<string> = new Set(["sh", "bash", "dash", "zsh", "ksh", "fish"]);
const NO_SHELLS = /^(?:env:|workspaceFolder|userHome$|pathSeparator$)/;

function filledEntry(entry: Members, known: FillIn): Members {
  const { command, args } = entry;
  const isShell = typeof command === "string" && SHELLS.has(basename(command));
  const filled = membersOf(mapTexts(entry, (text) => filledText(text, known))) ?? {};
  if (!isShell) return filled;
  return { ...filled, args: mapTexts(args, (text) => filledHoles(text, known, NO_SHELLS)) };
}

/** `disabled` and the like stay what they are: only texts are looked into. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((one) => mapTexts(one, change));
  const members = membersOf(value);
  if (members === undefined) return value;
  return Object.fromEntries(Object.entries(members).map(([name, one]) => [name, mapTexts(one, change)]));
}

/** A whole value `$NAME` is how some clients write a variable; within a text a `$` is mostly just that. */
function filledText(text: string, known: FillIn): string {
  const whole = /^\$([A-Z_][A-Z0-9_]*)$/.exec(text)?.[1];
  if (whole !== undefined) return variable(whole, known) ?? text;
  return filledHoles(text, known, /^/);
}

const PLACEHOLDER = /\$\{((?:env:)?[A-Za-z_/]\w*)(?::-([^}]*))?\}/g;

function filledHoles(text: string, known: FillIn, which: RegExp): string {
  return text.replace(PLACEHOLDER, (hole, name: string, otherwise: string | undefined) =>
    which.test(name) ? (knownText(name, known) ?? otherwise ?? hole) : hole,
  );
}

function knownText(name: string, known: FillIn): string | undefined {
  const { folder, home } = known;
  switch (name) {
    case "workspaceFolder":
      return folder;
    case "workspaceFolderBasename":
      return folder === undefined ? undefined : basename(folder);
    case "userHome":
      return home;
    case "pathSeparator":
    case "/":
      return "/";
    default:
      return variable(name.replace(/^env:/, ""), known);
  }
}

function variable(name: string, { env }: FillIn): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined;
}
