// `[connector]` and `[log]` of the connector's config: where it listens, what it keeps, its limits, with every
// default. What the contract asks of the numbers beside each other, the service checks at its start.

import { dirname, resolve } from "node:path";
import { CONNECTOR_HOST_DEFAULT, CONNECTOR_PORT_DEFAULT } from "../connector/address.ts";
import { frameBytesForPayload } from "../connector/frame_arithmetic.ts";
import { PAYLOAD_BYTES_MIN } from "../connector/limits.ts";
import { isLoopbackLiteral } from "../connector/loopback.ts";
import { FRAME_BYTES_CEILING } from "../connector/service_config.ts";
import { FILE_START, type Located, type Position, type Report } from "./config_faults.ts";
import type { LogLevel } from "./config_settings.ts";
import { duration, integer, oneOf, readTable, type Shape, text } from "./config_shape.ts";
import type { TomlTable } from "./config_toml.ts";

export interface ConnectorSettings {
  /** A loopback address. */
  readonly bind: string;
  /** 0: a free one. */
  readonly port: number;
  /** Absolute. */
  readonly stateDir: string;
  readonly maxConnections: number;
  readonly socketTimeoutMs: number;
  readonly expiryHorizonMs: number;
  readonly retentionMs: number;
  readonly executionLimitMs: number;
  /** undefined: what the largest payload of a caller needs. */
  readonly maxFrameBytes: number | undefined;
  readonly drainTimeoutMs: number;
  readonly logLevel: LogLevel;
}

/** Where what the service may refuse is set; the table's start, or the file's, where it is at its default. */
export interface ConnectorPlaces {
  readonly bind: Position;
  readonly port: Position;
  readonly stateDir: Position;
  readonly retention: Position;
  readonly maxFrameBytes: Position;
  readonly connector: Position;
}

const DEFAULTS = {
  bind: CONNECTOR_HOST_DEFAULT,
  port: CONNECTOR_PORT_DEFAULT,
  stateDir: "/var/lib/callgate-connector",
  maxConnections: 64,
  socketTimeoutMs: 10_000,
  expiryHorizonMs: 300_000,
  retentionMs: 86_400_000,
  executionLimitMs: 900_000,
  drainTimeoutMs: 30_000,
  logLevel: "info",
} as const;

/** So many slots can be held by a local user who says nothing; each is charged a frame at most. */
const CONNECTIONS_MAX = 4096;

const loopback = text('an address of this machine alone, such as "127.0.0.1" or "::1"', isLoopbackLiteral);

const CONNECTOR_SHAPE = {
  bind: loopback,
  port: integer(0, 65_535),
  state_dir: text("the path of a directory", (path) => !path.includes("\0")),
  max_connections: integer(1, CONNECTIONS_MAX),
  socket_timeout: duration("100ms", "10m"),
  expiry_horizon: duration("1s", "31d"),
  retention: duration("1s", "366d"),
  execution_limit: duration("1s", "1d"),
  max_frame_bytes: integer(frameBytesForPayload(PAYLOAD_BYTES_MIN), FRAME_BYTES_CEILING),
  drain_timeout: duration("0s", "1d"),
} as const;

const LOG_SHAPE = { level: oneOf(["debug", "info", "warn", "error"]) } as const;

const EMPTY_TABLE: TomlTable = { kind: "table", at: FILE_START, entries: new Map() };

export function readConnectorSettings(
  tables: {
    readonly connector: Located<TomlTable> | undefined;
    readonly log: Located<TomlTable> | undefined;
  },
  path: string,
  report: Report,
): { readonly settings: ConnectorSettings; readonly at: ConnectorPlaces } {
  const { fields, at } = read(tables.connector, "[connector]", CONNECTOR_SHAPE);
  const log = read(tables.log, "[log]", LOG_SHAPE).fields;
  const settings: ConnectorSettings = {
    bind: fields.bind?.value ?? DEFAULTS.bind,
    port: fields.port?.value ?? DEFAULTS.port,
    stateDir: resolve(dirname(path), fields.state_dir?.value ?? DEFAULTS.stateDir),
    maxConnections: fields.max_connections?.value ?? DEFAULTS.maxConnections,
    socketTimeoutMs: fields.socket_timeout?.value ?? DEFAULTS.socketTimeoutMs,
    expiryHorizonMs: fields.expiry_horizon?.value ?? DEFAULTS.expiryHorizonMs,
    retentionMs: fields.retention?.value ?? DEFAULTS.retentionMs,
    executionLimitMs: fields.execution_limit?.value ?? DEFAULTS.executionLimitMs,
    maxFrameBytes: fields.max_frame_bytes?.value,
    drainTimeoutMs: fields.drain_timeout?.value ?? DEFAULTS.drainTimeoutMs,
    logLevel: log.level?.value ?? DEFAULTS.logLevel,
  };
  const places: ConnectorPlaces = {
    bind: fields.bind?.at ?? at,
    port: fields.port?.at ?? at,
    stateDir: fields.state_dir?.at ?? at,
    retention: fields.retention?.at ?? at,
    maxFrameBytes: fields.max_frame_bytes?.at ?? at,
    connector: at,
  };
  if (settings.retentionMs < settings.expiryHorizonMs) {
    report(
      places.retention,
      "retention must not be shorter than expiry_horizon: a turn must be kept for as long as it can be asked for",
    );
  }
  return { settings, at: places };

  function read<S extends Shape>(found: Located<TomlTable> | undefined, name: string, shape: S) {
    return readTable(found?.value ?? EMPTY_TABLE, { name, shape }, report);
  }
}
