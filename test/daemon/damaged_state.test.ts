import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { ECHO } from "./configs.ts";
import { cleanUp, Daemon, Place } from "./daemon.ts";

afterEach(cleanUp);

/** A place whose state directory was filled by `fill`. */
function placeWith(fill: (directory: string) => void): Place {
  const place = new Place(ECHO);
  const state = join(place.directory, "state");
  mkdirSync(state, { mode: 0o700 });
  fill(state);
  return place;
}

describe("a state directory that is not as the daemon left it", () => {
  it.each<[string, Buffer]>([
    ["empty", Buffer.alloc(0)],
    ["of zeros", Buffer.alloc(65_536)],
    ["of something else", Buffer.alloc(65_536, "no database ")],
  ])("does not kill it without a word where the state's file is %s: it says so", async (_, bytes) => {
    const place = placeWith((state) => writeFileSync(join(state, "state.mdb"), bytes, { mode: 0o600 }));
    const refused = await Daemon.start(place, { ready: false });
    expect(await refused.ended).toBe(78);
    expect(await refused.errors).toMatch(/damaged.*callgate restore/);
  });

  it("is not trusted where somebody has put a link in place of a file", async () => {
    const place = placeWith((state) => symlinkSync("/etc/passwd", join(state, "reserve")));
    const refused = await Daemon.start(place, { ready: false });
    expect(await refused.ended).toBe(78);
    expect(await refused.errors).toContain("somebody else may have put it there");
  });
});
