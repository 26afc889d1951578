// `callgate doctor` under a real systemd: over an installation as `callgate install` makes it, which is sound, and then over units
// and credentials that are broken one by one.

import { afterAll, beforeAll, expect, it } from "vitest";
import type { Examined } from "../../src/base/findings.ts";
import { describeWith } from "../needs.ts";
import type { Guest } from "./guest.ts";
import { openHouse } from "./house.ts";

let guest: Guest;

/** `unit_failed callgate-broken.service has failed …`, of what is worse than a note. */
async function wrong(): Promise<readonly string[]> {
  const { out } = await guest.run(`${guest.callgate} doctor --json`);
  const { checks } = JSON.parse(out) as { readonly checks: readonly Examined[] };
  return checks.flatMap(({ findings }) =>
    findings.filter(({ severity }) => severity !== "note").map(({ code, what }) => `${code} ${what}`),
  );
}

const codes = (found: readonly string[]) => found.map((one) => one.split(" ")[0]);
/** Of this machine, whatever callgate is like there. */
const OF_MACHINE = [
  "node_end_of_life",
  "clock_unsynchronised",
  "disk_low",
  "disk_passing",
  "config_warnings",
];

async function unit(name: string, text: string): Promise<void> {
  await guest.must(`printf '%s' '${text}' > /etc/systemd/system/${name} && systemctl daemon-reload`);
}

describeWith(["unshare", "systemctl"], "callgate doctor, over an installation under systemd,", () => {
  beforeAll(async () => {
    guest = await openHouse();
  }, 120_000);
  afterAll(() => guest?.stop());

  it("finds nothing wrong with one that is as it should be", async () => {
    expect((await wrong()).filter((one) => !OF_MACHINE.includes(one.split(" ")[0] ?? ""))).toEqual([]);
  });

  it("names a unit that has failed, and what shows why", async () => {
    await unit("callgate-broken.service", "[Service]\nType=oneshot\nExecStart=/bin/false\n");
    await guest.run("systemctl start callgate-broken.service");
    const { status, out } = await guest.run(`${guest.callgate} doctor`);
    expect(status).toBe(4);
    expect(out).toContain("error units: callgate-broken.service has failed (exit status 1) [unit_failed]");
    expect(out).toContain("    journalctl -u callgate-broken.service -n 20 -o cat\n");
    await guest.must(
      "systemctl reset-failed callgate-broken.service && rm /etc/systemd/system/callgate-broken.service && systemctl daemon-reload",
    );
    expect(codes(await wrong())).not.toContain("unit_failed");
  });

  it("names one that was changed on disk, one that does not start with the machine, one that is masked, and one that is broken", async () => {
    await unit(
      "callgate-idle.service",
      "[Service]\nExecStart=/bin/sleep inf\n[Install]\nWantedBy=multi-user.target\n",
    );
    await unit("callgate-bad.service", "[Service]\nExecStart=relative/path\n");
    await guest.must("systemctl start callgate-idle.service && systemctl mask callgate-gone.service");
    await guest.must("echo '# changed' >> /etc/systemd/system/callgate.service");
    expect(await wrong()).toEqual(
      expect.arrayContaining([
        "unit_changed callgate.service was changed on disk since systemd read it",
        "unit_not_enabled callgate-idle.service is running, and not enabled",
        "unit_masked callgate-gone.service is masked",
        "unit_broken callgate-bad.service can't be loaded (bad-setting)",
      ]),
    );
    await guest.must("systemctl stop callgate-idle.service && systemctl unmask callgate-gone.service");
    await guest.must("rm /etc/systemd/system/callgate-{idle,bad}.service && systemctl daemon-reload");
    expect(codes(await wrong()).filter((code) => code?.startsWith("unit_"))).toEqual([]);
  });

  it("names credentials that are missing, or that others can read", async () => {
    const holder = (name: string) =>
      `[Service]\nExecStart=/bin/sleep inf\nLoadCredential=key:/etc/callgate/${name}\n`;
    await unit("callgate-holder.service", holder("key"));
    await unit("callgate-other.service", holder("none"));
    await guest.must(
      "echo secret > /etc/callgate/key && chmod 0644 /etc/callgate/key && chown callgate /etc/callgate/key",
    );
    await guest.must(
      "systemctl start callgate-holder.service; systemctl start callgate-other.service || true",
    );
    expect(codes(await wrong())).toEqual(
      expect.arrayContaining(["secret_missing", "secret_open", "secret_owner"]),
    );
    await guest.must("chmod 0600 /etc/callgate/key && chown root:root /etc/callgate/key");
    await guest.must(
      "systemctl stop callgate-holder.service; systemctl reset-failed callgate-other.service; rm /etc/systemd/system/callgate-other.service && systemctl daemon-reload",
    );
    expect(codes(await wrong()).filter((code) => code?.startsWith("secret"))).toEqual([]);
  });

  it("takes a daemon that systemd starts at the first call for sound, and one that nobody starts not", async () => {
    await guest.must(
      "systemctl stop callgate.service tally.service 2>/dev/null; systemctl stop 'callgate-files*.service'; systemctl stop callgate.service",
    );
    expect(codes(await wrong())).not.toContain("daemon_none");
    await guest.must("systemctl stop 'callgate*.socket' callgate.service");
    expect(codes(await wrong())).toContain("daemon_none");
  });
});
