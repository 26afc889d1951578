// The systemd files that `callgate init` writes: the daemon's unit, one for each provider of files, templates
// for other roles, the operator's console, and the users and directories that they need. Texts only.
// Invariant: what a path or name could mean to systemd (a specifier, a variable, a word's end) is written
// so that it means itself.

import { type Choice, OPERATOR_ROLE, type Program, type ProviderChoice, USER_PREFIX } from "./init_choice.ts";
import { OPERATORS_GROUP } from "./init_config.ts";
import { filesPrefix } from "./init_files.ts";
import { serverFile } from "./init_mcp_files.ts";
import type { McpServerEntry } from "./mcp_servers_file.ts";

/** A word of a line that systemd splits. */
export function systemdWord(text: string): string {
  const escaped = text.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[A-Za-z0-9_@%$+=:,./-]+$/.test(escaped) ? escaped : `"${escaped}"`;
}

/** A value in which systemd knows specifiers and words, but no variables. */
function pathWord(path: string): string {
  const escaped = path.replaceAll("%", "%%");
  return escaped.includes(" ") ? `"${escaped}"` : escaped;
}

function command(...words: readonly string[]): string {
  return words.map(systemdWord).join(" ");
}

/** What every unit of ours gives up, also one in which namespaces are made. */
const GIVEN_UP = `NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
PrivateDevices=yes
PrivateIPC=yes
ProtectSystem=strict
ProtectKernelModules=yes
ProtectControlGroups=yes
ProtectClock=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
KeyringMode=private
SystemCallArchitectures=native`;

const LAST = `SystemCallErrorNumber=EPERM
# MemoryDenyWriteExecute= must stay off: V8 writes code at run time and runs it.
UMask=0077
LimitCORE=0`;

/** What runs in it needs no more than files and Unix sockets. */
const HARDENED = `${GIVEN_UP}
ProtectKernelTunables=yes
ProtectKernelLogs=yes
ProtectHostname=yes
ProtectProc=invisible
RestrictNamespaces=yes
# Those of pkeys(7) beside it: V8 guards its code with them.
SystemCallFilter=@system-service pkey_alloc pkey_free pkey_mprotect
${LAST}`;

/**
 * What runs in it puts a foreign program into namespaces of its own. The kernel lets it show that program a /proc only
 * where nothing lies over parts of ours, as the settings that are missing here would.
 */
const HARDENED_BUT_NAMESPACES = `${GIVEN_UP}
# The server is put into namespaces of its own, with a /proc of its own: so no RestrictNamespaces=, no
# ProtectKernelTunables=, ProtectKernelLogs=, ProtectProc= and ProtectHostname= here, and @mount below.
SystemCallFilter=@system-service @mount pkey_alloc pkey_free pkey_mprotect
${LAST}`;

const NO_NETWORK = `# No network at all: peers come over Unix sockets.
PrivateNetwork=yes
RestrictAddressFamilies=AF_UNIX
IPAddressDeny=any`;

export function daemonUnit({ directory }: Choice, program: Program): string {
  return `# The broker. \`callgate init\` wrote it.

[Unit]
Description=callgate, the gate through which the tool calls of agents pass

[Service]
Type=simple
User=callgate
Group=callgate
ExecStart=${command(...program, "serve", "--config", `${directory}/callgate.toml`)}
# Reads the config again; a faulty one changes nothing.
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=1
# It could not start: its log says why, and trying again changes nothing.
RestartPreventExitStatus=78
# Longer than drain_timeout in the config, which running calls have to end.
TimeoutStopSec=60

# /run/callgate, which every role enters to reach its socket, and /var/lib/callgate, which nobody enters.
RuntimeDirectory=callgate
RuntimeDirectoryMode=0755
StateDirectory=callgate
StateDirectoryMode=0700
# Connections and files. Of address space it needs much (the store is mapped), so LimitAS= stays off.
LimitNOFILE=65536

# One JSON object a line, with its priority in front.
SyslogIdentifier=callgate
SyslogLevelPrefix=yes

PrivateTmp=yes
ProtectHome=yes
${NO_NETWORK}
${HARDENED}

[Install]
WantedBy=multi-user.target
`;
}

export function filesUnit(one: ProviderChoice, program: Program): string {
  const { role, roots } = one;
  const prefix = filesPrefix(role);
  const words = [
    ...["role", "files", "--socket", `/run/callgate/${role}.sock`],
    ...(prefix === "" ? [] : ["--prefix", prefix]),
    ...roots.flatMap((root) => ["--root", rootOption(root)]),
  ];
  return `# The files provider as role ${role}. \`callgate init\` wrote it.

${roleHead(`callgate role ${role}, a provider of files`)}

[Service]
Type=simple
User=${USER_PREFIX}${role}
Group=${USER_PREFIX}${role}
ExecStart=${command(...program, ...words)}
Restart=always
RestartSec=1
SyslogIdentifier=callgate-${role}

# Of the disk it may write to its rw directories and nothing else.
${reachable(roots)}
${NO_NETWORK}
${HARDENED}

[Install]
WantedBy=multi-user.target
`;
}

/** Its server is somebody else's code: it gets a user, a home and an end of its own. */
export function mcpUnit({ role, reach }: McpServerEntry, { directory }: Choice, program: Program): string {
  const words = ["mcp", "provide", "--socket", `/run/callgate/${role}.sock`, "--prefix", `${role}.`];
  const file = `${directory}/${serverFile(role)}`.replaceAll("%", "%%");
  return `# An MCP server as role ${role}. \`callgate init\` wrote it. The server runs in here, as this user: nothing else
# may run as it.

${roleHead(`callgate mcp provide, as role ${role}`)}

[Service]
Type=simple
User=${USER_PREFIX}${role}
Group=${USER_PREFIX}${role}
# How the server is reached, secrets included: root alone can read the file, and this unit gets a copy.
LoadCredential=server:${file}
ExecStart=${command(...program, ...words)} --server-file %d/server
# Whatever the server has started ends with it.
KillMode=control-group
Restart=always
RestartSec=5
SyslogIdentifier=callgate-${role}

# A home of its own, /var/lib/callgate-${role}. Of the disk it can write nothing else, and of people's homes it
# sees nothing. What it serves of them has to be named, here and to its user (setfacl):
StateDirectory=callgate-${role}
StateDirectoryMode=0700
Environment=HOME=/var/lib/callgate-${role}
WorkingDirectory=/var/lib/callgate-${role}
ProtectHome=tmpfs
${bound(reach)}
PrivateTmp=yes
# What needs no network should have none: take the # away from the first two, and remove the third.
#PrivateNetwork=yes
#RestrictAddressFamilies=AF_UNIX
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
${HARDENED_BUT_NAMESPACES}

[Install]
WantedBy=multi-user.target
`;
}

/** Paths among its arguments are most often what it serves: shown, and not opened. */
function bound(reach: McpServerEntry["reach"]): string {
  const given = reach.kind === "url" ? [] : reach.args;
  const paths = given.filter((one) => one.length <= PATH_CHARS_MAX && PLAIN_PATH.test(one));
  const shown = paths.length > 0 ? paths : ["/home/NAME/DIRECTORY"];
  return shown.flatMap((path) => [`#BindReadOnlyPaths=${path}`, `#BindPaths=${path}`]).join("\n");
}

const PATH_CHARS_MAX = 255;
const PLAIN_PATH = /^(?:\/[A-Za-z0-9][A-Za-z0-9_.@-]*)+\/?$/;

function roleHead(description: string): string {
  return `[Unit]
Description=${description}
Wants=callgate.service
After=callgate.service`;
}

type Root = ProviderChoice["roots"][number];

/** As `callgate role files --root` takes it, with everything said. */
export function rootOption({ class: name, untrusted, writable, path }: Root): string {
  return `${name},${untrusted ? "untrusted" : "trusted"},${writable ? "rw" : "ro"}:${path}`;
}

const HOMES = /^\/(?:home|root|run\/user)(?:\/|$)/;
const TEMPORARY = /^\/(?:tmp|var\/tmp)(?:\/|$)/;

/** Homes and temporary directories are hidden but for the roots in them. */
function reachable(roots: readonly Root[]): string {
  const homes = roots.filter(({ path }) => HOMES.test(path));
  const elsewhere = roots.filter(({ path, writable }) => writable && !HOMES.test(path));
  return [
    homes.length > 0 ? "ProtectHome=tmpfs" : "ProtectHome=yes",
    ...homes.map(({ path, writable }) => `${writable ? "BindPaths" : "BindReadOnlyPaths"}=${pathWord(path)}`),
    ...elsewhere.map(({ path }) => `ReadWritePaths=${pathWord(path)}`),
    `PrivateTmp=${roots.some(({ path }) => TEMPORARY.test(path)) ? "no" : "yes"}`,
  ].join("\n");
}

/** For a provider or a caller that callgate has no program for. */
export function roleTemplate(role: string, doing: string): string {
  return `# A template for the program of role ${role}, which ${doing}. Set ExecStart=, put it into
# /etc/systemd/system as callgate-${role}.service, and give it no more than it needs.

${roleHead(`callgate role ${role}`)}

[Service]
Type=simple
# By this user the broker knows it. Nothing else may run as it.
User=${USER_PREFIX}${role}
Group=${USER_PREFIX}${role}
# Its way to the broker, and the only one: /run/callgate/${role}.sock. docs/wire.md says what is spoken
# there; examples/python has a caller and a provider to begin with.
Environment=CALLGATE_SOCKET=/run/callgate/${role}.sock
ExecStart=/usr/local/bin/CHANGE-ME
Restart=always
RestartSec=1
SyslogIdentifier=callgate-${role}

# A directory of its own, /var/lib/callgate-${role}; the rest of the disk it can only read.
StateDirectory=callgate-${role}
StateDirectoryMode=0700
ProtectHome=yes
PrivateTmp=yes
# What needs no network should have none: take the # away from the first two, and remove the third.
#PrivateNetwork=yes
#RestrictAddressFamilies=AF_UNIX
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
${HARDENED}

[Install]
WantedBy=multi-user.target
`;
}

/** A unit of the operator's own service manager: the page is for that user alone. */
export function consoleUnit(program: Program): string {
  return `# The console, as a service of the operator who starts it: put it into ~/.config/systemd/user.
# Its login link is in that user's journal: journalctl --user -u callgate-console

[Unit]
Description=callgate console

[Service]
Type=simple
ExecStart=${command(...program, "console", "--socket", `/run/callgate/${OPERATOR_ROLE}.sock`)}
Restart=on-failure
RestartSec=1
RestartPreventExitStatus=2
NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
LockPersonality=yes
SystemCallArchitectures=native
UMask=0077
LimitCORE=0

[Install]
WantedBy=default.target
`;
}

export function rolesOf({ callers, providers }: Choice): readonly string[] {
  return [...callers, ...providers.map(({ role }) => role)];
}

/** sysusers.d(5). The daemon is in each role's group: only so may it give that group the role's socket. */
export function sysusersText(choice: Choice, isUser: (name: string) => boolean): string {
  const { clients } = choice;
  const groups = rolesOf(choice).map((role) => `${USER_PREFIX}${role}`);
  const own = rolesOf(choice).filter((role) => !clients.has(role));
  const people = [...clients].map(([role, user]) => clientLines(role, user, isUser));
  const members = [...groups, OPERATORS_GROUP].map((group) => `m callgate ${group}`);
  // A user that is not there would be made, as a system user that nobody can log in as.
  const operators = choice.operators.map((user) => `${isUser(user) ? "" : "#"}m ${user} ${OPERATORS_GROUP}`);
  const keepers = operators.length > 0 ? operators : [`#m NAME ${OPERATORS_GROUP}`];
  return `# The users of callgate and its roles. \`callgate init\` wrote it; systemd-sysusers makes them.
u callgate - "callgate broker" /var/lib/callgate
${own.map((role) => `u ${USER_PREFIX}${role} - "callgate role ${role}"`).join("\n")}
${people.join("")}
# Who may answer questions and keep the broker. Being put into a group counts from the next login on.
g ${OPERATORS_GROUP}
${keepers.join("\n")}

# The broker gives each role's socket to the role's group, so it has to be in it.
${members.join("\n")}

# Without systemd-sysusers the same is:
${byHand(choice)
  .map((line) => `#   ${line}`)
  .join("\n")}
`;
}

/** A user who runs the client has a group of the role's, and through it its socket. */
function clientLines(role: string, user: string, isUser: (name: string) => boolean): string {
  const group = `${USER_PREFIX}${role}`;
  return `# The client of role ${role} is run by ${user}.\ng ${group}\n${isUser(user) ? "" : "#"}m ${user} ${group}\n`;
}

function byHand(choice: Choice): readonly string[] {
  const { clients } = choice;
  const nologin = "--shell /usr/sbin/nologin";
  const groups = rolesOf(choice).map((role) => `${USER_PREFIX}${role}`);
  const own = rolesOf(choice).filter((role) => !clients.has(role));
  return [
    `groupadd --system ${OPERATORS_GROUP}`,
    ...own.map((role) => `useradd --system --user-group ${nologin} ${USER_PREFIX}${role}`),
    ...[...clients].flatMap(([role, user]) => [
      `groupadd --system ${USER_PREFIX}${role}`,
      `usermod --append --groups ${USER_PREFIX}${role} ${user}`,
    ]),
    `useradd --system --user-group --home-dir /var/lib/callgate --groups ${[...groups, OPERATORS_GROUP].join(",")} ${nologin} callgate`,
    ...choice.operators.map((user) => `usermod --append --groups ${OPERATORS_GROUP} ${user}`),
  ];
}

/** tmpfiles.d(5). `missing`: the roots that are not there yet; one that is there keeps its owner and mode. */
export function tmpfilesText({ providers }: Choice, isMissing: (path: string) => boolean): string {
  const roots = providers.flatMap(({ role, roots: own }) =>
    own
      .filter(({ path }) => isMissing(path) && !HOMES.test(path))
      .map(({ path }) => directoryLine(path, "0750", `${USER_PREFIX}${role}`)),
  );
  return `# The directories of callgate. \`callgate init\` wrote it; systemd-tmpfiles --create makes them. The unit
# makes the first two as well: here they are for callgate check before the first start.
d /run/callgate 0755 callgate callgate
d /var/lib/callgate 0700 callgate callgate
${roots.length === 0 ? "" : `\n# What the providers of files serve and was not there. At each boot it gets this owner and mode again.\n${roots.join("\n")}\n`}`;
}

function directoryLine(path: string, mode: string, user: string): string {
  return `d ${pathWord(path)} ${mode} ${user} ${user}`;
}
