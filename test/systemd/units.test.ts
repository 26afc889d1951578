import { execFile } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packagedFiles, USUAL_PLACES } from "../../src/cli/systemd_files.ts";
import { daemonUnit } from "../../src/cli/systemd_units.ts";
import { commandWord, INSTANCE, pathWord, readPathWord } from "../../src/cli/systemd_words.ts";
import { describeWith } from "../needs.ts";

const execute = promisify(execFile);
const SYSTEMD = resolve(import.meta.dirname, "../../systemd");

describe("the files in systemd/", () => {
  it("are those that the code writes (npx tsx test/systemd/write_units.ts rewrites them)", () => {
    const found = readdirSync(SYSTEMD, { recursive: true, withFileTypes: true }).filter((one) =>
      one.isFile(),
    );
    const paths = found.map(({ parentPath, name }) => join(parentPath, name).slice(SYSTEMD.length + 1));
    expect(paths.toSorted()).toEqual([...packagedFiles().keys()].toSorted());
    for (const [path, text] of packagedFiles())
      expect(readFileSync(join(SYSTEMD, path), "utf8"), path).toBe(text);
  });

  it("forbid nothing that the runtime needs, and never a file system that systemd would not make", () => {
    for (const [path, text] of packagedFiles()) {
      expect(text, path).not.toMatch(
        /^(?:MemoryDenyWriteExecute|LimitAS|PrivateUsers|TemporaryFileSystem=\/:)/m,
      );
      expect(text, path).not.toMatch(/^RuntimeDirectory=/m); // it would take the sockets' directory over
    }
  });
});

describe("a word of a unit", () => {
  it.each([
    ["/srv/docs", "/srv/docs"],
    ["/srv/a b", '"/srv/a b"'],
    ["100%", "100%%"],
    ["%i", "%%i"],
    ["$HOME", "$$HOME"],
    ['a"b\\c', '"a\\"b\\\\c"'],
  ])("%s is written as %s", (text, word) => {
    expect(commandWord(text)).toBe(word);
  });

  it("has the template's instance where that is meant", () => {
    expect(commandWord(`/x/${INSTANCE}.sock`)).toBe("/x/%i.sock");
  });

  it.each(["/srv/docs", "/srv/a b%", "/srv/%i", '/srv/a"b\\c', "/srv/100%% sure"])(
    "of the path %s is read again",
    (path) => {
      expect(readPathWord(pathWord(path))).toBe(path);
    },
  );

  it("of a path with a space is quoted", () => {
    expect(pathWord("/srv/a b%")).toBe('"/srv/a b%%"');
  });
});

describeWith(["systemd-analyze"], "systemd itself", () => {
  let place: string;
  beforeAll(() => {
    place = mkdtempSync(join(tmpdir(), "callgate-units-"));
    mkdirSync(join(place, "user"));
    for (const [path] of packagedFiles())
      if (!path.includes(".d/")) copyFileSync(join(SYSTEMD, path), join(place, path));
  });
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  const units = [...packagedFiles().keys()].filter((path) => !path.includes(".d/"));
  const services = units.filter((path) => path.endsWith(".service"));
  const inPlace = (unit: string) => join(place, unit.replace("@.", "@one."));

  it.each(units)("finds nothing wrong with %s", async (unit) => {
    // That nobody has installed the package here is not of interest.
    const text = readFileSync(join(SYSTEMD, unit), "utf8").replaceAll("/usr/bin/node", process.execPath);
    writeFileSync(join(place, unit), text);
    const { stdout, stderr } = await execute("systemd-analyze", ["verify", "--man=no", inPlace(unit)]);
    expect(`${stdout}${stderr}`).toBe("");
  });

  async function exposure(path: string): Promise<number> {
    const { stdout } = await execute("systemd-analyze", ["security", "--offline=yes", path]);
    return Number(/Overall exposure level for \S+: ([0-9.]+)/.exec(stdout)?.[1]);
  }

  it("finds the broker's unit as closed as can be", async () => {
    expect(await exposure(join(place, "callgate.service"))).toBeLessThanOrEqual(0.5);
  });

  it("finds the broker's unit no wider where its directories are elsewhere", async () => {
    const places = {
      ...USUAL_PLACES,
      state: "/data/gate",
      sockets: "/data/run",
      config: "/data/etc/callgate.toml",
    };
    mkdirSync(join(place, "else"));
    writeFileSync(join(place, "else/callgate.service"), daemonUnit(places));
    expect(await exposure(join(place, "else/callgate.service"))).toBeLessThanOrEqual(0.5);
  });

  it.each(services.filter((unit) => !unit.startsWith("user/")))(
    "finds %s closed enough for a role",
    async (unit) => {
      expect(await exposure(inPlace(unit))).toBeLessThanOrEqual(2);
    },
  );
});
