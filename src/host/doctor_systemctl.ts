// `callgate doctor`: what the system's service manager says of callgate's units, as data. Nothing is asked of it where it
// does not run, and it is asked for nothing but to tell.

import { execFile } from "node:child_process";
import { statSync } from "node:fs";

/** As systemctl(1) shows them. */
export interface UnitState {
  readonly name: string;
  /** `loaded`, `masked`, `error`, `bad-setting`. */
  readonly load: string;
  /** `active`, `failed`, `inactive`, `activating`. */
  readonly active: string;
  /** `enabled`, `disabled`, `static`, `indirect`, or empty. */
  readonly enabled: string;
  readonly file: string;
  readonly needsReload: boolean;
  /** `success`, `exit-code`, `start-limit-hit`, … */
  readonly result: string;
  readonly exitStatus: string;
  readonly restarts: number;
  readonly user: string;
  /** Paths that it listens on, of a socket. */
  readonly listens: readonly string[];
}

/** A file, or a directory of them, that a unit hands over by LoadCredential=. */
export interface Credential {
  readonly path: string;
  /** By a unit that runs, has failed, or starts with the machine; another may be there for later. */
  readonly needed: boolean;
}

export interface Units {
  /** Why there is nothing to tell: systemd does not run here, or did not answer. */
  readonly absent: string | undefined;
  readonly units: readonly UnitState[];
  readonly credentials: readonly Credential[];
  /** User= of callgate.service. */
  readonly daemonUser: string | undefined;
}

const ANSWER_MS_MAX = 10_000;
const PROPERTIES =
  "Id,LoadState,ActiveState,UnitFileState,FragmentPath,NeedDaemonReload,Result,ExecMainStatus,NRestarts,User,Listen";

export async function askUnits(): Promise<Units> {
  const none = (absent: string): Units => ({ absent, units: [], credentials: [], daemonUser: undefined });
  if (statSync("/run/systemd/system", { throwIfNoEntry: false }) === undefined)
    return none("systemd does not run here");
  const names = await unitNames();
  if (names === undefined) return none("systemd runs, and systemctl did not answer");
  const units = names.length === 0 ? [] : await showUnits(names);
  if (units === undefined) return none("systemd runs, and systemctl did not answer");
  const user = units.find(({ name }) => name === "callgate.service")?.user ?? "";
  const credentials = await credentialsOf(units);
  return { absent: undefined, units, credentials, daemonUser: user === "" ? undefined : user };
}

/** Of files and of what is loaded; templates have no state of their own. */
async function unitNames(): Promise<readonly string[] | undefined> {
  const listings = await Promise.all(
    ["list-unit-files", "list-units"].map((what) =>
      systemctl(what, ...(what === "list-units" ? ["--all"] : []), "--plain", "--no-legend", "callgate*"),
    ),
  );
  if (listings.includes(undefined)) return undefined;
  const names = listings.flatMap((text) =>
    (text ?? "").split("\n").map((line) => line.trim().split(/\s+/)[0] ?? ""),
  );
  return [...new Set(names)]
    .filter((name) => /^callgate[A-Za-z0-9_.:\\-]*(?:@[^.]+)?\.\w+$/.test(name))
    .sort();
}

async function showUnits(names: readonly string[]): Promise<readonly UnitState[] | undefined> {
  const text = await systemctl("show", `--property=${PROPERTIES}`, "--", ...names);
  if (text === undefined) return undefined;
  return text.split("\n\n").flatMap((block) => (block.trim() === "" ? [] : [stateOf(block)]));
}

/** Lines of `Name=value`; a name may come again. */
export function stateOf(block: string): UnitState {
  const pairs = block.split("\n").map((line) => {
    const at = line.indexOf("=");
    return [line.slice(0, at), line.slice(at + 1)] as const;
  });
  const value = (name: string) => pairs.find(([found]) => found === name)?.[1] ?? "";
  return {
    name: value("Id"),
    load: value("LoadState"),
    active: value("ActiveState"),
    enabled: value("UnitFileState"),
    file: value("FragmentPath"),
    needsReload: value("NeedDaemonReload") === "yes",
    result: value("Result"),
    exitStatus: value("ExecMainStatus"),
    restarts: Number(value("NRestarts")) || 0,
    user: value("User"),
    listens: pairs.flatMap(([name, text]) =>
      name === "Listen" ? [text.replace(/ \([A-Z][a-z]+\)$/, "")] : [],
    ),
  };
}

/** Out of their files, drop-ins among them: `show` does not tell these. */
async function credentialsOf(units: readonly UnitState[]): Promise<readonly Credential[]> {
  const services = units.filter(({ name, load }) => name.endsWith(".service") && load === "loaded");
  const pathsOf = async (some: readonly UnitState[]): Promise<readonly string[]> => {
    const text = some.length === 0 ? "" : await systemctl("cat", "--", ...some.map(({ name }) => name));
    return [...new Set((text ?? "").split("\n").flatMap(credentialPath))];
  };
  const needed = await pathsOf(services.filter(isNeeded));
  const others = await pathsOf(services.filter((unit) => !isNeeded(unit)));
  return [
    ...needed.map((path) => ({ path, needed: true })),
    ...others.filter((path) => !needed.includes(path)).map((path) => ({ path, needed: false })),
  ];
}

function isNeeded({ active, enabled }: UnitState): boolean {
  return active !== "inactive" || enabled === "enabled";
}

/** `LoadCredential=key:/etc/callgate/key`. One without a path, or with a specifier in it, is systemd's to find. */
export function credentialPath(line: string): readonly string[] {
  const path = /^LoadCredential(?:Encrypted)?=[^:]*:(\/[^%]*)$/.exec(line.trim())?.[1];
  return path === undefined ? [] : [path];
}

/** Its standard output; undefined where it failed or was too slow. */
function systemctl(...words: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const settings = {
      timeout: ANSWER_MS_MAX,
      env: { PATH: "/usr/bin:/bin", LC_ALL: "C", SYSTEMD_PAGER: "" },
    };
    execFile("systemctl", words, settings, (error, out) => resolve(error === null ? out : undefined));
  });
}
