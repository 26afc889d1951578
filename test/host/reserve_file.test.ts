import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RESERVE_BYTES, reserveFile } from "../../src/host/reserve_file.ts";

let place: string;
const undo: (() => unknown)[] = [];
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "callgate-reserve-"));
  undo.push(() => rmSync(place, { recursive: true, force: true }));
});
afterEach(() => {
  for (const action of undo.splice(0).reverse()) action();
});

const file = () => join(place, "reserve");

describe("the space that is kept back", () => {
  it("really takes its bytes, and gives them away once", async () => {
    const reserve = reserveFile(place);
    expect(await reserve.hold()).toBe(true);
    const { size, blocks } = statSync(file());
    expect([size, blocks * 512 >= RESERVE_BYTES]).toEqual([RESERVE_BYTES, true]);
    expect([await reserve.release(), await reserve.release(), existsSync(file())]).toEqual([
      true,
      false,
      false,
    ]);
    expect(await reserve.regain()).toBe(true);
    expect(readdirSync(place)).toEqual(["reserve"]);
  });

  it("is taken anew where only a part of it is there", async () => {
    writeFileSync(file(), "cut by a crash");
    expect(await reserveFile(place).hold()).toBe(true);
    expect(statSync(file()).size).toBe(RESERVE_BYTES);
  });

  it("is not said to be there on a disk that has no room, and leaves no part of itself there", async () => {
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=6m", "tmpfs", place], { stdio: "pipe" });
    } catch {
      throw new Error("this test mounts a small disk, so it needs root");
    }
    undo.push(() => execFileSync("umount", ["-l", place]));
    const reserve = reserveFile(place);
    expect([await reserve.hold(), await reserve.regain()]).toEqual([true, false]);
    expect(readdirSync(place)).toEqual(["reserve"]);
    await reserve.release();
    writeFileSync(join(place, "others"), Buffer.alloc(3_000_000));
    expect([await reserve.hold(), readdirSync(place)]).toEqual([false, ["others"]]);
  });
});
