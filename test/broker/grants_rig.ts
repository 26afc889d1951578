// A broker with roles that may give grants at run time, and the short words for giving, using and looking.

import { allow, TOOLS } from "./configs.ts";
import type { Reply, RigPeer } from "./rig_peer.ts";

/** `agent` has nothing by the config but the tools that it attacks with; `mail` works in opened sessions. */
export const GIVING = `[roles.agent]
users = ["agent"]
[roles.other]
users = ["agent"]
[roles.files]
users = ["callgate-files"]
class_max = "confidential"
provides = ["plug."]
[roles.mail]
users = ["callgate-mail"]
sessions = "opened"
taint_scope = "session"
[roles.frontend]
users = ["callgate-frontend"]
[roles.operator]
users = ["operator"]
operator = true
[roles.second]
users = ["callgate-frontend"]
operator = true
${TOOLS}
${allow("agent-attacks", "agent", '["callgate.grants.*", "callgate.calls.why"]')}
${allow("mail-looks", "mail", '["callgate.grants.*"]')}
${allow("frontend-gives", "frontend", '["callgate.grants.*", "callgate.sessions.open", "floor"]')}
${allow("operator-operates", "operator", '["callgate.*"]')}
${allow("second-operates", "second", '["callgate.*"]')}
[[gives]]
role = "frontend"
to = ["agent", "mail"]
tools = ["read", "fr*", "write", "plug.*"]
taint_max = "internal"
taint_untrusted = false
longest = "1h"
effects = ["allow", "ask"]
[[gives]]
role = "operator"
to = ["agent", "other", "mail", "second", "frontend"]
tools = ["*"]
taint_max = "restricted"
taint_untrusted = true
longest = "1d"
effects = ["allow", "ask"]
`;

/** An allow of `read` for the agent that the frontend may just give. */
export const READ = {
  role: "agent",
  tools: ["read"],
  effect: "allow",
  taint_max: "internal",
  taint_untrusted: false,
  expires_in_seconds: 3600,
  reason: "the user wants it read",
} as const;

export const DENY = { role: "agent", tools: ["*"], effect: "deny", reason: "no more" } as const;

/** A rig, or one of several lives. */
interface World {
  settle(): Promise<void>;
  peer(role: string): RigPeer;
}

export async function ask(rig: World, peer: RigPeer, tool: string, args: object = {}): Promise<Reply> {
  const reply = peer.ask(tool, args);
  await rig.settle();
  return reply;
}

export async function add(rig: World, peer: RigPeer, args: object): Promise<Reply> {
  return ask(rig, peer, "callgate.grants.add", args);
}

/** The id of a grant that has to be taken in. */
export async function given(rig: World, peer: RigPeer, args: object): Promise<string> {
  const reply = await add(rig, peer, args);
  return String(reply.json["grant"]);
}

export async function revoke(rig: World, peer: RigPeer, grant: string): Promise<Reply> {
  return ask(rig, peer, "callgate.grants.revoke", { grant });
}

export interface ShownGrant {
  readonly id: string;
  readonly role: string;
  readonly runtime: boolean;
  readonly expired: boolean;
  readonly max_calls: { readonly used: number; readonly since_ms: number | null } | null;
  readonly [more: string]: unknown;
}

/** Those that were made at run time. */
export async function runtimeGrants(
  rig: World,
  peer: RigPeer,
  args: object = {},
): Promise<readonly ShownGrant[]> {
  const reply = await ask(rig, peer, "callgate.grants.list", args);
  return (reply.json["grants"] as ShownGrant[]).filter(({ runtime }) => runtime);
}

/** A provider that answers everything at once; what it ran is counted. */
export function serving(rig: World): { readonly ran: string[] } {
  const ran: string[] = [];
  rig.peer("files").serve = (request) => {
    ran.push(`${request.body.tool} ${request.body.arguments}`);
    request.result("done");
  };
  return { ran };
}
