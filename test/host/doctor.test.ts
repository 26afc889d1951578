// What `callgate doctor` says of what a machine in use can't be made to be: other Nodes, clocks and kinds of disk; libraries that
// do not load, in a copy of the package without their machine code; a disk of its own that is full or read-only. Needs root.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, inject, it } from "vitest";
import type { Examined } from "../../src/base/findings.ts";
import { judgeDisk, mountOf } from "../../src/host/doctor_disk.ts";
import { examineNode, NODE_MIN } from "../../src/host/doctor_node.ts";
import { holderOf } from "../../src/host/doctor_place.ts";
import { examineClock } from "../../src/host/doctor_state.ts";
import { credentialPath, stateOf } from "../../src/host/doctor_systemctl.ts";
import { examineUnits } from "../../src/host/doctor_units.ts";
import { barrier, identityOfProcess, readAccounts, WANTED } from "../../src/host/doctor_users.ts";
import { describeWith } from "../needs.ts";
import { cleanUp, onCleanUp, requireRoot, STRANGER, temporaryDirectory } from "./listen_fixture.ts";

requireRoot();
afterEach(cleanUp);

const codes = ({ findings }: Pick<Examined, "findings">) =>
  findings.map(({ severity, code }) => `${severity} ${code}`);
const AT = Date.UTC(2026, 10, 30);

describe("a Node", () => {
  it.each([
    ["v18.20.8", "error node_too_old"],
    ["v20.18.3", "error node_too_old"],
    ["v20.20.2", "warning node_end_of_life"],
    ["v23.1.0", "warning node_end_of_life"],
    ["v25.0.0", "warning node_end_of_life"],
  ])("%s is told as %s", (version, wrong) => {
    expect(codes(examineNode(version, AT, undefined))).toEqual([wrong]);
  });

  it.each(["v22.21.0", "v24.11.0", "v26.0.0", "v31.0.0"])("%s is fine", (version) => {
    expect(codes(examineNode(version, AT, undefined))).toEqual([]);
  });

  it("is warned of in the last three months of its line", () => {
    const end = Date.UTC(2027, 3, 30);
    expect(codes(examineNode("v22.21.0", end - 91 * 86_400_000, undefined))).toEqual([]);
    expect(codes(examineNode("v22.21.0", end - 89 * 86_400_000, undefined))).toEqual([
      "warning node_ends_soon",
    ]);
  });

  it("of a daemon is another one, or was replaced since that started", () => {
    const directory = temporaryDirectory();
    const own = join(directory, "sleeper");
    copyFileSync("/bin/sleep", own);
    const daemon = spawn(own, ["1000"]);
    onCleanUp(() => daemon.kill("SIGKILL"));
    expect(codes(examineNode("v24.11.0", AT, daemon.pid))).toEqual(["note node_other"]);
    rmSync(own);
    expect(codes(examineNode("v24.11.0", AT, daemon.pid))).toEqual(["warning node_replaced"]);
  });

  it("runs a program that was replaced since it started", async () => {
    const script = join(temporaryDirectory(), "callgate.js");
    writeFileSync(script, "setInterval(() => {}, 1000); console.log(1);");
    const daemon = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "ignore"] });
    onCleanUp(() => daemon.kill("SIGKILL"));
    await once(daemon.stdout, "data");
    const found = () => codes(examineNode("v24.11.0", AT, daemon.pid));
    expect(found()).toEqual([]);
    // The kernel's clocks are compared to within two seconds: what is replaced later than that is seen.
    while (found().length === 0) {
      writeFileSync(script, "");
      await setImmediate();
    }
    expect(found()).toEqual(["warning program_replaced"]);
  });

  it("is too old exactly where the package says so", () => {
    const { engines } = JSON.parse(readFileSync("package.json", "utf8")) as {
      readonly engines: { readonly node: string };
    };
    expect(engines.node).toBe(`>=${NODE_MIN.major}.${NODE_MIN.minor}`);
  });
});

describe("a clock", () => {
  it("is wrong where it is behind the store, was never set, or nobody keeps it right", () => {
    expect(codes(examineClock(AT, AT + 1000, 5))).toEqual([]);
    expect(codes(examineClock(AT, AT + 60_000, 5))).toEqual(["error clock_behind_store"]);
    expect(codes(examineClock(1000, undefined, undefined))).toEqual(["error clock_unset"]);
    expect(codes(examineClock(AT, undefined, 16_000_000))).toEqual(["warning clock_unsynchronised"]);
  });
});

const MOUNTS = `21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
22 21 0:21 / /var rw - nfs4 server:/var rw
23 22 0:22 / /var/lib rw - ext4 /dev/vdb ro
24 21 0:23 / /srv/with\\040space rw - fuse.sshfs there: rw
25 21 0:24 / /varied rw - tmpfs tmpfs rw
26 21 0:25 / /box rw - overlay overlay rw`;
const ROOM = { freeBytes: 1e10, bytes: 1e11, freeFiles: undefined };

describe("a disk", () => {
  it.each([
    ["/state", "/", []],
    ["/var/state", "/var", ["error disk_remote"]],
    ["/var/lib/callgate", "/var/lib", ["error disk_read_only"]],
    ["/srv/with space/state", "/srv/with space", ["error disk_remote"]],
    ["/varied/x", "/varied", ["warning disk_passing"]],
    ["/various", "/", []],
    ["/box", "/box", ["warning disk_passing"]],
  ])("of %s is what is mounted at %s", (path, point, wrong) => {
    const mount = mountOf(MOUNTS, path);
    expect(mount?.point).toBe(point);
    expect(codes(judgeDisk(path, mount, ROOM))).toEqual(wrong);
  });

  it("is nearly full, full, or out of files", () => {
    expect(codes(judgeDisk("/s", undefined, { ...ROOM, freeBytes: 2e8 }))).toEqual(["warning disk_low"]);
    expect(codes(judgeDisk("/s", undefined, { ...ROOM, freeBytes: 1e6 }))).toEqual(["error disk_full"]);
    expect(codes(judgeDisk("/s", undefined, { ...ROOM, freeFiles: 3 }))).toEqual(["error disk_no_files"]);
  });
});

/** The compiled command, as somebody has it who installed the package; `without`: packages whose files are missing. */
function installed(without: RegExp): string {
  const compiled = inject("compiled");
  if ("fault" in compiled) throw new Error(compiled.fault);
  const directory = mkdtempSync(join(tmpdir(), "callgate-installed-"));
  onCleanUp(() => rmSync(directory, { recursive: true, force: true }));
  for (const name of ["bin", "src", "package.json"])
    cpSync(join(compiled.directory, name), join(directory, name), { recursive: true });
  const from = join(process.cwd(), "node_modules");
  const link = (name: string) => {
    if (!without.test(name)) symlinkSync(join(from, name), join(directory, "node_modules", name));
  };
  mkdirSync(join(directory, "node_modules"));
  for (const name of readdirSync(from)) {
    if (!name.startsWith("@")) link(name);
    else {
      mkdirSync(join(directory, "node_modules", name));
      for (const scoped of readdirSync(join(from, name))) link(join(name, scoped));
    }
  }
  return join(directory, "bin/callgate.js");
}

function doctor(program: string, ...words: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, "doctor", ...words], {
    encoding: "utf8",
  });
  return { status, out: stdout, err: stderr };
}

describe("a package whose machine code is not there", () => {
  it.each(["koffi", "lmdb"])(
    "is told of, and the rest is looked at all the same, where %s does not load",
    (library) => {
      const program = installed(new RegExp(`^${library}$`));
      const { status, out, err } = doctor(program, "--config", "examples/try.toml");
      expect(err).toBe("");
      expect(status).toBe(4);
      expect(out).toMatch(
        new RegExp(`^error libraries: ${library} does not work on this machine \\(linux `, "m"),
      );
      expect(out).toMatch(/^12 checks: 1 error/m);
    },
  );
});

const CONFIG = `[daemon]
sockets = "run"
state = "disk/state"
[roles.operator]
anyone = true
operator = true
`;

describeWith(["mount", "umount"], "a disk of its own", () => {
  it("is told of where it is full, and where it is read-only", () => {
    const place = temporaryDirectory();
    const disk = join(place, "disk");
    mkdirSync(disk);
    writeFileSync(join(place, "callgate.toml"), CONFIG, { mode: 0o644 });
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m,mode=0755", "tmpfs", disk]);
    onCleanUp(() => execFileSync("umount", ["-l", disk]));
    mkdirSync(join(disk, "state"), { mode: 0o700 });
    const program = installed(/^$/);
    expect(doctor(program, "--config", join(place, "callgate.toml")).out).toMatch(
      /^error disk: 8 MiB are left for .*\[disk_full\]$/m,
    );
    execFileSync("mount", ["-o", "remount,ro", disk]);
    const { out } = doctor(program, "--config", join(place, "callgate.toml"));
    expect(out).toMatch(/^error disk: .* is mounted read-only .*\[disk_read_only\]$/m);
    expect(out).toContain(`    mount -o remount,rw ${disk}\n`);
  });
});

describe("who holds a lock", () => {
  it("is in the kernel's table, by the file's number alone", () => {
    const table =
      "1: FLOCK  ADVISORY  WRITE 815 fe:00:4711 0 EOF\n2: POSIX  ADVISORY  WRITE 9 fe:00:4712 0 EOF\n";
    expect(holderOf(table, 4711)).toBe(815);
    expect(holderOf(table, 4712)).toBeUndefined();
    expect(holderOf(table, 471)).toBeUndefined();
  });
});

describe("who somebody is", () => {
  const accounts = readAccounts(
    "callgate:x:998:998::/:/x\nagent:x:1001:1001::/:/x\n",
    "callgate:x:998:\nagents:x:2000:agent,callgate\nodd line\n",
  );

  it("comes with the groups that list them, and with a number alone where nobody has it", () => {
    expect([...accounts.identity(998).gids].toSorted()).toEqual([2000, 998]);
    expect(accounts.userText(998)).toBe("callgate (uid 998)");
    expect(accounts.userText(7)).toBe("uid 7");
    expect(identityOfProcess(process.pid)?.uid).toBe(process.geteuid?.());
  });

  it("decides whether modes let them in", () => {
    const directory = temporaryDirectory();
    const file = join(directory, "file");
    writeFileSync(file, "", { mode: 0o640 });
    const stranger = { uid: STRANGER, gids: new Set<number>() };
    expect(barrier(file, stranger, WANTED.read)).toBe(file);
    expect(barrier(file, { uid: STRANGER, gids: new Set([0]) }, WANTED.read)).toBeUndefined();
    expect(barrier(join(directory, "none"), stranger, WANTED.read)).toBeUndefined();
  });
});

describe("a unit", () => {
  const unitsOf = (unit: ReturnType<typeof stateOf>) => ({
    absent: undefined,
    units: [unit],
    credentials: [],
    daemonUser: undefined,
  });
  const shown = (changes: string) =>
    stateOf(
      `Id=callgate.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=no\nNRestarts=0\n${changes}`,
    );

  it.each([
    ["", []],
    ["ActiveState=failed\nResult=exit-code\nExecMainStatus=78", ["error unit_failed"]],
    ["LoadState=masked", ["warning unit_masked"]],
    ["LoadState=bad-setting", ["error unit_broken"]],
    ["LoadState=not-found", ["error unit_gone"]],
    ["UnitFileState=disabled", ["warning unit_not_enabled"]],
    ["UnitFileState=disabled\nActiveState=inactive", ["note unit_not_enabled"]],
    ["NeedDaemonReload=yes", ["warning unit_changed"]],
    ["NRestarts=9", ["warning unit_restarts"]],
  ])("that says %j is told as %j", (changes, wrong) => {
    const names = new Set(changes.split("\n").map((line) => line.split("=")[0]));
    const { load } = shown("");
    expect(load).toBe("loaded");
    const base =
      "Id=callgate.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=no\nNRestarts=0";
    const lines = base.split("\n").filter((line) => !names.has(line.split("=")[0]));
    const unit = stateOf([...lines, changes].join("\n"));
    expect(codes(examineUnits(unitsOf(unit), false))).toEqual(wrong);
  });

  it("of a connector that nobody has a config for may be left out", () => {
    const text = "LoadState=loaded\nActiveState=inactive\nUnitFileState=disabled";
    const unit = stateOf(`Id=callgate-connector.service\n${text}`);
    expect(codes(examineUnits(unitsOf(unit), false))).toEqual([]);
    expect(codes(examineUnits(unitsOf(unit), true))).toEqual(["note unit_not_enabled"]);
  });

  it("hands over credentials by their paths, and listens on paths", () => {
    expect(credentialPath("LoadCredential=key:/etc/callgate/key")).toEqual(["/etc/callgate/key"]);
    expect(credentialPath("LoadCredential=key")).toEqual([]);
    expect(credentialPath("LoadCredential=key:/etc/%i/key")).toEqual([]);
    expect(shown("Listen=/run/callgate/a.sock (Stream)").listens).toEqual(["/run/callgate/a.sock"]);
  });
});
