import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { verifyState } from "../../src/host/audit_offline.ts";
import { connect } from "../../src/library.ts";
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

  it("does not kill it without a word where the state's file was cut: it says so, and so does who verifies it", async () => {
    const place = new Place(ECHO);
    const daemon = await Daemon.start(place);
    const caller = await connect({ to: { path: daemon.socket("agent") } });
    for (let i = 0; i < 300; i += 1)
      await caller.call("callgate.calls.cancel", { call: "1", session: "x".repeat(100) }, { session: "s" })
        .final;
    await caller.close();
    expect(await daemon.stop()).toBe(0);
    const file = join(place.directory, "state", "state.mdb");
    truncateSync(file, 16_384);
    expect(await verifyState(join(place.directory, "state"))).toMatch(/CUT_SHORT|damaged/);
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
