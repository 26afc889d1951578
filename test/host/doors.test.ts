import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { ROLE_LIMITS_DEFAULT } from "../../src/base/limits.ts";
import { Doors } from "../../src/host/doors.ts";
import { loadLibc } from "../../src/host/libc.ts";
import type { Policy, RolePolicy } from "../../src/policy/policy.ts";
import { cleanUp, closed, connected, onCleanUp, temporaryDirectory } from "./listen_fixture.ts";

afterEach(cleanUp);

function role(name: string, mode = 0o600): RolePolicy {
  return {
    name,
    admits: "anyone",
    socket: { mode, gid: undefined },
    sessions: "any",
    taintScope: "role",
    isolated: false,
    operator: false,
    broker: false,
    classMax: "restricted",
    provides: [],
    limits: ROLE_LIMITS_DEFAULT,
  };
}

function policy(...roles: readonly RolePolicy[]): Policy {
  const named = new Map(roles.map((one) => [one.name, one]));
  return { roles: named, tools: new Map(), grants: [], gives: [], allowSameUser: false, version: "" };
}

async function opened(...roles: readonly RolePolicy[]) {
  const socketsDir = join(temporaryDirectory(), "run");
  const came: string[] = [];
  const doors = await Doors.open({
    config: { socketsDir, policy: policy(...roles) },
    libc: await loadLibc(),
    log: () => undefined,
    env: {},
    onConnection: (name) => came.push(name),
  });
  if (!doors.ok) throw new Error(doors.fault);
  onCleanUp(() => void doors.value.close());
  const path = (name: string) => join(socketsDir, `${name}.sock`);
  const mode = (name: string) => statSync(path(name)).mode & 0o777;
  return { doors: doors.value, came, path, mode };
}

describe("the doors", () => {
  it("fit a new policy: opened, set, and closed once it is in force", async () => {
    const { doors, path, mode } = await opened(role("kept"), role("removed"));
    let inForce = false;
    const fitted = await doors.fit(policy(role("kept", 0o666), role("added")), () => {
      expect([mode("kept"), mode("added"), mode("removed")]).toEqual([0o666, 0o600, 0o600]);
      inForce = true;
    });
    expect([fitted.ok, inForce]).toEqual([true, true]);
    await expect(connected(path("removed"))).rejects.toThrow("ENOENT");
    await connected(path("added"));
  });

  it("are as before where one can't be opened", async () => {
    const { doors, path, mode } = await opened(role("kept"));
    writeFileSync(path("later"), "no socket");
    const fitted = await doors.fit(policy(role("kept", 0o666), role("first"), role("later")), () => {
      throw new Error("the policy must not come into force");
    });
    expect(fitted.ok).toBe(false);
    expect(mode("kept")).toBe(0o600);
    await expect(connected(path("first"))).rejects.toThrow("ENOENT");
  });

  it("that closed let go of those who came in through doors that are no more", async () => {
    const { doors, path } = await opened(role("kept"), role("removed"));
    const peer = await connected(path("removed"));
    await doors.fit(policy(role("kept")), () => undefined);
    await doors.close();
    await closed(peer);
  });
});
