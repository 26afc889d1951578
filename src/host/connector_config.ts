// One TOML file to the connector's config: strict like the broker's, all faults at once with their lines. It holds no
// secret and reads none: only where each is. A ConnectorConfig exists only where there was no fault.

import { resolve } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import { type ConfigFault, FILE_START, inFileOrder, type Report } from "./config_faults.ts";
import { CONFIG_BYTES_MAX, readText } from "./config_files.ts";
import { readTable, table, tables } from "./config_shape.ts";
import { parseToml } from "./config_toml.ts";
import { type BackendConfig, readBackend } from "./connector_backend.ts";
import { type CallerConfig, readCallers } from "./connector_callers.ts";
import { type ConnectorPlaces, type ConnectorSettings, readConnectorSettings } from "./connector_settings.ts";
import { checkFile } from "./trusted_paths.ts";

export interface ConnectorConfig {
  /** Absolute. */
  readonly path: string;
  readonly settings: ConnectorSettings;
  readonly at: ConnectorPlaces;
  readonly backend: BackendConfig;
  readonly callers: readonly CallerConfig[];
}

const FILE_SHAPE = { connector: table, log: table, backend: table, callers: tables } as const;

const FILE_RULES = {
  name: "the file",
  shape: FILE_SHAPE,
  elsewhere: new Map(
    ["daemon", "roles", "grants", "tools", "audit"].map((key) => [
      key,
      "that is the broker's (callgate serve); this is the connector's config",
    ]),
  ),
} as const;

/** Reads a config file, which nobody but root and `uid` may be able to write. */
export async function loadConnectorConfig(
  path: string,
  uid: number,
): Promise<Result<ConnectorConfig, readonly ConfigFault[]>> {
  const content = await readText(path, CONFIG_BYTES_MAX);
  if (!content.ok) return fault([content.fault]);
  const compiled = compileConnectorConfig(content.value, path);
  if (!compiled.ok) return compiled;
  const trusted = checkFile(resolve(path), uid);
  return trusted.ok ? compiled : fault([{ ...FILE_START, message: trusted.fault.sentence }]);
}

/** Pure. All faults of the text, in its order. */
export function compileConnectorConfig(
  content: string,
  path: string,
): Result<ConnectorConfig, readonly ConfigFault[]> {
  const { root, faults: broken } = parseToml(content);
  if (root === undefined) return fault(broken);
  const faults = [...broken];
  const report: Report = (at, message) => void faults.push({ ...at, message });
  const { fields, keys } = readTable(root, FILE_RULES, report);
  const { settings, at } = readConnectorSettings(fields, path, report);
  // Of a table that was refused as such, no more is said.
  const backend =
    fields.backend === undefined && keys.has("backend")
      ? undefined
      : readBackend(fields.backend, path, report);
  const callers =
    fields.callers === undefined && keys.has("callers") ? [] : readCallers(fields.callers, path, report);
  if (faults.length > 0 || backend === undefined) return fault(inFileOrder(faults));
  return ok({ path: resolve(path), settings, at, backend, callers });
}
