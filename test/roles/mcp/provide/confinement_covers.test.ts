import { mkdirSync, mkdtempSync, realpathSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { cannotRun } from "../../../../src/roles/mcp/provide/confinement.ts";
import {
  coversOf,
  HeldDirectory,
  parseMounts,
  placesOf,
} from "../../../../src/roles/mcp/provide/confinement_covers.ts";

function temporary(): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "callgate-covers-")));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

describe("where a directory shows", () => {
  const mounts = parseMounts(
    [
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw",
      "23 22 0:25 / /run rw - tmpfs tmpfs rw",
      "24 22 0:25 /callgate /srv/gate rw - tmpfs tmpfs rw",
      "25 22 0:25 / /mnt/with\\040space rw - tmpfs tmpfs rw",
      "26 22 0:25 /callgate/fs.sock /home/me/fs.sock rw - tmpfs tmpfs rw",
      "27 22 0:26 / /other rw - tmpfs tmpfs rw",
      "28 22 0:25 /callgated /srv/near rw - tmpfs tmpfs rw",
      "",
    ].join("\n"),
  );

  it("is everywhere that a mount shows it, what lies above it, or a part of it", () => {
    expect(placesOf("/run/callgate", mounts)).toEqual([
      { path: "/run/callgate", inside: false },
      { path: "/srv/gate", inside: false },
      { path: "/mnt/with space/callgate", inside: false },
      { path: "/home/me/fs.sock", inside: true },
    ]);
  });

  it("is found from each of its places", () => {
    const paths = placesOf("/srv/gate", mounts).map(({ path }) => path);
    expect(paths).toEqual(["/srv/gate", "/run/callgate", "/mnt/with space/callgate", "/home/me/fs.sock"]);
  });

  it("is only there where no mount shows it", () => {
    expect(placesOf("/etc/callgate", mounts)).toEqual([{ path: "/etc/callgate", inside: false }]);
    expect(placesOf("/etc", [])).toEqual([{ path: "/etc", inside: false }]);
  });
});

describe("what is covered", () => {
  it("is a directory once, not what lies in it too", () => {
    const home = temporary();
    mkdirSync(join(home, "in"));
    writeFileSync(join(home, "in", "file"), "");
    writeFileSync(join(home, "file"), "");
    const paths = [join(home, "in"), join(home, "in", "file"), join(home, "file"), join(home, "in")];
    const covers = coversOf({ socket: undefined, paths, uid: 4_000_000 });
    expect(covers).toMatchObject({
      value: { directories: [join(home, "in")], files: [join(home, "file")], socketDirectory: undefined },
    });
  });

  it("is a fault where it is not there; where the sockets are not there yet it may be otherwise later", () => {
    const home = temporary();
    const gone = coversOf({ socket: undefined, paths: [join(home, "no")], uid: 4_000_000 });
    expect(gone).toMatchObject({ fault: { passes: false } });
    const early = coversOf({ socket: join(home, "run", "a.sock"), paths: [], uid: 4_000_000 });
    expect(early).toMatchObject({ fault: { passes: true } });
  });

  it("is seen not to be there any more, though another directory has its name", () => {
    const home = temporary();
    const run = join(home, "run");
    mkdirSync(run);
    const held = new HeldDirectory(run);
    onTestFinished(() => held.release());
    expect(held.isThere()).toBe(true);
    rmdirSync(run);
    expect(held.isThere()).toBe(false);
    mkdirSync(run);
    expect(held.isThere()).toBe(false);
  });
});

describe("a command", () => {
  const env = { PATH: "/nowhere:/usr/bin:/bin" };

  it.each([
    ["sh", undefined],
    ["/bin/sh", undefined],
    ["/etc/passwd", "EACCES"],
    ["/etc", "EACCES"],
    ["/etc/passwd/sh", "ENOENT"],
    ["no-such-program", "ENOENT"],
    ["", "EACCES"],
  ])("%j can be run, or else it is said why not", (command, why) => {
    expect(cannotRun({ command, args: [], env })).toBe(why);
  });

  it("is looked for where it is to run", () => {
    const home = temporary();
    writeFileSync(join(home, "own"), "#!/bin/sh\n", { mode: 0o755 });
    expect(cannotRun({ command: "./own", args: [], env, cwd: home })).toBeUndefined();
    expect(cannotRun({ command: "./own", args: [], env, cwd: join(home, "own") })).toBe(
      "its --cwd is no directory",
    );
  });
});
