// `callgate doctor` over installations that are really broken, each in one way: a daemon of its own, and files whose owners and
// modes are wrong. What can't be broken on a machine that is in use (its clock, its Node, its kinds of disk) is in
// test/host/doctor.test.ts. Needs root.

import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Examined } from "../../src/base/findings.ts";
import { examineDaemon } from "../../src/cli/doctor_daemon.ts";
import { packageVersion } from "../../src/cli/package_version.ts";
import { runProgram } from "../../src/cli/program.ts";
import { connect } from "../../src/library.ts";
import { openEnvironment } from "../../src/store/lmdb_environment.ts";
import { TABLE } from "../../src/store/store_keys.ts";
import { META } from "../../src/store/stored_meta.ts";
import { FakeBroker, result } from "../client/fake_broker.ts";
import { ECHO } from "../daemon/configs.ts";
import { cleanUp, Daemon, onCleanUp, Place, run } from "../daemon/daemon.ts";
import { GROUP, requireRoot, STRANGER } from "../host/listen_fixture.ts";
import { Desk } from "./desk.ts";

requireRoot();
afterEach(cleanUp);

/** Whose clock is right, or is so much behind. */
class Now extends Desk {
  readonly #behindMs: number;

  constructor(behindMs = 0, types?: readonly undefined[]) {
    super(types);
    this.#behindMs = behindMs;
  }

  override nowMs(): number {
    return Date.now() - this.#behindMs;
  }
}

interface Report {
  readonly status: number;
  readonly checks: readonly (Examined & { readonly status: string })[];
  /** `sockets socket_mode`, of errors, warnings, and what could not be looked at. */
  readonly wrong: readonly string[];
}

/** Of this machine, whatever the broker is like: its Node, its clock's service, and the warnings of a config of tests. */
const OF_MACHINE = [
  "node node_end_of_life",
  "clock clock_unsynchronised",
  "config config_warnings",
  "disk disk_low",
];

async function doctor(place: Place, words: readonly string[] = [], desk = new Now()): Promise<Report> {
  const status = await runProgram(["doctor", "--config", place.config, "--json", ...words], desk);
  const { checks } = JSON.parse(desk.out_) as { readonly checks: Report["checks"] };
  const wrong = checks.flatMap(({ check, findings }) =>
    findings.filter(({ severity }) => severity !== "note").map(({ code }) => `${check} ${code}`),
  );
  return { status, checks, wrong: wrong.filter((one) => !OF_MACHINE.includes(one)) };
}

function finding({ checks }: Report, code: string) {
  const found = checks.flatMap(({ findings }) => findings).find((one) => one.code === code);
  if (found === undefined) throw new Error(`no finding ${code}`);
  return found;
}

/** Runs the remedies, all but what is only told and what needs a service manager. */
function mend(report: Report, code: string): void {
  for (const line of finding(report, code).mend)
    if (!/^(?:#|systemctl|callgate)/.test(line)) execFileSync("sh", ["-c", line]);
}

describe("callgate doctor, over a daemon that is as it should be,", () => {
  it("finds nothing wrong with it, and leaves it as it was", async () => {
    const daemon = await Daemon.start(ECHO);
    const { place } = daemon;
    const files = () => readdirSync(join(place.directory, "state")).toSorted();
    const had = files();
    const report = await doctor(place);
    expect(report).toMatchObject({ status: 0, wrong: [] });
    expect(report.checks.map(({ check }) => check)).toEqual(
      "node libraries config users sockets state disk store clock secrets units daemon".split(" "),
    );
    expect(files()).toEqual(had);
    expect(daemon.count("peer.refused")).toBe(0);
  });

  it("tells it on a terminal as a table, elsewhere in lines", async () => {
    const { place } = await Daemon.start(ECHO);
    const desk = new Now(0, []);
    expect(await runProgram(["doctor", "--config", place.config], desk)).toBe(0);
    expect(desk.out_).toMatch(/^CHECK +STATUS +WHAT\n/);
    expect(desk.out_).toMatch(/^sockets +ok +3 of 3 sockets in /m);
    expect(desk.out_).toMatch(/^12 checks: /m);
    chmodSync(place.socket("agent"), 0o660);
    const lines = new Now();
    expect(await runProgram(["doctor", "--config", place.config], lines)).toBe(0);
    expect(lines.out_).toMatch(
      /^warning sockets: .*agent\.sock has mode 0660 where the config says 0666 \[socket_mode\]$/m,
    );
    expect(lines.out_).toMatch(/^ {4}chmod 0666 \/.*agent\.sock$/m);
    expect(lines.out_).not.toContain("\u001b");
  });
});

describe("callgate doctor names, and its remedy mends,", () => {
  it.each<[string, string, (place: Place) => void]>([
    [
      "a socket that others may use",
      "sockets socket_mode",
      (place) => chmodSync(place.socket("private"), 0o666),
    ],
    [
      "a socket of another group",
      "sockets socket_group",
      (place) => chownSync(place.socket("private"), 0, STRANGER),
    ],
    [
      "a directory of sockets that others write to",
      "sockets sockets_open_to_others",
      (place) => chmodSync(join(place.directory, "run"), 0o777),
    ],
    [
      "a state directory that others enter",
      "state state_open",
      (place) => chmodSync(join(place.directory, "state"), 0o711),
    ],
    ["a config that others write", "config config_open_to_others", (place) => chmodSync(place.config, 0o666)],
    [
      "a socket of no role",
      "sockets socket_foreign",
      (place) => renameSync(place.socket("tools"), join(place.directory, "run", "old.sock")),
    ],
  ])("%s", async (_, wrong, spoil) => {
    const config = `${ECHO}[roles.private]\nusers = [0]\ngroup = ${GROUP}\n`;
    const { place } = await Daemon.start(config);
    expect((await doctor(place)).wrong).toEqual([]);
    spoil(place);
    const report = await doctor(place);
    expect(report.wrong).toContain(wrong);
    mend(report, wrong.split(" ")[1] ?? "");
    expect((await doctor(place)).wrong).not.toContain(wrong);
  });

  it("a socket that is gone, or belongs to somebody else, or is something else", async () => {
    const { place } = await Daemon.start(ECHO);
    rmSync(place.socket("agent"));
    chownSync(place.socket("tools"), STRANGER, 0);
    rmSync(place.socket("operator"));
    writeFileSync(place.socket("operator"), "");
    expect((await doctor(place)).wrong).toEqual(
      expect.arrayContaining(["sockets socket_missing", "sockets socket_owner", "sockets socket_other"]),
    );
  });

  it("a user who is admitted and can't come to the socket", async () => {
    const { place } = await Daemon.start(`${ECHO}[roles.private]\nusers = [${STRANGER}]\n`);
    const report = await doctor(place);
    expect(report.wrong).toEqual(["sockets socket_unreachable"]);
    expect(finding(report, "socket_unreachable").what).toContain(`uid ${STRANGER}`);
    expect(finding(report, "user_unknown").severity).toBe("note");
  });

  it("a directory above the socket that keeps them out", async () => {
    const { place } = await Daemon.start(`${ECHO}[roles.private]\nusers = [${STRANGER}]\ngroup = ${GROUP}\n`);
    chmodSync(join(place.directory, "run"), 0o700);
    const report = await doctor(place);
    expect(finding(report, "socket_unreachable").mend).toEqual([`chmod a+x ${join(place.directory, "run")}`]);
  });
});

describe("callgate doctor, where no daemon runs,", () => {
  it("says so, and names what would keep one of that user from starting", async () => {
    const place = new Place(`${ECHO}[roles.private]\nusers = [0]\ngroup = ${GROUP}\n`);
    chmodSync(place.config, 0o600);
    mkdirSync(join(place.directory, "state"), { mode: 0o700 });
    const report = await doctor(place, ["--user", String(STRANGER)]);
    expect(report.status).toBe(4);
    expect(report.wrong).toEqual([
      "config config_unreadable",
      "users user_not_in_group",
      "state state_owner",
      "daemon daemon_none",
    ]);
    expect(finding(report, "user_not_in_group").mend[0]).toBe(
      `usermod --append --groups ${GROUP} ${STRANGER}`,
    );
  });

  it("has all of a config's mistakes, with their lines, and says what it could not look at for want of it", async () => {
    const place = new Place(`${ECHO}[roles.more]\nuser = 7\n`);
    const report = await doctor(place);
    expect(report.status).toBe(4);
    expect(finding(report, "config_mistake").what).toMatch(/callgate\.toml:\d+:\d+: /);
    expect(report.wrong).toContain("store config_needed");
    const desk = new Now();
    await runProgram(["doctor", "--config", place.config], desk);
    expect(desk.out_).toContain(
      "unseen users, sockets, state, disk, store: not looked at: the config can't be used",
    );
  });

  it("tells some of a config's many mistakes, and how many more there are", async () => {
    const roles = Array.from({ length: 8 }, (_, n) => `[roles.more${n}]\nuser = 7\n`);
    const report = await doctor(new Place(`${ECHO}${roles.join("")}`));
    expect(report.wrong.filter((one) => one === "config config_mistake")).toHaveLength(5);
    expect(finding(report, "config_mistakes").what).toMatch(/ has \d+ more of them$/);
  });

  it("tells that there is no state directory yet, or that its user could not make it", async () => {
    const place = new Place(ECHO);
    expect(finding(await doctor(place), "state_missing").severity).toBe("note");
    const report = await doctor(place, ["--user", String(STRANGER)]);
    expect(finding(report, "state_missing").severity).toBe("warning");
    mend(report, "state_missing");
    expect((await doctor(place, ["--user", String(STRANGER)])).wrong).not.toContain("state state_missing");
  });

  it("says that a config is missing, and refuses a user that nobody is", async () => {
    const place = new Place(ECHO);
    rmSync(place.config);
    expect((await doctor(place)).wrong).toContain("config config_missing");
    const desk = new Now();
    expect(await runProgram(["doctor", "--config", place.config, "--user", "no-such-user"], desk)).toBe(2);
    expect(desk.err_).toContain("--user must be a user of this machine");
  });

  it("tells that nobody is at a socket that somebody names", async () => {
    const place = new Place(ECHO);
    expect((await doctor(place, ["--socket", join(place.directory, "none.sock")])).wrong).toContain(
      "daemon daemon_unreachable",
    );
  });
});

async function stopped(config = ECHO): Promise<Place> {
  const daemon = await Daemon.start(config);
  expect(await daemon.stop()).toBe(0);
  return daemon.place;
}

async function writeNewer(file: string): Promise<void> {
  const environment = openEnvironment(file);
  const newer = Buffer.alloc(4);
  newer.writeUInt32LE(99);
  await environment.put(META.schema, newer);
  await environment.close();
}

describe("callgate doctor, looking into the store,", () => {
  it("reads it as its owner: what the engine makes beside it stays theirs", async () => {
    const place = await stopped();
    const state = join(place.directory, "state");
    rmSync(join(state, "state.mdb-lock"));
    execFileSync("chown", ["-R", `${STRANGER}:${STRANGER}`, state]);
    const report = await doctor(place);
    expect(report.wrong).toEqual(["daemon daemon_none"]);
    for (const name of readdirSync(state)) expect(statSync(join(state, name)).uid).toBe(STRANGER);
    expect(process.geteuid?.()).toBe(0);
  });

  it.each<[string, RegExp, (file: string) => unknown]>([
    ["of a newer version", /a newer callgate has written it \(schema 99/, writeNewer],
    ["cut", /CUT_SHORT|damaged/, (file) => truncateSync(file, 8192)],
    ["something else", /NO_DATABASE/, (file) => writeFileSync(file, Buffer.alloc(65_536))],
  ])("says that it is %s", async (_, words, spoil) => {
    const place = await stopped();
    await spoil(join(place.directory, "state", "state.mdb"));
    const { status, out } = await run(["doctor", "--config", place.config]);
    expect(status).toBe(4);
    expect(out).toMatch(/^error store: .*\[store_unusable\]$/m);
    expect(out).toMatch(words);
  });

  it("says what was planted beside it", async () => {
    const place = await stopped();
    rmSync(join(place.directory, "state", "reserve"));
    symlinkSync("/etc/hostname", join(place.directory, "state", "reserve"));
    const report = await doctor(place);
    expect(report.wrong).toContain("state state_file");
    mend(report, "state_file");
    expect((await doctor(place)).wrong).not.toContain("state state_file");
  });

  it("says that the audit does not hold where somebody wrote into it", async () => {
    const daemon = await Daemon.start(ECHO);
    const { place } = daemon;
    const operator = await connect({ to: { path: daemon.socket("operator") } });
    await operator.call("callgate.freeze", { role: "agent", frozen: true }, { session: "s" }).final;
    await operator.close();
    await daemon.stop();
    const environment = openEnvironment(join(place.directory, "state", "state.mdb"));
    const blocks = { start: Buffer.from([TABLE.auditBlocks]), end: Buffer.from([TABLE.auditBlocks + 1]) };
    const [entry] = [...environment.getRange(blocks)];
    if (entry === undefined) throw new Error("no block of the audit");
    const changed = Buffer.from(entry.value);
    changed.write("9", changed.indexOf('"at_ms":') + 8);
    await environment.put(entry.key, changed);
    await environment.close();
    const report = await doctor(place);
    expect(report.status).toBe(4);
    expect(finding(report, "store_audit_broken").what).toContain("the audit does not hold");
  });

  it("holds the clock against it", async () => {
    const place = await stopped();
    const hour = 3_600_000;
    const report = await doctor(place, [], new Now(hour));
    expect(report.wrong).toContain("clock clock_behind_store");
    expect(finding(report, "clock_behind_store").what).toMatch(/59 min|1 h/);
  });
});

describe("callgate doctor, asking a daemon that runs,", () => {
  it("has another version than the program that is installed: an upgrade waits for a restart", async () => {
    const { place } = await Daemon.start(ECHO);
    const asked = {
      socket: place.socket("operator"),
      operators: [],
      living: "unseen",
      activated: false,
    } as const;
    const about = { ...asked, policy: undefined, config: place.config };
    const { findings } = await examineDaemon({ ...about, version: "9.9.9" });
    expect(findings).toMatchObject([
      { code: "daemon_version", severity: "warning", mend: ["systemctl restart callgate"] },
    ]);
    expect(findings[0]?.what).toMatch(/^the daemon is of version \d+\.\d+\.\d+, this program of 9\.9\.9$/);
    expect((await examineDaemon({ ...about, version: packageVersion() })).findings).toEqual([]);
  });

  const asking = async (broker: FakeBroker) =>
    examineDaemon({
      socket: broker.path,
      operators: [],
      living: 4711,
      activated: false,
      policy: undefined,
      config: "/etc/callgate/callgate.toml",
      version: "1.0.0",
    });

  it.each([
    [{ store: { condition: "failing" } }, ["error daemon_store"]],
    [{ store: { condition: "stalled" } }, ["error daemon_store"]],
    [{ store: { condition: "ok" }, unknown_calls: 2 }, ["warning daemon_unknown_calls"]],
    [{ pending_approvals: 1 }, ["note daemon_waiting"]],
    [{ roles: [{ role: "agent", frozen: false, frozen_sessions: 1 }] }, ["warning daemon_frozen"]],
    [{ version: null }, []],
  ])("hears of %j", async (told, expected) => {
    const broker = await FakeBroker.start();
    onCleanUp(() => broker.remove());
    const examined = asking(broker);
    const peer = await broker.accept();
    const { id, tool } = await peer.request();
    expect(tool).toBe("callgate.status");
    peer.answer(id, result(JSON.stringify({ policy: "p", uptime_ms: 1, ...told })));
    const { findings } = await examined;
    expect(findings.map(({ severity, code }) => `${severity} ${code}`)).toEqual(expected);
  });

  it("tells that it was let go, which is not the same as that nobody is there", async () => {
    const broker = await FakeBroker.start();
    onCleanUp(() => broker.remove());
    const examined = asking(broker);
    (await broker.accept()).kill();
    const { findings } = await examined;
    expect(findings).toMatchObject([{ severity: "unseen", code: "daemon_refuses" }]);
  });

  it("says that its config was changed since, and that a bad one was refused", async () => {
    const daemon = await Daemon.start(ECHO);
    appendFileSync(daemon.place.config, "# changed\n");
    expect((await doctor(daemon.place)).wrong).toEqual(["daemon daemon_not_reloaded"]);
    appendFileSync(daemon.place.config, "[roles.more]\nuser = 7\n");
    daemon.signal("SIGHUP");
    await daemon.event("config.refused");
    const report = await doctor(daemon.place, ["--socket", daemon.socket("operator")]);
    expect(report.wrong).toEqual(expect.arrayContaining(["config config_mistake", "daemon daemon_stale"]));
  });

  it("says what is frozen, and how to let it go on", async () => {
    const daemon = await Daemon.start(ECHO);
    const operator = await connect({ to: { path: daemon.socket("operator") } });
    onCleanUp(() => operator.close());
    await operator.call("callgate.freeze", { role: "agent", frozen: true }, { session: "s" }).final;
    const report = await doctor(daemon.place);
    expect(report.wrong).toEqual(["daemon daemon_frozen"]);
    expect(finding(report, "daemon_frozen").mend).toEqual([
      `callgate freeze agent --thaw --socket ${daemon.socket("operator")}`,
    ]);
  });

  it("says that it does not answer, where it hangs", async () => {
    const daemon = await Daemon.start(ECHO);
    daemon.signal("SIGSTOP");
    onCleanUp(() => daemon.signal("SIGCONT"));
    const report = await doctor(daemon.place);
    expect(report.status).toBe(4);
    expect(report.wrong).toEqual(["daemon daemon_silent"]);
  });

  it("does not ask where it would be refused, which would be told in the audit", async () => {
    const daemon = await Daemon.start(
      ECHO.replace(
        "[roles.operator]\nanyone = true",
        '[roles.operator]\nusers = [1]\nmode = "0660"\ngroup = 1',
      ),
    );
    const report = await doctor(daemon.place);
    expect(report.wrong).toContain("daemon daemon_unseen");
    expect(finding(report, "daemon_unseen").mend[0]).toMatch(
      /^runuser -u daemon -- callgate status --socket /,
    );
    expect(daemon.count("peer.refused")).toBe(0);
  });
});

describe("callgate doctor, where a secret of the connector's is open,", () => {
  it("says so, and never what it is", async () => {
    const place = new Place(ECHO);
    const file = join(place.directory, "connector.toml");
    const secret = join(place.directory, "me.secret");
    await runProgram(["connector", "secret", "--to", secret], new Now());
    writeFileSync(join(place.directory, "key"), "sk-never-shown\n", { mode: 0o644 });
    chmodSync(secret, 0o644);
    writeFileSync(
      file,
      '[connector]\nport = 0\nstate_dir = "cstate"\n[backend]\nkind = "anthropic"\nbase_url = "http://127.0.0.1:9"\ncredential_file = "key"\n[[callers]]\nid = "me"\nsecret_file = "me.secret"\nallowed_models = ["m"]\nmax_output_tokens = 9\n',
    );
    const desk = new Now();
    await runProgram(["doctor", "--config", place.config, "--connector", file], desk);
    expect(desk.out_).toMatch(/^error secrets: .*me\.secret.* can be read by every user: chmod o-r it/m);
    expect(desk.out_).toMatch(/^warning secrets: .*key.* can be read by every user/m);
    expect(desk.out_).not.toContain("sk-never-shown");
  });
});
