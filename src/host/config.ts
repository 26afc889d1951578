// One TOML file to a compiled Config: every default filled in, every name resolved, every condition
// and schema compiled, or else all that is wrong with it, each with its line. A Config exists only
// where there was no fault at all, so nobody meets half a policy.

import { createHash } from "node:crypto";
import { dirname, resolve } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import type { ConditionCompiler } from "../policy/conditions.ts";
import { loadConditionCompiler } from "../policy/conditions.ts";
import type { Policy } from "../policy/policy.ts";
import { compileArgumentsSchema } from "../policy/schema.ts";
import {
  type ConfigFault,
  type ConfigWarning,
  FILE_START,
  inFileOrder,
  type Located,
  type Report,
} from "./config_faults.ts";
import { CONFIG_BYTES_MAX, readBytes, readText } from "./config_files.ts";
import { readGives } from "./config_gives.ts";
import { readGrants } from "./config_grants.ts";
import { type Identities, identitiesOf } from "./config_identities.ts";
import { checkProvides } from "./config_provides.ts";
import { readRoles } from "./config_roles.ts";
import { checkSocketPaths, readSettings, type Settings, type SettingsPlaces } from "./config_settings.ts";
import { flag, readTable, table, tables } from "./config_shape.ts";
import { parseToml, type TomlTable } from "./config_toml.ts";
import { readTools, type SchemaPorts, type ToolDraft } from "./config_tools.ts";
import { findWarnings } from "./config_warnings.ts";

export interface Config extends Settings {
  /** Absolute. */
  readonly path: string;
  readonly policy: Policy;
}

export interface ConfigRead {
  readonly config: Config;
  /** Where its directories are set. */
  readonly at: SettingsPlaces;
  /** Files of schemas that were read with it, absolute: who can write to one can change the policy. */
  readonly schemaFiles: readonly Located<string>[];
  readonly warnings: readonly ConfigWarning[];
}

/** What compiling needs from outside. */
export interface ConfigPorts extends SchemaPorts {
  readonly identities: Identities;
  readonly loadConditions: () => Promise<ConditionCompiler>;
  readonly nowMs: number;
}

const FILE_SHAPE = {
  allow_same_user: flag,
  daemon: table,
  audit: table,
  log: table,
  roles: table,
  tools: table,
  grants: tables,
  gives: tables,
} as const;

const EMPTY_TABLE: TomlTable = { kind: "table", at: FILE_START, entries: new Map() };

/** Reads and compiles a config file with the real compilers and this machine's users and groups. */
export async function loadConfig(path: string): Promise<Result<ConfigRead, readonly ConfigFault[]>> {
  const content = await readText(path, CONFIG_BYTES_MAX);
  if (!content.ok) return fault([content.fault]);
  const [passwd, group] = await Promise.all([identityText("/etc/passwd"), identityText("/etc/group")]);
  return compileConfig(content.value, path, {
    identities: identitiesOf(passwd, group),
    loadConditions: loadConditionCompiler,
    compileSchema: compileArgumentsSchema,
    readRelative: async (relative) => {
      const read = await readText(resolve(dirname(path), relative), CONFIG_BYTES_MAX);
      return read.ok ? read : fault(read.fault.message);
    },
    nowMs: Date.now(),
  });
}

const IDENTITY_BYTES_MAX = 16_777_216;

/** Unreadable: nobody is known by name, so every name in the config is a fault. */
async function identityText(path: string): Promise<string> {
  const bytes = await readBytes(path, IDENTITY_BYTES_MAX);
  // Real names beside the user names may be in any encoding; the names that count are ASCII.
  return bytes.ok ? bytes.value.toString("latin1") : "";
}

/** Pure but for its ports. All faults of the text at once, in its order. */
export async function compileConfig(
  content: string,
  path: string,
  ports: ConfigPorts,
): Promise<Result<ConfigRead, readonly ConfigFault[]>> {
  const { root, faults: broken } = parseToml(content);
  if (root === undefined) return fault(broken);
  const faults = [...broken];
  const report: Report = (at, message) => void faults.push({ ...at, message });
  const version = createHash("sha256").update(content);
  const file = readFile(root, report);
  const { settings, at } = readSettings(file, path, report);
  const roles = readRoles(file.roles, ports.identities, report);
  checkSocketPaths(settings.socketsDir, roles, report);
  const schemaPorts = hashingReads(ports, (text) => version.update(text));
  const tools = await readTools(file.tools, roles, schemaPorts, report);
  checkProvides(roles, tools, report);
  const grants = await readGrants(file.grants, { roles, tools }, ports.loadConditions, report);
  const gives = readGives(file.gives, { roles, tools }, report);
  if (faults.length > 0) return fault(inFileOrder(faults));

  const policy: Policy = {
    roles: policiesOf(roles),
    tools: policiesOf(tools),
    grants: grants.map((draft) => draft.policy),
    gives: gives.map((draft) => draft.policy),
    allowSameUser: file.sameUser?.value ?? false,
    version: version.digest("hex"),
  };
  const sameUserAt = policy.allowSameUser ? file.sameUser?.at : undefined;
  return ok({
    config: { path: resolve(path), ...settings, policy },
    at,
    schemaFiles: schemaFilesOf(tools, path),
    warnings: findWarnings({ roles, tools, grants, gives, settings, at, sameUserAt, nowMs: ports.nowMs }),
  });
}

function readFile(root: TomlTable, report: Report) {
  const { fields, keys } = readTable(root, { name: "the file", shape: FILE_SHAPE }, report);
  const { daemon, audit, log, roles } = fields;
  if (roles === undefined ? !keys.has("roles") : roles.value.entries.size === 0) {
    report(roles?.at ?? FILE_START, "no role is configured, so nobody could connect; add [roles.NAME]");
  }
  return {
    sameUser: fields.allow_same_user,
    daemon,
    audit,
    log,
    roles: roles?.value ?? EMPTY_TABLE,
    tools: fields.tools?.value ?? EMPTY_TABLE,
    grants: fields.grants?.value ?? [],
    gives: fields.gives?.value ?? [],
  };
}

/** A schema in a file of its own is part of the policy, so its text is part of the version. */
function hashingReads(ports: SchemaPorts, hash: (text: string) => void): SchemaPorts {
  return {
    compileSchema: ports.compileSchema,
    readRelative: async (path) => {
      const read = await ports.readRelative(path);
      if (read.ok) hash(`\0${read.value.length}\0${read.value}`);
      return read;
    },
  };
}

function schemaFilesOf(tools: ReadonlyMap<string, ToolDraft>, path: string): readonly Located<string>[] {
  return [...tools.values()].flatMap(
    ({
      read: {
        fields: { schema_file: file },
      },
    }) => (file === undefined ? [] : [{ value: resolve(dirname(path), file.value), at: file.at }]),
  );
}

function policiesOf<P>(drafts: ReadonlyMap<string, { readonly policy: P }>): ReadonlyMap<string, P> {
  return new Map([...drafts].map(([name, draft]) => [name, draft.policy]));
}
