// Who may bring which tool names into being: the prefixes that roles announce under, against the
// broker's own names, each other, and the tools that the config gives to somebody else.

import { BUILTIN_PREFIX } from "../base/ids.ts";
import { type Located, quote, type Report } from "./config_faults.ts";
import type { RoleDraft } from "./config_roles.ts";
import type { ToolDraft } from "./config_tools.ts";

interface Claim extends Located<string> {
  readonly role: string;
}

export function checkProvides(
  roles: ReadonlyMap<string, RoleDraft>,
  tools: ReadonlyMap<string, ToolDraft>,
  report: Report,
): void {
  const claims: Claim[] = [];
  for (const [role, draft] of roles) {
    for (const prefix of draft.read.fields.provides?.value ?? []) claims.push({ ...prefix, role });
  }
  for (const [index, claim] of claims.entries()) {
    checkReserved(claim, report);
    checkOverlap(claim, claims.slice(0, index), report);
    checkConfigured(claim, tools, report);
  }
}

function checkReserved({ value, at }: Claim, report: Report): void {
  if (BUILTIN_PREFIX.startsWith(value) || value.startsWith(BUILTIN_PREFIX.slice(0, -1))) {
    report(at, `the prefix ${quote(value)} reaches the broker's own ${BUILTIN_PREFIX}*; choose another`);
  }
}

function checkOverlap(claim: Claim, earlier: readonly Claim[], report: Report): void {
  const other = earlier.find(
    ({ value, role }) =>
      role !== claim.role && (value.startsWith(claim.value) || claim.value.startsWith(value)),
  );
  if (other === undefined) return;
  report(
    claim.at,
    `the prefix ${quote(claim.value)} overlaps ${quote(other.value)} of role ${other.role} (line ${other.at.line}); ` +
      "two providers cannot own one name",
  );
}

function checkConfigured(claim: Claim, tools: ReadonlyMap<string, ToolDraft>, report: Report): void {
  for (const [name, { policy, at }] of tools) {
    // Without a role the tool was reported itself.
    if (!name.startsWith(claim.value) || policy.role === claim.role || policy.role === "") continue;
    report(
      claim.at,
      `the prefix ${quote(claim.value)} covers the tool ${quote(name)}, which line ${at.line} gives to ` +
        `role ${quote(policy.role)}; two providers cannot own one name`,
    );
  }
}
