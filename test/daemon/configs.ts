// Configs of the daemon tests, in pieces.

/** `agent` may call `echo` and `slow` of `tools`; `operator` may do what operators do. */
export const ECHO = `
frame_timeout = "300ms"
drain_timeout = "5s"

[roles.agent]
anyone = true
[roles.tools]
anyone = true
[roles.operator]
anyone = true
operator = true

[tools.echo]
role = "tools"
effect = "read"
untrusted = false
class = "public"
[tools.slow]
role = "tools"
effect = "write"
untrusted = false

[[grants]]
id = "agent-echoes"
role = "agent"
tools = ["echo", "slow"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "agent-itself"
role = "agent"
tools = ["callgate.calls.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "operator-operates"
role = "operator"
tools = ["callgate.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;

/** The same with other limits for `agent`. */
export function withAgentLimits(limits: string): string {
  return `${ECHO}\n[roles.agent.limits]\n${limits}\n`;
}
