// The two policies of the simulated world, as TOML for the broker and as plain facts for the model.

import { allow } from "../broker/configs.ts";

export type Caller = "agent" | "other";
export type Tool = "free" | "note" | "news" | "clean" | "send" | "pay";
export type PolicyName = "open" | "strict";

export const CALLERS: readonly Caller[] = ["agent", "other"];
export const TOOLS: readonly Tool[] = ["free", "note", "news", "clean", "send", "pay"];
export const TIMEOUT_MS = 20_000;
export const TTL_MS = { send: 600_000, pay: 300_000 } as const;
export const REFUSE_FOR_MS = { send: 1_800_000, pay: 600_000 } as const;

/** Reads are never in doubt. */
export const READS: ReadonlySet<Tool> = new Set(["free", "news", "clean"]);
/** What comes out of it is untrusted. */
export const UNTRUSTED: ReadonlySet<Tool> = new Set(["news"]);

function tool(name: Tool, effect: string, untrusted: boolean): string {
  return `[tools.${name}]
role = "files"
effect = "${effect}"
class = "public"
untrusted = ${untrusted}
timeout = "${TIMEOUT_MS / 1000}s"
store = false
`;
}

const WORLD = `[roles.agent]
users = ["agent"]
[roles.agent.limits]
pending_approvals = 10000
questions_per_hour = 100000
[roles.other]
users = ["agent"]
[roles.other.limits]
pending_approvals = 10000
questions_per_hour = 100000
[roles.files]
users = ["callgate-files"]
class_max = "confidential"
[roles.operator]
users = ["operator"]
operator = true
${tool("free", "read", false)}${tool("note", "write", false)}${tool("news", "read", true)}${tool("clean", "read", false)}${tool("send", "send", false)}${tool("pay", "spend", false)}
${allow("operator-operates", "operator", '["callgate.*"]')}
${allow("agent-uses", "agent", '["free", "news", "callgate.calls.cancel"]')}
${allow("other-uses", "other", '["free", "note", "callgate.calls.cancel"]')}
[[grants]]
id = "agent-clean"
role = "agent"
tools = ["clean"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = false
[[grants]]
id = "agent-sends"
role = "agent"
tools = ["send"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = false
above_taint = "ask"
approval_ttl = "${TTL_MS.send / 1000}s"
refuse_for = "${REFUSE_FOR_MS.send / 1000}s"
${CALLERS.map(
  (role) => `[[grants]]
id = "${role}-pays"
role = "${role}"
tools = ["pay"]
effect = "ask"
taint_max = "restricted"
taint_untrusted = true
approval_ttl = "${TTL_MS.pay / 1000}s"
refuse_for = "${REFUSE_FOR_MS.pay / 1000}s"
`,
).join("")}`;

export const TOML: Readonly<Record<PolicyName, string>> = {
  open: `${WORLD}${allow("agent-notes", "agent", '["note"]')}`,
  strict: `${WORLD}[[grants]]
id = "nobody-pays"
role = "agent"
tools = ["pay"]
effect = "deny"
`,
};

export type Ruling =
  | { readonly kind: "allow" }
  | { readonly kind: "ask"; readonly ttlMs: number; readonly refuseForMs: number }
  | { readonly kind: "deny"; readonly reason: string };

const DEFAULT_ASK = { kind: "ask", ttlMs: 900_000, refuseForMs: 3_600_000 } as const;

/** What a question about a call that a grant allows outright would be: its outcome before is unknown. */
export function askedAnyway(ruling: Ruling, name: Tool): Extract<Ruling, { kind: "ask" }> {
  if (ruling.kind === "ask") return ruling;
  return name === "send" ? { kind: "ask", ttlMs: TTL_MS.send, refuseForMs: REFUSE_FOR_MS.send } : DEFAULT_ASK;
}

/** The policy by hand: what its owner would say it means. */
export function rule(policy: PolicyName, role: Caller, name: Tool, untrusted: boolean): Ruling {
  const pays = { kind: "ask", ttlMs: TTL_MS.pay, refuseForMs: REFUSE_FOR_MS.pay } as const;
  if (name === "free") return { kind: "allow" };
  if (role === "other") {
    if (name === "note") return { kind: "allow" };
    return name === "pay" ? pays : { kind: "deny", reason: "no_grant" };
  }
  switch (name) {
    case "news":
      return { kind: "allow" };
    case "clean":
      return untrusted ? { kind: "deny", reason: "taint_too_high" } : { kind: "allow" };
    case "send":
      return untrusted
        ? { kind: "ask", ttlMs: TTL_MS.send, refuseForMs: REFUSE_FOR_MS.send }
        : { kind: "allow" };
    case "note":
      return policy === "open" ? { kind: "allow" } : { kind: "deny", reason: "no_grant" };
    case "pay":
      return policy === "strict" ? { kind: "deny", reason: "denied_by_grant" } : pays;
  }
}
