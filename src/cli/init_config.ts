// The config that `callgate init` writes: roles, tools and grants of a Choice, each explained where it
// stands. Texts only. Invariant: nothing but the built-in tools of the operator is allowed to a session
// that has read something untrusted, except reading; what goes beyond is a comment or a question.

import { type Choice, OPERATOR_ROLE, type ProviderChoice, USER_PREFIX } from "./init_choice.ts";
import { filesGrants, filesTools } from "./init_files.ts";
import { type Looks, suggestedGrants } from "./init_mcp_grants.ts";

export const OPERATORS_GROUP = "callgate-operators";

export function configText(choice: Choice, looks: Looks): string {
  const { callers, providers } = choice;
  const hasServers = providers.some(({ server }) => server !== undefined);
  return [
    head(choice),
    daemon(choice),
    roles(choice),
    ...callers.map((role) => caller(role, choice)),
    ...providers.map((one) => provider(one, choice)),
    operator(choice),
    TOOLS,
    ...(hasServers ? [SERVERS_TOOLS] : []),
    ...providers
      .filter(({ server }) => server === undefined)
      .map((one) => (one.roots.length > 0 ? filesTools(one) : announcedTools(one, callers))),
    GRANTS,
    ...providers.flatMap((one) => providerGrants(one, callers, looks)),
    ...callers.map((role) => itself(role, hasServers)),
    OPERATES,
  ].join("\n");
}

function head({ kind, directory }: Choice): string {
  const reload =
    kind === "service" ? "systemctl reload callgate" : "kill -HUP the daemon, or callgate reload";
  return `# The configuration of callgate. \`callgate init\` began it; from here on it is yours.
#
# Nothing is allowed but what a grant at the end of this file allows. All options, with their
# defaults, are in examples/callgate.toml of the package. After a change:
#
#     callgate check --config ${directory}/callgate.toml
#     ${reload}
#
# A faulty file changes nothing: the daemon keeps the policy that it has, and says so.
`;
}

function daemon({ kind }: Choice): string {
  if (kind === "service")
    return `[daemon]
# One socket for each role, ROLE.sock, which callgate-role@ROLE.socket makes.
#sockets = "/run/callgate"
# What must survive a restart: calls and their answers, taints, questions, the audit. The unit makes
# it, for the daemon's user alone. callgate backup copies it; nothing else should.
#state = "/var/lib/callgate"
`;
  return `# You are one user here and play every part, so you approve what you yourself asked as the agent.
# Where an agent matters this goes away and each role gets a user of its own: an agent that runs as
# the user who approves needs no approval. callgate check says so too.
allow_same_user = true

[daemon]
# Beside this file. One socket for each role: run/ROLE.sock.
sockets = "run"
# What must survive a restart: calls and their answers, taints, questions, the audit. Remove it while
# nothing runs, to begin anew.
state = "state"
`;
}

function roles({ kind }: Choice): string {
  const made = "# Their users are made by sysusers.d/callgate-roles.conf, which callgate install writes.\n";
  return `
# ROLES. Each is a process of its own with a socket of its own. Which socket a process came through,
# and what the kernel says of its user, is all that tells who it is.
${kind === "service" ? made : ""}`;
}

/** Who may connect, and who gets through the socket's mode. */
function admits(role: string, { kind, uid, clients }: Choice): string {
  if (kind === "here") return `users = [${uid}]`;
  const own = `${USER_PREFIX}${role}`;
  return `users = ["${clients.get(role) ?? own}"]\ngroup = "${own}"`;
}

function caller(role: string, choice: Choice): string {
  return `# The process that talks to a model. It can do nothing but ask.
[roles.${role}]
${admits(role, choice)}
# It names its sessions itself, so all of them share one taint: a new name is no clean slate. With
# "opened" another role opens each of them, with the user's own words (callgate.sessions.open).
#sessions = "any"
`;
}

function provider(one: ProviderChoice, choice: Choice): string {
  const { role, roots, server } = one;
  if (roots.length > 0)
    return `# The process that has files: callgate role files. No call leads out of its directories.
[roles.${role}]
${admits(role, choice)}
# The highest class that its results may carry.
class_max = "${highestClass(one)}"
`;
  const what =
    server === undefined ? `has ${role}` : `runs the MCP server "${server.name}": callgate mcp provide`;
  return `# The process that ${what}. It runs somebody's code, so it gets one connection.
[roles.${role}]
${admits(role, choice)}
connections = 1
# It may announce tools of such names. They are out of service until an operator accepts each:
# callgate tools list, callgate tools accept NAME DIGEST.
provides = ["${role}."]
# The highest class that its results may carry.
class_max = "internal"
`;
}

const CLASSES = ["public", "internal", "confidential", "restricted"] as const;

function highestClass({ roots }: ProviderChoice): string {
  return CLASSES.findLast((name) => roots.some((root) => root.class === name)) ?? "internal";
}

function operator(choice: Choice): string {
  const { kind, operators } = choice;
  const head = `# The people who keep it and who answer questions, with the callgate command or its console.`;
  if (kind === "here")
    return `${head}\n[roles.${OPERATOR_ROLE}]\n${admits(OPERATOR_ROLE, choice)}\noperator = true\n`;
  const who =
    operators.length > 0
      ? `users = [${operators.map((user) => `"${user}"`).join(", ")}]`
      : `groups = ["${OPERATORS_GROUP}"]`;
  return `${head}
# Nobody approves for its own role or user, so no agent may run as one of them.
[roles.${OPERATOR_ROLE}]
${who}
group = "${OPERATORS_GROUP}"
operator = true
`;
}

const TOOLS = `
# TOOLS. Who provides each, what a call of it can do, and what its results are at least.
`;

const SERVERS_TOOLS = `# Tools of MCP servers need no entry here. Each is out of service until an operator has accepted what its
# server announced, and again when that changes. Without an entry it counts as the worst (effect =
# "execute"), and its results as untrusted.
`;

/** Nothing of it is in force: what a tool does, only its provider's owner knows. */
function announcedTools({ role }: ProviderChoice, [first = "agent"]: readonly string[]): string {
  return `# What ${role} announces needs no entry here to be accepted, but without one it counts as the worst
# (effect = "execute", untrusted). Declare what you know of it. An example, to be taken out of the #:
#
#[tools."${role}.send"]
#role = "${role}"
## "read", "write", "send", "spend" or "execute".
#effect = "send"
## The arguments that say where something goes: whoever approves sees them first.
#destinations = ["to"]
#schema.type = "object"
#schema.properties.to = { type = "string", maxLength = 320 }
#schema.properties.text = { type = "string" }
#schema.required = ["to", "text"]
#schema.additionalProperties = false
#
## Asked each time, whatever the session has read.
#[[grants]]
#id = "${first}-asks-${role}"
#role = "${first}"
#tools = ["${role}.send"]
#effect = "ask"
#taint_max = "internal"
#taint_untrusted = true
#approval_ttl = "15m"
`;
}

const GRANTS = `
# GRANTS. Over all that match the role, the tool, the session and the condition: a deny wins, then an
# ask, then an allow; where nothing matches, the call is denied. taint_max and taint_untrusted say up
# to what a session may have read for the grant to hold.
`;

function providerGrants(one: ProviderChoice, callers: readonly string[], looks: Looks): readonly string[] {
  const { role, roots, server } = one;
  if (roots.length > 0) return callers.map((caller) => filesGrants(caller, one));
  if (server === undefined) return [announces(role)];
  return [announces(role), suggestedGrants(role, callers, looks.get(role) ?? NOT_LOOKED)];
}

const NOT_LOOKED = "nobody has looked at the server";

function announces(role: string): string {
  return `[[grants]]
id = "${role}-announces"
role = "${role}"
tools = ["callgate.tools.announce"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;
}

function itself(role: string, lists: boolean): string {
  const what = lists ? "see its tools, learn why it was denied" : "learn why it was denied";
  return `# A caller may ${what}, and withdraw what it asked.
[[grants]]
id = "${role}-itself"
role = "${role}"
tools = [${lists ? '"callgate.tools.list", ' : ""}"callgate.calls.why", "callgate.calls.cancel"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;
}

const OPERATES = `[[grants]]
id = "operator-operates"
role = "${OPERATOR_ROLE}"
tools = ["callgate.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;
