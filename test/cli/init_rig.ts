// `callgate init` for tests: on a machine whose users the test writes down, and its config compiled as the daemon
// compiles it, with users as `callgate install` has them made.

import { readFileSync } from "node:fs";
import type { Result } from "../../src/base/faults.ts";
import type { Flags } from "../../src/cli/command_row.ts";
import { type InitHost, initialise } from "../../src/cli/init.ts";
import { identitiesOf } from "../../src/cli/install_plan.ts";
import { OWN_USERS, roleUsers } from "../../src/cli/systemd_identity.ts";
import { type ConfigRead, compileConfig } from "../../src/host/config.ts";
import type { ConfigFault } from "../../src/host/config_faults.ts";
import { identitiesOf as listedIdentities } from "../../src/host/config_identities.ts";
import { readInstalledConfig } from "../../src/host/install_config.ts";
import { loadConditionCompiler } from "../../src/policy/conditions.ts";
import { compileArgumentsSchema } from "../../src/policy/schema.ts";
import { Desk, NOW_MS } from "./desk.ts";

export const PASSWD = "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/bash\n";

export const HOST: InitHost = {
  uid: 1000,
  node: "/usr/bin/node",
  script: "/usr/lib/node_modules/callgate/dist/bin/callgate.js",
  nodeOptions: [],
  env: { PATH: process.env["PATH"] },
  home: "/home/alice",
  guard: () => import("../../src/host/libc.ts"),
  workingDirectory: "/",
  install: async () => {
    throw new Error("nothing is installed here");
  },
};

export interface InitRan {
  readonly status: number;
  readonly desk: Desk;
}

/** `repeated`: `caller`, `provider`, `operator`. @throws UsageFault as the command does */
export async function init(
  directory: string | undefined,
  flags: Readonly<Record<string, string | number | boolean | readonly string[]>> = {},
  host: InitHost = HOST,
): Promise<InitRan> {
  const desk = new Desk();
  const status = await initialise(desk, [directory], flags as unknown as Flags, host);
  return { status, desk };
}

export function compiled(
  path: string,
  passwd: string,
  group = "",
): Promise<Result<ConfigRead, readonly ConfigFault[]>> {
  return compileConfig(readFileSync(path, "utf8"), path, {
    identities: listedIdentities(passwd, group),
    loadConditions: loadConditionCompiler,
    compileSchema: compileArgumentsSchema,
    readRelative: async () => ({ ok: false, fault: "there are no other files" }),
    nowMs: NOW_MS,
  });
}

/** The users that `callgate install` makes for a config. */
export async function usersFor(path: string): Promise<{ readonly passwd: string; readonly group: string }> {
  const read = await readInstalledConfig(path, "/");
  if (!read.ok) throw new Error(JSON.stringify(read.fault));
  const isUser = (name: string) => PASSWD.includes(`\n${name}:`);
  return usersOf(OWN_USERS + roleUsers(identitiesOf({ roles: read.value.roles, isUser })));
}

/** What systemd-sysusers makes of such a file: its lines of users, and its groups. */
function usersOf(sysusers: string): { readonly passwd: string; readonly group: string } {
  const lines = sysusers.split("\n").filter((line) => !line.startsWith("#"));
  const named = (kind: string) =>
    lines.filter((line) => line.startsWith(`${kind} `)).map((line) => line.split(" ")[1] ?? "");
  const users = named("u");
  const line = (name: string, i: number) => `${name}:x:${500 + i}:${500 + i}::/:/bin/false`;
  return {
    passwd: `${PASSWD}${users.map(line).join("\n")}\n`,
    group: `${[...users, ...named("g")].map((name, i) => `${name}:x:${500 + i}:`).join("\n")}\n`,
  };
}
