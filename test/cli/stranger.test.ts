// Commands by a user who may not see, or read, what they look at: doctor tells that as unseen, never as a mistake of the
// installation, and it stops nothing else; others say what is in the way. Needs root.

import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import type { Examined } from "../../src/base/findings.ts";
import { runProgram } from "../../src/cli/program.ts";
import { ECHO } from "../daemon/configs.ts";
import { callgate, cleanUp, Daemon, Place, run } from "../daemon/daemon.ts";
import { requireRoot, STRANGER } from "../host/listen_fixture.ts";
import { Desk } from "./desk.ts";

requireRoot();
afterEach(cleanUp);

interface Told {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

/** As that user, after root has run it once, which loads all code: the other may have no right to read this very checkout. */
function asStranger(words: readonly string[], asRootBefore: readonly string[]): Told {
  const module = (name: string) =>
    JSON.stringify(pathToFileURL(join(dirname(callgate()), "../src/cli", name)).href);
  const script = `
    const { runProgram } = await import(${module("program.js")});
    const { processTerminal } = await import(${module("terminal.js")});
    const told = { out: "", err: "" };
    const terminal = Object.assign(processTerminal(), { out: (text) => { told.out += text }, err: (text) => { told.err += text } });
    await runProgram(${JSON.stringify(asRootBefore)}, terminal);
    told.out = told.err = "";
    process.setgroups([]);
    process.setgid(${STRANGER});
    process.setuid(${STRANGER});
    const status = await runProgram(${JSON.stringify(words)}, terminal);
    process.stdout.write(JSON.stringify({ status, ...told }));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    cwd: "/",
  });
  expect(stderr).toBe("");
  return JSON.parse(stdout) as Told;
}

function doctored(words: readonly string[], place: Place): readonly string[] {
  const sound = ["doctor", "--json", "--config", new Place(ECHO).config, "--connector", "/none"];
  const { out } = asStranger(["doctor", "--json", "--config", place.config, ...words], sound);
  const { checks } = JSON.parse(out) as { readonly checks: readonly Examined[] };
  return checks
    .filter(({ check }) => !["node", "clock", "libraries", "units"].includes(check))
    .flatMap(({ check, findings }) => findings.map(({ severity, code }) => `${severity} ${check} ${code}`));
}

const UNREAD = ["users", "sockets", "state", "disk", "store"].map((check) => `unseen ${check} config_needed`);

describe("callgate doctor, by a user who may not look,", () => {
  it.each<[string, (place: Place) => void]>([
    ["a config that they can't read", ({ config }) => chmodSync(config, 0o640)],
    ["a config whose directory keeps them out", ({ directory }) => chmodSync(directory, 0o750)],
  ])("takes %s for no mistake of it, nor its daemon for gone", async (_, close) => {
    const { place } = await Daemon.start(ECHO);
    close(place);
    expect(doctored([], place)).toEqual([
      "unseen config config_unseen",
      ...UNREAD,
      "unseen daemon daemon_unseen",
    ]);
  });

  it("says of sockets, state and disk behind a closed directory that they are unseen", () => {
    const place = new Place("");
    const hidden = join(place.directory, "hidden");
    mkdirSync(hidden, { mode: 0o700 });
    mkdirSync(join(hidden, "below"));
    const paths = '[daemon]\nsockets = "hidden/below/run"\nstate = "hidden/below/state"\n';
    writeFileSync(place.config, `${paths}${ECHO}`);
    const told = doctored([], place).filter((one) => one !== "warning config config_warnings");
    expect(told).toEqual([
      "unseen sockets sockets_unseen",
      "unseen state state_unseen",
      "unseen disk disk_unseen",
      "unseen store store_unseen",
      "unseen daemon daemon_unseen",
    ]);
  });

  it("says of sockets in a directory that they can't enter that they are unseen", async () => {
    const { place } = await Daemon.start(ECHO);
    chmodSync(join(place.directory, "run"), 0o700);
    expect(doctored([], place)).toContain("unseen sockets socket_unseen");
  });

  it("does not take a connector's config that they can't read for one that does not start", () => {
    const place = new Place(ECHO);
    const connector = join(place.directory, "connector.toml");
    writeFileSync(connector, "", { mode: 0o600 });
    const words = ["--connector", connector];
    expect(doctored(words, place)).toContain("unseen secrets secret_unseen");
    chmodSync(connector, 0o644);
    expect(doctored(words, place)).toContain("error secrets connector_mistake");
  });

  it("says that there is no config where they see that there is none", () => {
    const place = new Place(ECHO);
    rmSync(place.config);
    expect(doctored([], place)).toContain("error config config_missing");
  });
});

describe("somebody who may not look at a place", () => {
  it("is not told by init that something is there already, nor by install that nothing is", () => {
    const { directory, config } = new Place(ECHO);
    const hidden = join(directory, "hidden");
    mkdirSync(hidden, { mode: 0o700 });
    const init = asStranger(["init", join(hidden, "new")], ["init", join(directory, "sound")]);
    expect(init).toEqual({
      status: 4,
      out: "",
      err: `callgate: nothing was written: "${hidden}/new" can't be looked at by this user\n`,
    });
    renameSync(config, join(hidden, "callgate.toml"));
    const words = ["install", "--root", directory, "--config"];
    const install = asStranger([...words, "/hidden/callgate.toml"], [...words, "/none"]);
    expect(install.status).toBe(4);
    expect(install.err).toMatch(
      /not readable for this user\ncallgate: nothing was written, since the config can't be used\n$/,
    );
  });

  it("is told by uninstall what they could not remove", async () => {
    const root = new Place("").directory;
    const config = "[roles.operator]\nusers = [0]\noperator = true\n";
    mkdirSync(join(root, "etc/callgate"), { recursive: true });
    writeFileSync(join(root, "etc/callgate/callgate.toml"), config);
    const installed = await run(["install", "--root", root]);
    expect(installed.status, installed.err).toBe(0);
    const words = ["uninstall", "--root", root];
    const { status, out, err } = asStranger(words, [...words, "--dry-run"]);
    expect(status).toBe(4);
    expect(err).toMatch(/callgate\.service" can't be removed \(EACCES\)/);
    expect(out).not.toContain("removed: ");
    const desk = new Desk();
    expect(await runProgram(words, desk)).toBe(0);
    expect(desk.out_).toMatch(/^removed: .*callgate\.service$/m);
    const again = new Desk();
    expect(await runProgram(words, again)).toBe(0);
    expect(again.out_).toContain(`nothing that callgate install has written is in ${root}\n`);
  });
});
