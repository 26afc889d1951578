// `[[gives]]`: what a role may give to others at run time with `callgate.grants.add`. Nobody gives to
// itself, and nobody gives the broker's own tools. How a grant is held against it is policy/giving.ts. What is given lies in the store, not here.

import { BUILTIN_PREFIX, isToolPattern } from "../base/ids.ts";
import { DATA_CLASSES } from "../base/labels.ts";
import type { Giving } from "../policy/policy.ts";
import { type Located, quote, type Report, suggestion } from "./config_faults.ts";
import { checkExists, type Surroundings } from "./config_grants.ts";
import { duration, flag, list, oneOf, readTable, type TableRead, text } from "./config_shape.ts";
import type { TomlTable } from "./config_toml.ts";

const GIVES_SHAPE = {
  role: text("the name of a role"),
  to: list(text("the name of a role"), "a list of names of roles", "name the roles that it may give to"),
  tools: list(
    text('a tool name, or a prefix and one * at its end, such as "files.*"', isToolPattern),
    "a list of tool names or prefixes that end in *",
    'name the tools, or write ["*"] for all of them',
  ),
  taint_max: oneOf(DATA_CLASSES),
  taint_untrusted: flag,
  longest: duration("1s", "366d"),
  effects: list(
    oneOf(["allow", "ask"]),
    'a list of "ask" and "allow"',
    'write ["ask"]; a deny of these tools may be given in any case',
  ),
} as const;

const REQUIRED = ["role", "to", "tools", "taint_max", "taint_untrusted", "longest"] as const;
const EFFECTS_DEFAULT: Giving["effects"] = ["ask"];

/** An entry and where its parts stand. Faulty parts were reported and give nothing. */
export interface GivingDraft {
  readonly policy: Giving;
  readonly read: TableRead<typeof GIVES_SHAPE>;
}

export function readGives(
  entries: readonly TomlTable[],
  around: Surroundings,
  report: Report,
): readonly GivingDraft[] {
  return entries.map((entry) => {
    const rules = { name: "an entry of gives", shape: GIVES_SHAPE, required: REQUIRED };
    const read = readTable(entry, rules, report);
    checkRoles(read, around, report);
    for (const pattern of read.fields.tools?.value ?? []) checkTool(pattern, around, report);
    return { read, policy: givingOf(read) };
  });
}

function givingOf({ fields }: GivingDraft["read"]): Giving {
  return {
    role: fields.role?.value ?? "",
    to: valuesOf(fields.to?.value),
    tools: valuesOf(fields.tools?.value),
    taintMax: {
      class: fields.taint_max?.value ?? "public",
      untrusted: fields.taint_untrusted?.value ?? false,
    },
    longestMs: fields.longest?.value ?? 0,
    effects: fields.effects === undefined ? EFFECTS_DEFAULT : valuesOf(fields.effects.value),
  };
}

function valuesOf<T>(found: readonly Located<T>[] = []): readonly T[] {
  return found.map(({ value }) => value);
}

function checkRoles({ fields }: GivingDraft["read"], { roles }: Surroundings, report: Report): void {
  const giver = fields.role;
  for (const role of [...(giver === undefined ? [] : [giver]), ...(fields.to?.value ?? [])]) {
    if (!roles.has(role.value)) {
      report(role.at, `no role ${quote(role.value)}; ${suggestion(role.value, roles.keys(), "roles")}`);
    } else if (role !== giver && role.value === giver?.value) {
      report(role.at, `role ${giver.value} cannot give to itself; name the roles that it gives to`);
    }
  }
}

function checkTool(pattern: Located<string>, around: Surroundings, report: Report): void {
  if (pattern.value.startsWith(BUILTIN_PREFIX)) {
    const why = "is the broker's own, and nobody can give that; write a grant in the config";
    report(pattern.at, `${quote(pattern.value)} ${why}`);
  } else if (!pattern.value.endsWith("*")) checkExists(pattern, around, report);
}
