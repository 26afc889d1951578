// What the services give up, as lines of their units, from what all share to what one needs more. Every service begins in
// an empty root, and sees of the real one what its unit names; nothing in it can be executed but that.
// Invariant: a service may do no more than its lines say here; what one needs more is added by name, never by leaving
// a line out of what all share.

import type { Assignment } from "./systemd_words.ts";
import { pathWord } from "./systemd_words.ts";

/** How the units start the command. */
export interface Program {
  /** Absolute, as are the others. */
  readonly node: string;
  readonly script: string;
  /** What of the disk the command is: its package, with what it depends on. */
  readonly directories: readonly string[];
}

/** Where a package manager puts Node, and `npm install --global` this package. */
export const USUAL_PROGRAM: Program = {
  node: "/usr/bin/node",
  script: "/usr/lib/node_modules/callgate/dist/bin/callgate.js",
  directories: ["/usr/lib/node_modules/callgate"],
};

/** Whether a path is in somebody's home, where services do not get (`ProtectHome=`). */
export function isInHomes(path: string): boolean {
  return /^\/(?:home|root|run\/user)(?:\/|$)/.test(path);
}

/** Empty, root's, and made by tmpfiles.d: mount points are made in it, and no file is. */
export const ROOT_DIRECTORY = "/run/callgate-root";

/** Where loaders and the C library's files are, on the machines that there are; what is not there is left out. */
const LIBRARIES = [
  ...["/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"],
  ...["/lib/ld-linux-aarch64.so.1", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"],
].map((path) => `-${path}`);

/** Names of users and the time zone, as the C library and Node read them. */
const FACTS = ["/etc/passwd", "/etc/group", "-/etc/ld.so.cache", "-/etc/localtime"];

/** How a name becomes an address. */
const RESOLVING = ["-/etc/resolv.conf", "-/etc/hosts", "-/etc/nsswitch.conf", "-/run/systemd/resolve"];

export interface Visible {
  /** Beside the program: directories and files that it may read. */
  readonly read?: readonly string[];
  readonly write?: readonly string[];
}

/** Of the disk: the program, and what is named. Nothing else is there. */
export function fileSystem(program: Program, { read = [], write = [] }: Visible = {}): readonly Assignment[] {
  const own = [program.node, ...program.directories];
  return [
    [
      "#",
      "An empty directory as root, with what is needed of the real one. (TemporaryFileSystem=/ would do nothing.)",
    ],
    ["RootDirectory", ROOT_DIRECTORY],
    ["BindReadOnlyPaths", words([...own, ...FACTS, ...read])],
    ["BindReadOnlyPaths", LIBRARIES.join(" ")],
    ...(write.length > 0 ? [["BindPaths", words(write)] as const] : []),
    ["NoExecPaths", "/"],
    ["ExecPaths", words(own)],
    ["ExecPaths", LIBRARIES.join(" ")],
    ["ProtectSystem", "strict"],
    ["ProtectHome", "yes"],
    ["PrivateTmp", "yes"],
  ];
}

/** As a line has them; `-` in front of one stays what it is. */
function words(paths: readonly string[]): string {
  return paths
    .map((path) => (path.startsWith("-") ? `-${pathWord(path.slice(1))}` : pathWord(path)))
    .join(" ");
}

/**
 * No one needs more of the kernel than this, but for what runs foreign programs. V8 guards its code with `@pkey`, and
 * writes code and runs it, so `MemoryDenyWriteExecute=` must stay off.
 */
export const CLOSED: readonly Assignment[] = [
  ["NoNewPrivileges", "yes"],
  ["CapabilityBoundingSet", ""],
  ["AmbientCapabilities", ""],
  ["PrivateDevices", "yes"],
  ["DevicePolicy", "closed"],
  ["PrivateIPC", "yes"],
  ["PrivateMounts", "yes"],
  ["ProtectKernelTunables", "yes"],
  ["ProtectKernelModules", "yes"],
  ["ProtectKernelLogs", "yes"],
  ["ProtectControlGroups", "yes"],
  ["ProtectClock", "yes"],
  ["ProtectHostname", "yes"],
  ["ProtectProc", "invisible"],
  ["ProcSubset", "pid"],
  ["RestrictNamespaces", "yes"],
  ["RestrictRealtime", "yes"],
  ["RestrictSUIDSGID", "yes"],
  ["LockPersonality", "yes"],
  ["RemoveIPC", "yes"],
  ["KeyringMode", "private"],
  ["SystemCallArchitectures", "native"],
  ["SystemCallFilter", "@system-service @pkey"],
  ["SystemCallFilter", "~@privileged @resources @setuid @keyring @memlock"],
  ["SystemCallErrorNumber", "EPERM"],
  ["UMask", "0077"],
  ["LimitCORE", "0"],
];

export const NO_NETWORK: readonly Assignment[] = [
  ["PrivateNetwork", "yes"],
  ["IPAddressDeny", "any"],
  ["RestrictAddressFamilies", "AF_UNIX"],
];

export const LOOPBACK: readonly Assignment[] = [
  ["IPAddressDeny", "any"],
  ["IPAddressAllow", "localhost"],
  ["RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6"],
];

export const NETWORK: readonly Assignment[] = [
  ["RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6"],
  ["BindReadOnlyPaths", RESOLVING.join(" ")],
];

/** Programs that somebody else wrote: those of the machine, and what they need to be started. */
export const FOREIGN_PROGRAMS: readonly Assignment[] = [
  ["#", "A server is any program of the machine: it sees those, and none of the machine's data."],
  [
    "BindReadOnlyPaths",
    "-/usr -/bin -/sbin -/lib -/etc/ssl -/etc/ca-certificates -/etc/pki -/etc/alternatives",
  ],
  ["ExecPaths", "-/usr -/bin -/sbin -/lib"],
];

/** For what confines its own children: the namespaces that it makes, and the mounts in them. */
export const CONFINES: readonly Assignment[] = [
  [
    "#",
    "The command keeps its server in namespaces of its own (unshare), and so must be able to make them; the kernel lets it",
  ],
  ["#", "mount a new /proc only where nothing lies over parts of this one, as the four that are off would."],
  ["ProtectKernelTunables", "no"],
  ["ProtectKernelLogs", "no"],
  ["ProtectHostname", "no"],
  ["ProtectProc", "default"],
  ["RestrictNamespaces", "user mnt pid net ipc uts"],
  [
    "SystemCallFilter",
    "@system-service @pkey @mount seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self",
  ],
  ["ProcSubset", "all"],
];

/** All of `lines` but for those whose names `instead` has, and then `instead`. */
export function withInstead(
  lines: readonly Assignment[],
  instead: readonly Assignment[],
): readonly Assignment[] {
  const names = new Set(instead.map(([name]) => name));
  return [...lines.filter(([name]) => !names.has(name)), ...instead];
}
