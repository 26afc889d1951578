// `callgate connector serve --check`: whether a connector would start with this config, as this user, on this machine; one
// line for each thing that stands in its way. Only looks; opens neither the store nor the port, and sends nothing.

import { checkService } from "../connector/service_config.ts";
import { startErrorSentence } from "../connector/start_error.ts";
import type { ConfigFault } from "./config_faults.ts";
import { type ConnectorConfig, loadConnectorConfig } from "./connector_config.ts";
import { isReachable, readSecret, type SecretPlaces, secretPlaces } from "./connector_secret_source.ts";
import { serviceConfig } from "./connector_secrets.ts";

export interface ConnectorReport {
  readonly ok: boolean;
  readonly lines: readonly string[];
}

export async function checkConnector(path: string): Promise<ConnectorReport> {
  const places = secretPlaces();
  const loaded = await loadConnectorConfig(path, places.uid);
  if (!loaded.ok) return refused(path, loaded.fault);
  const config = loaded.value;
  const warnings = await warningsOf(config, places);
  const faults = await faultsOf(config, places);
  if (faults.length > 0) return refused(path, faults, warnings);
  const summary = `${path}: no errors, ${counted(warnings.length, "warning")}`;
  return { ok: true, lines: [...linesOf(path, "warning", warnings), summary] };
}

async function faultsOf(config: ConnectorConfig, places: SecretPlaces): Promise<readonly ConfigFault[]> {
  const callers = config.callers.filter(({ secret }) => isReachable(secret, places));
  if (callers.length === 0) return []; // none can be looked at here, and without one there is no service
  const service = await serviceConfig({ ...config, callers }, places);
  if (!service.ok) return service.fault;
  const checked = checkService(service.value, config.backend.settings.kind);
  return checked.ok ? [] : [{ ...config.at.connector, message: startErrorSentence(checked.fault) }];
}

/** A turn holds its connection while it runs, so full ones keep others out. */
function crowding({ settings, callers, at }: ConnectorConfig): readonly ConfigFault[] {
  const turns = callers.reduce((sum, { maxConcurrentRequests }) => sum + maxConcurrentRequests, 0);
  if (turns < settings.maxConnections) return [];
  const message = `all callers together may run ${turns} turns, each on a connection, and max_connections is ${settings.maxConnections}: make it larger`;
  return [{ ...at.connector, message }];
}

/** What only shows in the service itself, or when a turn needs it. */
async function warningsOf(config: ConnectorConfig, places: SecretPlaces): Promise<readonly ConfigFault[]> {
  const { key } = config.backend;
  const sources = [...config.callers.map(({ secret }) => secret), ...(key === undefined ? [] : [key])];
  const unseen = sources.filter((source) => !isReachable(source, places));
  const warnings = [
    ...crowding(config),
    ...unseen.map(({ at }) => ({
      ...at,
      message:
        "a credential of the service: it can be looked at in the service alone, where CREDENTIALS_DIRECTORY is set",
    })),
  ];
  if (key === undefined || !isReachable(key, places)) return warnings;
  const read = await readSecret(key, places);
  if (read.ok) return warnings;
  return [...warnings, { ...key.at, message: `every turn would fail for want of the key: ${read.fault}` }];
}

function refused(
  path: string,
  faults: readonly ConfigFault[],
  warnings: readonly ConfigFault[] = [],
): ConnectorReport {
  const summary = `${path}: ${counted(faults.length, "error")}; this config would be refused`;
  return {
    ok: false,
    lines: [...linesOf(path, "error", faults), ...linesOf(path, "warning", warnings), summary],
  };
}

function linesOf(path: string, what: string, found: readonly ConfigFault[]): readonly string[] {
  return found.map(({ line, column, message }) => `${path}:${line}:${column}: ${what}: ${message}`);
}

function counted(count: number, noun: string): string {
  return count === 0 ? `no ${noun}s` : `${count} ${noun}${count === 1 ? "" : "s"}`;
}
