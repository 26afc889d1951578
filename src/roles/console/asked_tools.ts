// The broker's tools that the page may ask for: a closed list. It bounds what somebody who got into the page could do
// beyond what the page shows; what the console's role may do is the broker's to say.

/** Ending the page ends the asking. */
const READS = [
  "callgate.status",
  "callgate.tools.list",
  "callgate.tools.diff",
  "callgate.approvals.list",
  "callgate.approvals.show",
  "callgate.grants.list",
  "callgate.grants.explain",
  "callgate.sessions.list",
  "callgate.sessions.show",
  "callgate.calls.list",
  "callgate.calls.show",
  "callgate.calls.why",
  "callgate.audit.export",
  "callgate.audit.verify",
];

/** Once asked they go on to their end, whoever leaves. */
const WRITES = [
  "callgate.approvals.approve",
  "callgate.approvals.refuse",
  "callgate.grants.add",
  "callgate.grants.revoke",
  "callgate.sessions.endorse",
  "callgate.freeze",
  "callgate.reload",
  "callgate.tools.accept",
  "callgate.calls.cancel",
];

const KINDS: ReadonlyMap<string, "read" | "write"> = new Map([
  ...READS.map((tool) => [tool, "read"] as const),
  ...WRITES.map((tool) => [tool, "write"] as const),
]);

/** undefined: the page may not ask for it. */
export function kindOf(tool: string): "read" | "write" | undefined {
  return KINDS.get(tool);
}
