import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWith } from "../needs.ts";
import type { Guest } from "./guest.ts";
import { agentCall, CONFIG, CONFIG_FILE, openHouse, TALLY } from "./house.ts";
import { expectOnceEach, load, ran } from "./load.ts";

let guest: Guest;

describeWith(["systemd-analyze", "unshare", "systemctl"], "the broker's life under systemd", () => {
  beforeAll(async () => {
    // A main loop that SIGUSR2 holds up for good, as a fault of ours would.
    const block = 'process.on("SIGUSR2", () => { for (;;); });\n';
    guest = await openHouse({ "/etc/callgate/block.mjs": block });
  }, 120_000);
  afterAll(() => guest?.stop());

  const pid = async () => (await guest.must("systemctl show -p MainPID --value callgate.service")).trim();

  it("twenty restarts under load lose no call, double none and cross none", async () => {
    const stop = await load(guest, 8);
    for (let i = 0; i < 20; i += 1) {
      // Every other time as an upgrade does it, which has units read anew.
      await guest.must(
        `${i % 2 === 0 ? "" : "systemctl daemon-reload && "}systemctl restart callgate.service`,
      );
      const before = (await ran(guest)).length;
      await guest.until(`wc -l < ${TALLY}/ran`, (lines) => Number(lines) > before); // it is served again
    }
    const told = await stop();
    await expectOnceEach(guest, told);
  }, 240_000);

  it("a call that finds no broker starts it, and is answered", async () => {
    await guest.must("systemctl stop callgate.service");
    const { status, out } = await guest.run(agentCall(guest, "tally", { text: "first" }));
    expect(out).toContain("first");
    expect(status).toBe(0);
    expect(await guest.must("systemctl is-active callgate.service")).toContain("active");
  });

  it("ten crashes in a row leave the sockets up, and callers have their answers", async () => {
    const before = (await guest.must("stat -c %i /run/callgate/*.sock")).trim();
    const stop = await load(guest, 4);
    for (let i = 0; i < 10; i += 1) {
      const old = await pid();
      await guest.must(`kill -KILL ${old}`);
      await guest.until(
        "systemctl show -p MainPID --value callgate.service",
        (now) => now.trim() !== old && now.trim() !== "0",
      );
    }
    await guest.until("systemctl is-active callgate.service", (state) => state.trim() === "active");
    const told = await stop();
    // What was at the provider when the broker died, nobody can know; everything else was run once.
    const unknown = Object.entries(told.failed).filter(([why]) => why.includes("outcome_unknown"));
    expect(Object.keys(told.failed).filter((why) => !why.includes("outcome_unknown"))).toEqual([]);
    expect(told.answered + unknown.reduce((sum, [, count]) => sum + count, 0)).toBe(told.asked);
    const lines = await ran(guest);
    expect(new Set(lines).size).toBe(lines.length);
    expect((await guest.must("stat -c %i /run/callgate/*.sock")).trim()).toBe(before);
    expect(await guest.must("systemctl is-active 'callgate-role@*.socket'")).not.toContain("failed");
  }, 120_000);

  it("a blocked main loop is killed by the watchdog, and a call that waits is answered", async () => {
    const extra = `[Service]\\nWatchdogSec=2\\nEnvironment=NODE_OPTIONS=--import=/etc/callgate/block.mjs\\n`;
    await guest.must(
      `mkdir -p /etc/systemd/system/callgate.service.d && printf '${extra}' > /etc/systemd/system/callgate.service.d/90-block.conf`,
    );
    await guest.must("systemctl daemon-reload && systemctl restart callgate.service");
    const blocked = await pid();
    await guest.must(`kill -USR2 ${blocked}`);
    const { status, out } = await guest.run(agentCall(guest, "tally", { text: "while it was blocked" }));
    expect(out).toContain("while it was blocked");
    expect(status).toBe(0);
    expect(await pid()).not.toBe(blocked);
    expect(await guest.must("journalctl -u callgate.service -o cat")).toContain("Watchdog timeout");
    await guest.must(
      "rm /etc/systemd/system/callgate.service.d/90-block.conf && systemctl daemon-reload && systemctl restart callgate.service",
    );
  }, 60_000);

  it("a provider that hangs does not hold up the stop", async () => {
    await guest.must(`(${agentCall(guest, "hang", {})} > /tmp/hang 2>&1 &)`);
    await guest.until(`${guest.callgate} status --json --socket /run/callgate/operator.sock`, (out) =>
      out.includes('"running_calls":1'),
    );
    const began = performance.now();
    await guest.must("systemctl stop 'callgate-role@*.socket' callgate.service");
    expect(performance.now() - began).toBeLessThan(20_000); // drain_timeout is 2 s, TimeoutStopSec= 60 s
    const log = await guest.must("journalctl -u callgate.service -o cat");
    expect(log).toMatch(/"event":"daemon\.stopped","unfinished":1/);
    expect(await guest.must("systemctl show -p Result --value callgate.service")).toContain("success");
    await guest.must(
      "systemctl start 'callgate-role@agent.socket' 'callgate-role@tally.socket' 'callgate-role@files.socket' 'callgate-role@operator.socket' callgate.service",
    );
  }, 60_000);

  it("a socket whose role is gone from the config keeps nobody from starting, and keeps nobody waiting at it", async () => {
    const without = CONFIG.replace(/\[roles\.files\][\s\S]*?(?=\n\[)/, "")
      .replace(/\[tools\.read_file\][\s\S]*?(?=\n\[)/, "")
      .replace(', "read_file"', "");
    await guest.must(`printf '%s' '${without}' > ${CONFIG_FILE} && systemctl restart callgate.service`);
    const { out } = await guest.run(agentCall(guest, "tally", { text: "after it has gone" }));
    expect(out).toContain("after it has gone");
    const log = await guest.must("journalctl -u callgate.service -o cat");
    expect(log).toContain('"event":"socket.unclaimed","name":"files"');
    const asked = `runuser -u callgate-files -- ${guest.callgate} call tally '{}' --socket /run/callgate/files.sock`;
    expect((await guest.run(`timeout 20 ${asked}`)).status).not.toBe(124);
  }, 60_000);
});
