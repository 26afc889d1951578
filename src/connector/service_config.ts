// The configuration of a service, checked whole before anything is opened (spec: connector, 6.1). Names are those of
// the contract. Invariant: what was checked can't be a configuration that the contract refuses, and holds keys in
// place of secrets.

import { fault, ok, type Result } from "../base/faults.ts";
import { sha256 } from "./digest.ts";
import { frameBytesForPayload } from "./frame_arithmetic.ts";
import { INTEGER_MAX, OUTPUT_TOKENS_MAX, PAYLOAD_BYTES_MIN } from "./limits.ts";
import { isLoopbackLiteral } from "./loopback.ts";
import { connectionKey } from "./secret.ts";
import type { StartError } from "./start_error.ts";
import { isId } from "./text_rules.ts";

/**
 * The largest `max_frame_bytes`, below the contract's own: a frame is held in memory several times over, as itself, as
 * text, unsealed and decoded.
 */
export const FRAME_BYTES_CEILING = 67_108_864;

export interface CallerConfig {
  readonly caller_runtime_id: string;
  readonly connection_secret: string;
  /** Compared byte for byte. */
  readonly allowed_models: readonly string[];
  readonly max_concurrent_requests: number;
  /** Of the ciphertext of either direction, its tag included. */
  readonly max_payload_bytes: number;
  readonly max_output_tokens: number;
}

export interface ServiceConfig {
  /** An IP literal in 127.0.0.0/8, or `::1`. */
  readonly bind: string;
  /** 0, or none: one that is free. */
  readonly port?: number | undefined;
  readonly max_frame_bytes: number;
  readonly max_connections: number;
  readonly socket_timeout_ms: number;
  readonly expiry_horizon_ms: number;
  readonly retention_ms: number;
  /** None: a turn may take as long as its backend does. */
  readonly execution_limit_ms?: number | undefined;
  readonly callers: readonly CallerConfig[];
}

/** A caller that is let in, and its bounds. */
export interface Admitted {
  readonly id: string;
  readonly key: Buffer;
  readonly keySha256: Buffer;
  readonly allowedModels: ReadonlySet<string>;
  readonly concurrentRequestsMax: number;
  readonly payloadBytesMax: number;
  readonly outputTokensMax: number;
}

export interface CheckedConfig {
  readonly bind: string;
  readonly port: number;
  readonly frameBytesMax: number;
  readonly connectionsMax: number;
  readonly socketTimeoutMs: number;
  readonly expiryHorizonMs: number;
  readonly retentionMs: number;
  readonly executionLimitMs: number | undefined;
  readonly transport: string;
  /** By id. */
  readonly callers: ReadonlyMap<string, Admitted>;
}

type Invalid = Extract<StartError, { readonly kind: "InvalidConfig" }>;

/** `transport`: the backend's. */
export function checkService(config: ServiceConfig, transport: string): Result<CheckedConfig, StartError> {
  const invalid = faultOfService(config, transport) ?? faultOfCallers(config.callers);
  if (invalid !== undefined) return fault(invalid);
  const callers = admit(config.callers);
  if (!callers.ok) return callers;
  const needed = frameBytesForPayload(
    Math.max(...config.callers.map(({ max_payload_bytes }) => max_payload_bytes)),
  );
  if (config.max_frame_bytes < needed) return fault({ kind: "FrameBound", needed });
  return ok({
    bind: config.bind,
    port: config.port ?? 0,
    frameBytesMax: config.max_frame_bytes,
    connectionsMax: config.max_connections,
    socketTimeoutMs: config.socket_timeout_ms,
    expiryHorizonMs: config.expiry_horizon_ms,
    retentionMs: config.retention_ms,
    executionLimitMs: config.execution_limit_ms,
    transport,
    callers: callers.value,
  });
}

const WHOLE = "a whole number from 1 up";
const AN_ID = "1 to 256 bytes without control characters and without a space at an edge";
const PORT_MAX = 65_535;

function faultOfService(config: ServiceConfig, transport: string): Invalid | undefined {
  const { bind, port = 0, max_frame_bytes, retention_ms, expiry_horizon_ms, execution_limit_ms } = config;
  if (!isLoopbackLiteral(bind)) return invalid("bind", "an IP address in 127.0.0.0/8, or ::1");
  if (!Number.isInteger(port) || port < 0 || port > PORT_MAX)
    return invalid("port", `a whole number from 0 to ${PORT_MAX}`);
  if (!isWithin(max_frame_bytes, 1, FRAME_BYTES_CEILING))
    return invalid("max_frame_bytes", `a whole number from 1 to ${FRAME_BYTES_CEILING}`);
  for (const name of ["max_connections", "socket_timeout_ms", "expiry_horizon_ms", "retention_ms"] as const) {
    if (!isWithin(config[name], 1)) return invalid(name, WHOLE);
  }
  if (execution_limit_ms !== undefined && !isWithin(execution_limit_ms, 1))
    return invalid("execution_limit_ms", WHOLE);
  if (retention_ms < expiry_horizon_ms)
    return invalid("retention_ms", `at least expiry_horizon_ms, ${expiry_horizon_ms}`);
  return isId(transport) ? undefined : invalid("transport", AN_ID);
}

function faultOfCallers(callers: readonly CallerConfig[]): Invalid | undefined {
  if (!Array.isArray(callers) || callers.length === 0) return invalid("callers", "at least one caller");
  for (const caller of callers) {
    const found = faultOfCaller(caller);
    if (found !== undefined) return found;
  }
  return undefined;
}

function faultOfCaller(caller: CallerConfig): Invalid | undefined {
  if (!isId(caller.caller_runtime_id)) return invalid("caller_runtime_id", AN_ID);
  const models: unknown = caller.allowed_models;
  if (!Array.isArray(models) || models.length === 0 || !models.every(isId))
    return invalid("allowed_models", `one model or more, each ${AN_ID}`);
  if (!isWithin(caller.max_concurrent_requests, 1)) return invalid("max_concurrent_requests", WHOLE);
  if (!isWithin(caller.max_payload_bytes, PAYLOAD_BYTES_MIN))
    return invalid("max_payload_bytes", `a whole number from ${PAYLOAD_BYTES_MIN} up`);
  if (!isWithin(caller.max_output_tokens, 1, OUTPUT_TOKENS_MAX))
    return invalid("max_output_tokens", `a whole number from 1 to ${OUTPUT_TOKENS_MAX}`);
  const key = connectionKey(caller.connection_secret);
  return key.ok
    ? undefined
    : invalid("connection_secret", "32 to 1024 bytes of text without control characters and edge spaces");
}

/** All ids first, then all keys: a caller that is there twice has one key twice, too. */
function admit(configs: readonly CallerConfig[]): Result<ReadonlyMap<string, Admitted>, StartError> {
  const callers = new Map<string, Admitted>();
  for (const config of configs) {
    const id = config.caller_runtime_id;
    if (callers.has(id)) return fault({ kind: "DuplicateCaller", caller: id });
    callers.set(id, admitted(config));
  }
  const owners = new Map<string, string>();
  for (const { id, keySha256 } of callers.values()) {
    const other = owners.get(keySha256.toString("hex"));
    if (other !== undefined) return fault({ kind: "SharedCallerKey", callers: [other, id] });
    owners.set(keySha256.toString("hex"), id);
  }
  return ok(callers);
}

function admitted(config: CallerConfig): Admitted {
  const key = connectionKey(config.connection_secret);
  if (!key.ok) throw new Error("a caller is admitted once its secret was checked");
  return {
    id: config.caller_runtime_id,
    key: key.value,
    keySha256: sha256(key.value),
    allowedModels: new Set(config.allowed_models),
    concurrentRequestsMax: config.max_concurrent_requests,
    payloadBytesMax: config.max_payload_bytes,
    outputTokensMax: config.max_output_tokens,
  };
}

function isWithin(value: unknown, min: number, max = INTEGER_MAX): boolean {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}

function invalid(field: string, must: string): Invalid {
  return { kind: "InvalidConfig", field, must };
}
