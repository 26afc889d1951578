// `[daemon]`, `[audit]` and `[log]`: what the daemon needs beside its policy, with every default, and
// where its two directories stand to each other. Whether those directories can be trusted is looked
// at on the machine itself (config_places.ts).

import { dirname, resolve } from "node:path";
import { FILE_START, type Located, type Position, quote, type Report } from "./config_faults.ts";
import type { RoleDraft } from "./config_roles.ts";
import { duration, integer, oneOf, readTable, text } from "./config_shape.ts";
import type { TomlTable } from "./config_toml.ts";

const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface AuditSettings {
  /** Records older than this may go, a sealed segment at a time. */
  readonly keepForMs: number;
  /** How often the head of the chain goes to the log. */
  readonly checkpointEveryMs: number;
  /** Beyond it the oldest sealed segments go before their time. */
  readonly bytesMax: number;
}

export interface Settings {
  /** Absolute. */
  readonly socketsDir: string;
  /** Absolute; neither in the sockets' directory nor around it. */
  readonly stateDir: string;
  readonly drainTimeoutMs: number;
  readonly frameTimeoutMs: number;
  readonly replayForMs: number;
  readonly audit: AuditSettings;
  readonly logLevel: LogLevel;
}

const DEFAULTS = {
  sockets: "/run/callgate",
  state: "/var/lib/callgate",
  drainTimeoutMs: 10_000,
  frameTimeoutMs: 30_000,
  replayForMs: 86_400_000,
  keepForMs: 31_536_000_000,
  checkpointEveryMs: 3_600_000,
  auditBytesMax: 1_073_741_824,
  logLevel: "info",
} as const;

const AUDIT_BYTES_MIN = 1_048_576;
/** Half of what the store's file can hold at all (store/lmdb_environment.ts). */
const AUDIT_BYTES_MAX = 34_359_738_368;

const directory = text("the path of a directory", (path) => !path.includes("\0"));

const DAEMON_SHAPE = {
  sockets: directory,
  state: directory,
  drain_timeout: duration("0s", "1h"),
  frame_timeout: duration("100ms", "1h"),
  replay_for: duration("1s", "366d"),
} as const;

const AUDIT_SHAPE = {
  keep_for: duration("1h", "3660d"),
  checkpoint_every: duration("1s", "1d"),
  bytes_max: integer(AUDIT_BYTES_MIN, AUDIT_BYTES_MAX),
} as const;

const LOG_SHAPE = { level: oneOf(LOG_LEVELS) } as const;

/** The three tables; each undefined where the file does not have it. */
export interface SettingsTables {
  readonly daemon: Located<TomlTable> | undefined;
  readonly audit: Located<TomlTable> | undefined;
  readonly log: Located<TomlTable> | undefined;
}

const EMPTY_TABLE: TomlTable = { kind: "table", at: FILE_START, entries: new Map() };

/** What was read, and where it stands in the file. */
export interface SettingsRead {
  readonly settings: Settings;
  readonly at: SettingsPlaces;
}

/** Where each is set; the start of the file where it is at its default. */
export interface SettingsPlaces {
  readonly sockets: Position;
  readonly state: Position;
  readonly replayFor: Position;
  /** undefined: at its default. */
  readonly auditKeepFor: Position | undefined;
}

export function readSettings(tables: SettingsTables, path: string, report: Report): SettingsRead {
  const daemon = read(tables.daemon, { name: "[daemon]", shape: DAEMON_SHAPE }).fields;
  const audit = read(tables.audit, { name: "[audit]", shape: AUDIT_SHAPE }).fields;
  const log = read(tables.log, { name: "[log]", shape: LOG_SHAPE }).fields;
  const settings: Settings = {
    socketsDir: resolve(dirname(path), daemon.sockets?.value ?? DEFAULTS.sockets),
    stateDir: resolve(dirname(path), daemon.state?.value ?? DEFAULTS.state),
    drainTimeoutMs: daemon.drain_timeout?.value ?? DEFAULTS.drainTimeoutMs,
    frameTimeoutMs: daemon.frame_timeout?.value ?? DEFAULTS.frameTimeoutMs,
    replayForMs: daemon.replay_for?.value ?? DEFAULTS.replayForMs,
    audit: {
      keepForMs: audit.keep_for?.value ?? DEFAULTS.keepForMs,
      checkpointEveryMs: audit.checkpoint_every?.value ?? DEFAULTS.checkpointEveryMs,
      bytesMax: audit.bytes_max?.value ?? DEFAULTS.auditBytesMax,
    },
    logLevel: log.level?.value ?? DEFAULTS.logLevel,
  };
  const at: SettingsPlaces = {
    sockets: daemon.sockets?.at ?? FILE_START,
    state: daemon.state?.at ?? FILE_START,
    replayFor: daemon.replay_for?.at ?? FILE_START,
    auditKeepFor: audit.keep_for?.at,
  };
  checkApart(settings, daemon.state?.at ?? at.sockets, report);
  return { settings, at };

  function read<S extends Parameters<typeof readTable>[1]["shape"]>(
    found: Located<TomlTable> | undefined,
    rules: { readonly name: string; readonly shape: S },
  ) {
    return readTable(found?.value ?? EMPTY_TABLE, rules, report);
  }
}

/** Callers enter the one to reach their sockets, and nobody but the daemon enters the other. */
function checkApart({ socketsDir, stateDir }: Settings, at: Position, report: Report): void {
  if (isWithin(stateDir, socketsDir)) {
    report(
      at,
      `the state directory ${quote(stateDir)} is, or is inside, the directory of the sockets ${quote(socketsDir)}, ` +
        "which others enter and a reboot may empty; give state a directory of its own",
    );
  } else if (isWithin(socketsDir, stateDir)) {
    report(
      at,
      `the directory of the sockets ${quote(socketsDir)} is inside the state directory ${quote(stateDir)}, ` +
        "which nobody but the daemon may enter; give the sockets a directory of their own",
    );
  }
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

/** What fits into the kernel's sockaddr_un; a longer path would be cut without a word. */
const SOCKET_PATH_BYTES_MAX = 107;

export function checkSocketPaths(dir: string, roles: ReadonlyMap<string, RoleDraft>, report: Report): void {
  for (const [name, { at }] of roles) {
    const path = `${dir}/${name}.sock`;
    const bytes = Buffer.byteLength(path);
    if (bytes <= SOCKET_PATH_BYTES_MAX) continue;
    report(
      at,
      `the socket path ${quote(path)} has ${bytes} bytes; a socket's path has at most ${SOCKET_PATH_BYTES_MAX}: ` +
        "shorten sockets in [daemon], or the role's name",
    );
  }
}
