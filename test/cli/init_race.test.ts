// `callgate init` beside somebody who may write to the directory, and is faster: whatever they put in the place of what was
// just made, nothing elsewhere is written or given another mode.

import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { writePlan } from "../../src/cli/init_write.ts";

/** Run by the attacker after each step that names a path. */
const race = vi.hoisted(() => ({ after: (_: string): void => undefined }));

vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  const raced =
    <A extends unknown[], R>(step: (...args: A) => R) =>
    (...args: A): R => {
      const result = step(...args);
      if (typeof args[0] === "string") race.after(args[0]);
      return result;
    };
  return {
    ...real,
    writeFileSync: raced(real.writeFileSync),
    openSync: raced(real.openSync),
    mkdirSync: raced(real.mkdirSync),
  };
});

let place: string;
const at = (...names: string[]) => join(place, ...names);

beforeEach(() => {
  place = fs.mkdtempSync(join(tmpdir(), "callgate-init-race-"));
  fs.mkdirSync(at("x"));
  fs.writeFileSync(at("victim"), "theirs", { mode: 0o600 });
  fs.mkdirSync(at("home"), { mode: 0o700 });
});

afterEach(() => {
  race.after = () => undefined;
  fs.rmSync(place, { recursive: true, force: true });
});

/** Puts a link to the target where that was just made, once. */
function swap(made: string, target: string): void {
  race.after = (path) => {
    if (path !== made) return;
    race.after = () => undefined;
    fs.rmSync(made, { recursive: true });
    fs.symlinkSync(target, made);
  };
}

const mode = (path: string) => fs.statSync(path).mode & 0o7777;

it("writes to no file by a link that took the place of its own", () => {
  swap(at("x/config"), at("victim"));
  writePlan(at("x"), 0o755, [{ path: "config", mode: 0o644, text: "ours", about: "" }]);
  expect(fs.lstatSync(at("x/config")).isSymbolicLink()).toBe(true); // the attacker was fast enough
  expect([fs.readFileSync(at("victim"), "utf8"), mode(at("victim"))]).toEqual(["theirs", 0o600]);
});

it("opens no directory to others by a link that took the place of its own", () => {
  swap(at("x/systemd"), at("home"));
  const written = writePlan(at("x"), 0o755, [{ path: "systemd", mode: 0o755, about: "" }]);
  expect([written.ok, mode(at("home"))]).toEqual([false, 0o700]);
});
