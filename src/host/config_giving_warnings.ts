// Warnings about `[[gives]]`: what a role could give away that its owner may not have meant to let go
// of, and entries that do nothing. Only about configs without faults.

import { listed } from "./config_faults.ts";
import type { GivingDraft } from "./config_gives.ts";
import { actsForItself, type Compiled, mayUse, type Warn, warnOfNothing } from "./config_reach.ts";

const ADD = "callgate.grants.add";

export function warnOfGiving(giving: GivingDraft, compiled: Compiled, warn: Warn): void {
  const { policy, read } = giving;
  if (!mayUse(policy.role, ADD, compiled)) {
    const why = `no grant lets role ${policy.role} use ${ADD}, so this entry gives nothing`;
    warn("never_gives", read.fields.role?.at ?? read.at, `${why}; add that grant, or remove the entry`);
  }
  warnOfFreeGiving(giving, warn);
  warnOfItself(giving, compiled, warn);
  const tools = read.fields.tools?.value ?? [];
  warnOfNothing(tools, compiled, warn);
  for (const { value, at } of tools) {
    if (value !== "*") continue;
    warn(
      "every_tool",
      at,
      `role ${policy.role} may give every tool, also each one that is added later; name the tools it may give`,
    );
  }
}

/** What an injected instruction that reaches the giver would want most. */
function warnOfFreeGiving({ policy, read }: GivingDraft, warn: Warn): void {
  const { taintMax, role, to } = policy;
  if (!policy.effects.includes("allow")) return;
  const high = [
    ...(taintMax.class === "restricted" ? ["that have seen restricted data"] : []),
    ...(taintMax.untrusted ? ["that have read untrusted text"] : []),
  ];
  if (high.length === 0) return;
  warn(
    "gives_freely",
    read.fields.effects?.at ?? read.at,
    `role ${role} may give ${listed(to)} an allow that asks nobody, for sessions ${high.join(" and ")}; leave ` +
      'effects at ["ask"], or lower taint_max and taint_untrusted',
  );
}

/** The broker refuses that, so the entry would do nothing for such a role. */
function warnOfItself({ policy, read }: GivingDraft, compiled: Compiled, warn: Warn): void {
  const giver = compiled.roles.get(policy.role);
  if (giver === undefined) return;
  for (const { value, at } of read.fields.to?.value ?? []) {
    const taker = compiled.roles.get(value);
    if (taker === undefined || !actsForItself(giver, taker, compiled)) continue;
    const why = `whoever connects as role ${policy.role} may also connect as ${value}, and nobody gives to itself`;
    warn("gives_to_itself", at, `${why}; give them users of their own`);
  }
}
