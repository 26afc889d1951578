import { describe, expect, it } from "vitest";
import { compiled, EXTRA_LINE, expectFault, minimal, warningsOf } from "./config_fixture.ts";

const daemon = (rest: string) => minimal(`[daemon]\n${rest}`);
const audit = (rest: string) => minimal(`[audit]\n${rest}`);

describe("the state directory", () => {
  it("is where the config says, from the config's own directory on", async () => {
    const at = async (state: string) => (await compiled(daemon(`state = "${state}"`))).config.stateDir;
    expect(await at("/srv/state")).toBe("/srv/state");
    expect(await at("state")).toBe("/etc/callgate/state");
    expect(await at("../x/./state/")).toBe("/etc/x/state");
  });

  it.each(['""', "3", "true", '"/var\\u0000/lib"'])("state = %s is refused", (value) =>
    expectFault(daemon(`state = ${value} #!`), "@:9", "state must"),
  );

  it.each([
    ["/run/callgate", "is, or is inside, the directory of the sockets"],
    ["/run/callgate/state", "is, or is inside, the directory of the sockets"],
    ["/run/callgate/x/../state", "is, or is inside, the directory of the sockets"],
    ["/run", "is inside the state directory"],
    ["/", "is inside the state directory"],
  ])("%s, where a reboot or a visitor of the sockets would reach it, is refused", (state, message) =>
    expectFault(daemon(`state = "${state}" #!`), "@:9", message),
  );

  it("is not mistaken for the sockets' directory by the beginning of its name", async () => {
    const { config } = await compiled(daemon('state = "/run/callgate-state"'));
    expect(config.stateDir).toBe("/run/callgate-state");
  });

  it("at its default is held against sockets that were put there, at their line", () =>
    expectFault(daemon('sockets = "/var/lib/callgate/run" #!'), "@:11", "is inside the state directory"));
});

describe("[audit]", () => {
  it("carries what was set", async () => {
    const { config } = await compiled(
      audit('keep_for = "30d"\ncheckpoint_every = "5m"\nbytes_max = 10_000_000'),
    );
    expect(config.audit).toEqual({
      keepForMs: 2_592_000_000,
      checkpointEveryMs: 300_000,
      bytesMax: 10_000_000,
    });
  });

  it.each([
    ['keep_for = "0s" #!', "@:12", "keep_for must be a duration"],
    ["keep_for = 30 #!", "@:12", "keep_for must be a duration"],
    ['checkpoint_every = "0s" #!', "@:20", "checkpoint_every must be a duration"],
    ['checkpoint_every = "2d" #!', "@:20", "checkpoint_every must be a duration"],
    ["bytes_max = 0 #!", "@:13", "bytes_max must be a whole number"],
    ["bytes_max = 34_359_738_369 #!", "@:13", "bytes_max must be a whole number from 1048576 to 34359738368"],
    ['bytes_max = "1GiB" #!', "@:13", "bytes_max must be a whole number"],
    ['keep_fr = "30d" #!', "@:1", 'unknown key "keep_fr" in [audit]; did you mean "keep_for"?'],
  ])("%s is refused", (text, at, message) => expectFault(audit(text), at, message));

  it("that forgets what an answer still tells is warned of, at the key that says so", async () => {
    expect(await warningsOf(audit('keep_for = "23h"'))).toEqual([`${EXTRA_LINE + 1}:12 audit_short`]);
    expect(await warningsOf(audit('keep_for = "24h"'))).toEqual([]);
    expect(await warningsOf(daemon('replay_for = "366d"'))).toEqual([`${EXTRA_LINE + 1}:14 audit_short`]);
  });
});
