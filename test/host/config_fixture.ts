// Fakes of what compiling a config needs from outside, and a config of one line per need that tests
// vary. The fakes accept everything but texts that say otherwise, so that a fault is the config's.

import { expect } from "vitest";
import { fault, ok, type Result } from "../../src/base/faults.ts";
import type { Json } from "../../src/base/json.ts";
import { type ConfigPorts, type ConfigRead, compileConfig } from "../../src/host/config.ts";
import type { ConfigFault } from "../../src/host/config_faults.ts";
import { identitiesOf } from "../../src/host/config_identities.ts";
import type { Verdict } from "../../src/policy/conditions.ts";
import type { ArgumentsSchema } from "../../src/policy/schema.ts";

export const NOW_MS = Date.UTC(2026, 0, 1);

const PASSWD = [
  "root:x:0:0::/root:/bin/sh",
  "nobody:x:65534:65534::/:/bin/false",
  "agent:x:1001:1001::/:/bin/false",
  "agent:x:6666:6666:a second line of the same name::",
  "operator:x:1002:1002::/:/bin/false",
  "callgate-files:x:1003:1003::/:/bin/false",
  "callgate-mail:x:1004:1004::/:/bin/false",
  "callgate-frontend:x:1005:1005::/:/bin/false",
  "broken line",
  "minus:x:-1:-1::",
].join("\n");

const GROUP = [
  "root:x:0:",
  "callgate-agent:x:2001:agent",
  "callgate-files:x:2003:",
  "callgate-mail:x:2004:",
  "callgate-frontend:x:2005:",
  "callgate-operators:x:2006:",
].join("\n");

// Shared, so that two compiled configs are equal where their texts mean the same.
const accepts = (): undefined => undefined;
const NO_NAMES: ReadonlySet<string> = new Set();
const matchesNever = (): Verdict => ({ kind: "no_match" });

function compileSchema(
  schema: Json,
): Result<ArgumentsSchema, readonly { pointer: string; message: string }[]> {
  const members: ReadonlyMap<string, Json> = schema instanceof Map ? schema : new Map();
  if (members.get("type") !== "object") return fault([{ pointer: "/type", message: "must be object" }]);
  const closed = members.get("additionalProperties") === false;
  return ok({ source: schema, closed, check: accepts });
}

export function fakePorts(changes: Partial<ConfigPorts> = {}): ConfigPorts {
  return {
    identities: identitiesOf(PASSWD, GROUP),
    loadConditions: async () => ({
      compile: (source) =>
        source.includes("((")
          ? fault("unbalanced parenthesis")
          : ok({ source, argumentNames: NO_NAMES, evaluate: matchesNever }),
    }),
    compileSchema: async (schema) => compileSchema(schema),
    readRelative: async (path) =>
      path === "send_mail.schema.json" ? ok(MAIL_SCHEMA) : fault("there is no such file"),
    nowMs: NOW_MS,
    ...changes,
  };
}

const MAIL_SCHEMA = '{"type":"object","properties":{"to":{"type":"string"}},"additionalProperties":false}';

export function compile(text: string, changes: Partial<ConfigPorts> = {}) {
  return compileConfig(text, "/etc/callgate/callgate.toml", fakePorts(changes));
}

export async function compiled(text: string, changes: Partial<ConfigPorts> = {}): Promise<ConfigRead> {
  const read = await compile(text, changes);
  if (!read.ok) throw new Error(`faults: ${JSON.stringify(read.fault)}`);
  return read.value;
}

export async function faultsOf(
  text: string,
  changes: Partial<ConfigPorts> = {},
): Promise<readonly ConfigFault[]> {
  const read = await compile(text, changes);
  return read.ok ? [] : read.fault;
}

/** The faults as `LINE:COLUMN message`, for comparing all of them at once. */
export async function faultLines(
  text: string,
  changes: Partial<ConfigPorts> = {},
): Promise<readonly string[]> {
  return (await faultsOf(text, changes)).map(({ line, column, message }) => `${line}:${column} ${message}`);
}

/** A whole, faultless config of few lines; `extra` goes to its end. */
export function minimal(extra = ""): string {
  return `[roles.agent]
users = ["agent"]
[roles.files]
users = ["callgate-files"]
[tools.read_file]
role = "files"
effect = "read"
schema = { type = "object", properties = { path = { type = "string" } }, additionalProperties = false }
[[grants]]
id = "reads"
role = "agent"
tools = ["read_file"]
effect = "allow"
taint_max = "internal"
taint_untrusted = true
${extra}`;
}
/** The line on which `extra` begins. */
export const EXTRA_LINE = 16;

/** The one fault of a config; in `at`, `@` is the number of the line that is marked `#!`. */
export async function expectFault(text: string, at: string, message: string | RegExp): Promise<void> {
  const line = text.split("\n").findIndex((one) => one.includes("#!")) + 1;
  const lines = await faultLines(text);
  expect(lines, lines.join("\n")).toHaveLength(1);
  expect(lines[0]!.startsWith(`${at.replace("@", String(line))} `), lines[0]).toBe(true);
  if (typeof message === "string") expect(lines[0]).toContain(message);
  else expect(lines[0]).toMatch(message);
}

/** `LINE:COLUMN code` of every warning of a faultless config. */
export async function warningsOf(text: string): Promise<readonly string[]> {
  const { warnings } = await compiled(text);
  return warnings.map(({ line, column, code }) => `${line}:${column} ${code}`);
}

const free = (id: string, role: string, tools: string) =>
  `[[grants]]\nid = "${id}"\nrole = "${role}"\ntools = ["${tools}"]\neffect = "allow"\ntaint_max = "restricted"\ntaint_untrusted = true\n`;

/** For the end of a config: somebody who answers what is asked. */
export const APPROVER = `[roles.approver]
users = ["operator"]
operator = true
${free("approves", "approver", "callgate.*")}`;

/** For the end of a config: `files` may announce what it provides. */
export const ANNOUNCES = free("announces", "files", "callgate.tools.announce");
