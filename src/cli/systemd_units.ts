// The units of the daemon and of what runs beside it, as texts: the daemon, a socket a role, and a template for each
// kind of program that is a role. `systemd/` has them as they are for the usual places; `callgate install` writes them
// for this machine, with what a role is given in a drop-in beside its template.
// Invariant: one user a unit, and each unit sees and may do what its program needs.

import {
  CLOSED,
  CONFINES,
  FOREIGN_PROGRAMS,
  fileSystem,
  LOOPBACK,
  NETWORK,
  NO_NETWORK,
  type Program,
  type Visible,
  withInstead,
} from "./systemd_sandbox.ts";
import { type Assignment, CREDENTIALS, commandLine, INSTANCE, section, unitText } from "./systemd_words.ts";

/** Where the parts of one installation are. */
export interface Places {
  readonly program: Program;
  /** The daemon's config, in a directory of its own. Absolute, as are the others. */
  readonly config: string;
  readonly sockets: string;
  readonly state: string;
  /** Directories that the config's schemas are in, beside its own. */
  readonly schemas: readonly string[];
  /** How long the daemon may need to stop, in seconds. */
  readonly stopSeconds: number;
}

export const CONFIG_DIRECTORY = "/etc/callgate";
export const STATE_DIRECTORY = "/var/lib/callgate";
export const SOCKETS_DIRECTORY = "/run/callgate";
export const USER = "callgate";
/** In front of a role's name: the name of its user. */
export const USER_PREFIX = "callgate-";
export const OPERATORS_GROUP = "callgate-operators";

/** A program that can't go on begins anew, for as long as it takes; nobody's socket fails meanwhile. */
const ALWAYS: readonly Assignment[] = [
  ["Restart", "always"],
  ["RestartSec", "200ms"],
];

const MULTI_USER = section("Install", [["WantedBy", "multi-user.target"]]);

export function startLine(program: Program, ...words: readonly string[]): Assignment {
  return ["ExecStart", commandLine([program.node, program.script, ...words])];
}

export function daemonUnit(places: Places): string {
  const { program, config, sockets, state } = places;
  // All of /etc: a reload looks users up, and whoever adds one puts a new file in the place of the old one.
  const configs = [directoryOf(config), ...places.schemas].filter((one) => !one.startsWith("/etc/"));
  const read = ["/etc", ...configs, sockets, "/run/systemd/notify"];
  const isUsual = state === STATE_DIRECTORY;
  const disk = fileSystem(program, { read, ...(isUsual ? {} : { write: [state] }) });
  return unitText(
    `The broker. It has no network, starts no program, and sees of the disk its program, its config and its state.
Roles' sockets are made by callgate-role@ROLE.socket and handed over, so they outlive it.`,
    section("Unit", [
      ["Description", "callgate, the gate through which the tool calls of agents pass"],
      ["#", "However often it ends: a limit would close the sockets as well."],
      ["StartLimitIntervalSec", "0"],
    ]),
    section("Service", [
      ["Type", "notify"],
      ["NotifyAccess", "main"],
      ["User", USER],
      ["Group", USER],
      startLine(program, "serve", "--config", config),
      ["RootDirectoryStartOnly", "yes"],
      ["#", "Reads the config again; a faulty one changes nothing, and the status says so."],
      ["ExecReload", "+/bin/kill -HUP $MAINPID"],
      ...ALWAYS,
      ["#", "It says that its main loop turns, twice in this time."],
      ["WatchdogSec", "15"],
      ["TimeoutStartSec", "60"],
      ["#", "It asks for more by itself where drain_timeout is longer."],
      ["TimeoutStopSec", String(places.stopSeconds)],
      ["SyslogIdentifier", "callgate"],
      ["SyslogLevelPrefix", "yes"],
      ...(isUsual ? STATE_LINES : []),
      ["#", "A connection is a descriptor. Of address space the mapped store needs much: no LimitAS=."],
      ["LimitNOFILE", "65536"],
      ["TasksMax", "64"],
      ["", ""],
      ...disk,
      ["InaccessiblePaths", "-/dev/shm"],
      ...NO_NETWORK,
      ...CLOSED,
    ]),
    MULTI_USER,
  );
}

const STATE_LINES: readonly Assignment[] = [
  ["StateDirectory", "callgate"],
  ["StateDirectoryMode", "0700"],
];

export function socketTemplate({ sockets }: Pick<Places, "sockets">): string {
  return unitText(
    `The socket of one role, which the daemon is handed under the role's name: systemctl enable --now
callgate-role@ROLE.socket. The role's user gets through by its group; whoever gets through is still looked at.`,
    section("Unit", [["Description", "callgate: the socket of role %i"]]),
    section("Socket", [
      ["ListenStream", `${ofSpecifiers(sockets)}/%i.sock`],
      ["FileDescriptorName", "%i"],
      ["Service", "callgate.service"],
      ["SocketUser", USER],
      ["SocketGroup", `${USER_PREFIX}%i`],
      ["SocketMode", "0660"],
      ["DirectoryMode", "0755"],
      ["Backlog", "4096"],
      ["#", "Nothing closes it: callers wait in it while the daemon is started."],
      ["TriggerLimitIntervalSec", "0"],
      ["RemoveOnStop", "yes"],
    ]),
    section("Install", [["WantedBy", "sockets.target"]]),
  );
}

interface RoleUnit {
  readonly about: string;
  readonly description: string;
  readonly words: readonly string[];
  /** Instead of the command with its words. */
  readonly start?: readonly string[];
  readonly visible?: Visible;
  /** Its own lines, in front of what keeps it in. */
  readonly own?: readonly Assignment[];
  readonly network: readonly Assignment[];
  /** In place of lines of `CLOSED`. */
  readonly instead?: readonly Assignment[];
  readonly foreign?: readonly Assignment[];
}

function roleUnit({ program, sockets }: Places, unit: RoleUnit): string {
  const { about, description, words, visible = {}, own = [], network, instead = [], foreign = [] } = unit;
  const disk = fileSystem(program, { ...visible, read: [sockets, ...(visible.read ?? [])] });
  return unitText(
    about,
    section("Unit", [
      ["Description", description],
      ["Wants", "callgate-role@%i.socket"],
      ["After", "callgate-role@%i.socket callgate.service"],
      ["StartLimitIntervalSec", "0"],
    ]),
    section("Service", [
      ["Type", "exec"],
      ["#", "By this user the broker knows it. Nothing else may run as it."],
      ["User", `${USER_PREFIX}%i`],
      ["Group", `${USER_PREFIX}%i`],
      unit.start === undefined ? startLine(program, ...words) : ["ExecStart", commandLine(unit.start)],
      ...ALWAYS,
      ["#", "It is not told what to serve, or not rightly: trying again changes nothing."],
      ["RestartPreventExitStatus", "2"],
      ["SyslogIdentifier", "callgate-%i"],
      ...own,
      ["", ""],
      ...disk,
      ...foreign,
      ...network,
      ...withInstead(CLOSED, instead),
    ]),
    MULTI_USER,
  );
}

function atItsSocket({ sockets }: Places): readonly string[] {
  return ["--socket", `${sockets}/${INSTANCE}.sock`];
}

export function filesTemplate(places: Places): string {
  return roleUnit(places, {
    about: `The files provider as role %i, which sees the directories that a drop-in names and no others. callgate install writes one:

    callgate install --files ROLE=trusted:/srv/docs`,
    description: "callgate: files, as role %i",
    words: ["role", "files", ...atItsSocket(places)],
    network: NO_NETWORK,
  });
}

/** Of a server that is run here; one with a URL needs none of it but the network. */
export function mcpTemplate(places: Places): string {
  return roleUnit(places, {
    about: `An MCP server behind the gate, as role %i: what it runs is in a drop-in. callgate install writes one:

    callgate install --mcp ROLE -- npx -y @modelcontextprotocol/server-memory

It has no network (--network gives it one), and a directory of its own to write to, /var/lib/callgate-%i, which is its home.`,
    description: "callgate: an MCP server, as role %i",
    words: ["mcp", "provide", ...atItsSocket(places), "--prefix", `${INSTANCE}.`],
    own: OWN_DIRECTORY,
    network: NO_NETWORK,
    instead: CONFINES,
    foreign: FOREIGN_PROGRAMS,
  });
}

const OWN_DIRECTORY: readonly Assignment[] = [
  ["StateDirectory", "callgate-%i"],
  ["StateDirectoryMode", "0700"],
  ["WorkingDirectory", "%S/callgate-%i"],
  ["Environment", "HOME=%S/callgate-%i"],
  ["KillMode", "control-group"],
];

export function modelTemplate(places: Places): string {
  return roleUnit(places, {
    about: `Turns of a model as role %i, by the connector of this machine. Its secret is a credential of this unit: make it with
callgate connector secret --to /etc/callgate/%i.secret, and name it among the connector's callers.`,
    description: "callgate: turns of a model, as role %i",
    words: [
      ...["role", "model", ...atItsSocket(places)],
      ...["--caller", INSTANCE, "--secret-file", `${CREDENTIALS}/secret`],
    ],
    own: [["LoadCredential", `secret:${CONFIG_DIRECTORY}/%i.secret`]],
    network: LOOPBACK,
  });
}

/** Found as `callgate-ROLE` among the machine's programs. */
export function programTemplate(places: Places): string {
  return roleUnit(places, {
    about: `A program of your own as role %i: it is started as callgate-ROLE, in /usr/local/bin or elsewhere in the path; a drop-in (systemctl
edit callgate-program@ROLE) may set another ExecStart=, and name more that it needs. It finds the broker by CALLGATE_SOCKET; docs/wire.md says what is spoken there.`,
    description: "callgate: a program of the owner's, as role %i",
    words: [],
    start: ["/usr/bin/env", `${USER_PREFIX}${INSTANCE}`],
    own: [
      ["Environment", `CALLGATE_SOCKET=${ofSpecifiers(places.sockets)}/%i.sock`],
      ...OWN_DIRECTORY.filter(([name]) => name !== "Environment"),
    ],
    network: NO_NETWORK,
    foreign: FOREIGN_PROGRAMS,
  });
}

export function connectorUnit(program: Program): string {
  return unitText(
    `The model connector: it alone holds the provider's key, which systemd hands to this unit and to no other. In its config,
credential = "key" is /etc/callgate/connector.key, and secret_credential = "callers_NAME" is /etc/callgate/connector.callers/NAME.`,
    section("Unit", [
      ["Description", "callgate: the model connector"],
      ["StartLimitIntervalSec", "0"],
    ]),
    section("Service", [
      ["Type", "notify"],
      ["NotifyAccess", "main"],
      ["User", "callgate-connector"],
      ["Group", "callgate-connector"],
      startLine(program, "connector", "serve", "--config", `${CONFIG_DIRECTORY}/connector.toml`),
      ["LoadCredential", `key:${CONFIG_DIRECTORY}/connector.key`],
      ["LoadCredential", `callers:${CONFIG_DIRECTORY}/connector.callers`],
      ...ALWAYS,
      ["WatchdogSec", "15"],
      ["TimeoutStopSec", "60"],
      ["SyslogIdentifier", "callgate-connector"],
      ["StateDirectory", "callgate-connector"],
      ["StateDirectoryMode", "0700"],
      ["LimitNOFILE", "65536"],
      ["", ""],
      ...fileSystem(program, { read: [CONFIG_DIRECTORY, "/run/systemd/notify"] }),
      ...NETWORK,
      ...CLOSED,
    ]),
    MULTI_USER,
  );
}

/** For a user of the machine who operates it; the page is for that user alone. */
export function consoleTemplate({ program, sockets }: Places): string {
  return unitText(
    `The console, for the operator whose user name is the instance: systemctl enable --now callgate-console@alice. Its login link
is in the journal: journalctl -u callgate-console@alice -o cat. The user's own manager has it in systemd/user.`,
    section("Unit", [
      ["Description", "callgate console of %i"],
      ["Wants", "callgate-role@operator.socket"],
      ["After", "callgate-role@operator.socket callgate.service"],
      ["StartLimitIntervalSec", "0"],
    ]),
    section("Service", [
      ["Type", "exec"],
      ["User", "%i"],
      startLine(program, "console", "--socket", `${sockets}/operator.sock`),
      ...ALWAYS,
      ["RestartPreventExitStatus", "2 4"],
      ["SyslogIdentifier", "callgate-console"],
      ["", ""],
      ...fileSystem(program, { read: [sockets] }),
      ...LOOPBACK,
      ["#", "Who is at the other end of a connection is in /proc/net."],
      ...withInstead(CLOSED, [["ProcSubset", "all"]]),
    ]),
    MULTI_USER,
  );
}

/** A unit of the operator's own service manager, which can close less: it has no rights to give up. */
export function consoleUserUnit({ program, sockets }: Places): string {
  return unitText(
    `The console, as a service of the operator who starts it: systemctl --user enable --now callgate-console. Its login link is in
that user's journal: journalctl --user -u callgate-console -o cat`,
    section("Unit", [["Description", "callgate console"]]),
    section("Service", [
      ["Type", "exec"],
      startLine(program, "console", "--socket", `${sockets}/operator.sock`),
      ...ALWAYS,
      ["RestartPreventExitStatus", "2 4"],
      ["NoNewPrivileges", "yes"],
      ["RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6"],
      ["RestrictNamespaces", "yes"],
      ["RestrictRealtime", "yes"],
      ["RestrictSUIDSGID", "yes"],
      ["LockPersonality", "yes"],
      ["SystemCallArchitectures", "native"],
      ["SystemCallFilter", "@system-service @pkey"],
      ["SystemCallErrorNumber", "EPERM"],
      ["UMask", "0077"],
      ["LimitCORE", "0"],
    ]),
    section("Install", [["WantedBy", "default.target"]]),
  );
}

/** In a line that is one value, whatever is in it. */
function ofSpecifiers(path: string): string {
  return path.replaceAll("%", "%%");
}

export function directoryOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}
