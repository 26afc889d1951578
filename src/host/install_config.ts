// What an installer has to know of a config: its directories, and for each role who gets through its socket, by name. The
// users may not be there yet, since making them is what is being prepared: so names stand for themselves.

import { dirname, join, resolve } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import type { InstalledConfig, InstalledRole } from "../base/installed_config.ts";
import { loadConditionCompiler } from "../policy/conditions.ts";
import { compileArgumentsSchema } from "../policy/schema.ts";
import { compileConfig } from "./config.ts";
import type { ConfigFault } from "./config_faults.ts";
import { CONFIG_BYTES_MAX, readText } from "./config_files.ts";
import type { Identities } from "./config_identities.ts";

/** Numbers that no config writes down: names that are not looked up get them, in the order in which they come. */
const FIRST_STAND_IN = 3_000_000_000;

class StandIns implements Identities {
  readonly #numbers = new Map<string, number>();
  readonly #names = new Map<number, string>();

  uid(name: string): number {
    return this.#numberOf(name);
  }

  gid(name: string): number {
    return this.#numberOf(name);
  }

  nameOf(number: number): string | undefined {
    return this.#names.get(number);
  }

  #numberOf(name: string): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const number = FIRST_STAND_IN + this.#numbers.size;
    this.#numbers.set(name, number);
    this.#names.set(number, name);
    return number;
  }
}

/** `path` is where it is on the machine whose files are below `root`. */
export async function readInstalledConfig(
  path: string,
  root: string,
): Promise<Result<InstalledConfig, readonly ConfigFault[]>> {
  const content = await readText(join(root, path), CONFIG_BYTES_MAX);
  if (!content.ok) return fault([content.fault]);
  const identities = new StandIns();
  const read = await compileConfig(content.value, path, {
    identities,
    loadConditions: loadConditionCompiler,
    compileSchema: compileArgumentsSchema,
    readRelative: async (relative) => {
      const file = await readText(join(root, resolve(dirname(path), relative)), CONFIG_BYTES_MAX);
      return file.ok ? file : fault(file.fault.message);
    },
    nowMs: Date.now(),
  });
  if (!read.ok) return read;
  const { config, schemaFiles } = read.value;
  const named = (ids: Iterable<number>) => [...ids].flatMap((id) => identities.nameOf(id) ?? []);
  const roles = [...config.policy.roles.values()].map((role): InstalledRole => {
    const { admits, socket, name, provides } = role;
    const group =
      socket.gid === undefined ? undefined : (identities.nameOf(socket.gid) ?? String(socket.gid));
    const users = admits === "anyone" ? [] : named(admits.uids);
    const groups = admits === "anyone" ? [] : named(admits.gids);
    return { name, users, groups, group, mode: socket.mode, provides };
  });
  const { socketsDir, stateDir, drainTimeoutMs } = config;
  const schemaDirs = [...new Set(schemaFiles.map(({ value }) => dirname(value)))];
  return ok({ path: config.path, socketsDir, stateDir, drainTimeoutMs, schemaDirs, roles });
}
