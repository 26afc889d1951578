// From a config to what the service is given: every caller's connection secret is read, and must hold; the provider's
// key is looked at too, but may come later. Faults stand where the config names the secret, and quote nothing of it.

import { fault, ok, type Result } from "../base/faults.ts";
import { frameBytesForPayload } from "../connector/frame_arithmetic.ts";
import { connectionKey } from "../connector/secret.ts";
import type { CallerConfig as ServiceCaller, ServiceConfig } from "../connector/service_config.ts";
import type { ConfigFault } from "./config_faults.ts";
import type { CallerConfig } from "./connector_callers.ts";
import type { ConnectorConfig } from "./connector_config.ts";
import { readSecret, type SecretPlaces } from "./connector_secret_source.ts";

/** All faults at once. */
export async function serviceConfig(
  { settings, callers }: ConnectorConfig,
  places: SecretPlaces,
): Promise<Result<ServiceConfig, readonly ConfigFault[]>> {
  const faults: ConfigFault[] = [];
  const admitted: ServiceCaller[] = [];
  for (const caller of callers) {
    const secret = await connectionSecret(caller, places);
    if (secret.ok) admitted.push(serviceCaller(caller, secret.value));
    else faults.push({ ...caller.secret.at, message: secret.fault });
  }
  if (faults.length > 0) return fault(faults);
  return ok({
    bind: settings.bind,
    port: settings.port,
    max_frame_bytes: settings.maxFrameBytes ?? neededFrameBytes(callers),
    max_connections: settings.maxConnections,
    socket_timeout_ms: settings.socketTimeoutMs,
    expiry_horizon_ms: settings.expiryHorizonMs,
    retention_ms: settings.retentionMs,
    execution_limit_ms: settings.executionLimitMs,
    callers: admitted,
  });
}

async function connectionSecret(caller: CallerConfig, places: SecretPlaces): Promise<Result<string>> {
  const secret = await readSecret(caller.secret, places);
  if (!secret.ok) return secret;
  const key = connectionKey(secret.value);
  return key.ok ? secret : fault(key.fault);
}

function serviceCaller(caller: CallerConfig, secret: string): ServiceCaller {
  return {
    caller_runtime_id: caller.id,
    connection_secret: secret,
    allowed_models: caller.allowedModels,
    max_concurrent_requests: caller.maxConcurrentRequests,
    max_payload_bytes: caller.maxPayloadBytes,
    max_output_tokens: caller.maxOutputTokens,
  };
}

function neededFrameBytes(callers: readonly CallerConfig[]): number {
  return frameBytesForPayload(Math.max(...callers.map(({ maxPayloadBytes }) => maxPayloadBytes)));
}
