import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWith } from "../needs.ts";
import type { Guest } from "./guest.ts";
import { agentCall, CONFIG_FILE, openHouse } from "./house.ts";

let guest: Guest;
const INSIDER = readFileSync(join(import.meta.dirname, "insider.mjs"), "utf8");

describeWith(["systemd-analyze", "unshare", "systemctl"], "what the units of an installation keep", () => {
  beforeAll(async () => {
    guest = await openHouse({
      "/etc/callgate/insider.mjs": INSIDER,
      "/etc/callgate/connector.key": "the provider's key\n",
      "/etc/callgate/connector.callers/me": "0123456789abcdef\n",
      "/srv/other/b.txt": "not of the files role\n",
    });
    await guest.must("chmod -R go-rwx /etc/callgate/connector.key /etc/callgate/connector.callers");
  }, 120_000);
  afterAll(() => guest?.stop());

  interface Told {
    readonly uid: number;
    readonly tcp: string;
    readonly tcp6: string;
    readonly udp: string;
    readonly exec: Readonly<Record<string, string>>;
    readonly write: Readonly<Record<string, string>>;
    readonly read: Readonly<Record<string, string>>;
    readonly others: number;
  }

  let probes = 0;

  /** Runs the insider in place of a unit's own program, with everything else as that unit has it. */
  async function insideOf(
    unit: string,
    paths: readonly string[],
    script = "/etc/callgate/insider.mjs",
  ): Promise<Told> {
    const [name = "", type = ""] = unit.split(/(?=\.service$)/);
    const [template, instance] = name.split("@");
    const probe = instance === undefined ? "probe.service" : `probe@${instance}${type}`;
    probes += 1;
    const told = `probe-${probes}`; // the journal may still tell of the last one
    const units = "/etc/systemd/system";
    const from = instance === undefined ? `${units}/${unit}` : `${units}/${template}@${type}`;
    const to = instance === undefined ? `${units}/probe.service` : `${units}/probe@.service`;
    const lines = `[Service]\\nType=oneshot\\nRestart=no\\nWatchdogSec=0\\nExecReload=\\nExecStart=\\nExecStart=${guest.node} ${script} ${paths.join(" ")}\\nSyslogIdentifier=${told}\\n`;
    await guest.must(
      `cp ${from} ${to}; rm -rf ${units}/${probe}.d; mkdir -p ${units}/${probe}.d; cp ${units}/${unit}.d/*.conf ${units}/${probe}.d/ 2>/dev/null; printf '${lines}' > ${units}/${probe}.d/99-probe.conf; systemctl daemon-reload`,
    );
    await guest.must(`systemctl start ${probe}`);
    const out = await guest.until(`journalctl -t ${told} -o cat`, (text) => text.includes('"uid"'));
    const line = out.split("\n").find((one) => one.includes('"uid"')) ?? "";
    return JSON.parse(line) as Told;
  }

  it("each role's socket has its owner, group and mode", async () => {
    const out = await guest.must("stat -c '%n %U %G %a' /run/callgate/*.sock");
    expect(out.trim().split("\n")).toEqual([
      "/run/callgate/agent.sock callgate callgate-agent 660",
      "/run/callgate/files.sock callgate callgate-files 660",
      "/run/callgate/operator.sock callgate callgate-operators 660",
      "/run/callgate/tally.sock callgate callgate-tally 660",
    ]);
  });

  it("a socket is at no moment wider than that", async () => {
    const watch = `const fs=require("fs");const seen=new Set();const end=Date.now()+4000;while(Date.now()<end){try{const s=fs.statSync("/run/callgate/agent.sock");seen.add((s.mode&511).toString(8)+" "+(s.gid===0?"root":"group"))}catch{}}console.log([...seen].join(","))`;
    await guest.must(`(${guest.node} -e '${watch}' > /tmp/seen 2>&1 &)`);
    await guest.must(
      "systemctl stop callgate.service callgate-role@agent.socket; systemctl start callgate-role@agent.socket callgate.service",
    );
    const seen = (await guest.until("cat /tmp/seen", (text) => text.trim() !== "")).trim().split(",");
    expect(seen.filter((one) => !["660 group", "660 root", "600 root"].includes(one))).toEqual([]);
    expect(seen).toContain("660 group");
  });

  it("another user does not get through, even with the path", async () => {
    const line = `runuser -u callgate-files -- ${guest.callgate} call callgate.status --socket /run/callgate/agent.sock`;
    const { status, out } = await guest.run(line);
    expect(out).toContain("EACCES");
    expect(status).toBe(1);
    // root passes the mode, and is turned away by its uid
    const root = await guest.run(`${guest.callgate} call callgate.status --socket /run/callgate/agent.sock`);
    expect(root.out).toContain("this user may not connect as this role");
  });

  it("the broker knows its peers' uids in spite of all that its unit has given up", async () => {
    await guest.must(agentCall(guest, "tally", { text: "who" }));
    const uid = (await guest.must("id -u callgate-agent")).trim();
    const log = await guest.must("journalctl -u callgate.service -o cat");
    expect(log).toMatch(new RegExp(`"peer.connected","role":"agent","connection":[0-9]+,"uid":${uid},`));
  });

  it("it is ready when a call would be answered, and not before", async () => {
    await guest.must("systemctl restart callgate.service");
    expect((await guest.run(agentCall(guest, "tally", { text: "at once" }))).out).toContain("at once");
    await guest.must(`cp ${CONFIG_FILE} /root/good && echo 'wrong = 1' >> ${CONFIG_FILE}`);
    const { status } = await guest.run("systemctl restart callgate.service");
    expect(status).not.toBe(0);
    expect(await guest.must("systemctl show -p ActiveState --value callgate.service")).not.toMatch(/^active/);
    await guest.must(`cp /root/good ${CONFIG_FILE}`);
    await guest.until("systemctl is-active callgate.service", (state) => state.trim() === "active"); // by itself
  });

  it("the reload of a bad config keeps serving, and shows in status and log", async () => {
    await guest.must(
      `cp ${CONFIG_FILE} /root/good && echo 'wrong = 1' >> ${CONFIG_FILE} && systemctl reload callgate.service`,
    );
    const shown = "systemctl show -p StatusText --value callgate.service";
    expect(await guest.until(shown, (text) => text.includes("CONFIG REFUSED"))).toContain("still in force");
    expect((await guest.run(agentCall(guest, "tally", { text: "still served" }))).out).toContain(
      "still served",
    );
    const refused = await guest.must("journalctl -u callgate.service -o cat -p err");
    expect(refused).toContain('"event":"config.refused"');
    await guest.must(`cp /root/good ${CONFIG_FILE} && systemctl reload callgate.service`);
    await guest.until(shown, (text) => text.includes("in force") && !text.includes("REFUSED"));
  });

  it("the journal has each message with its priority, one a line, and callgate tail reads it", async () => {
    const json = await guest.must(
      "journalctl -u callgate.service -o json --output-fields=PRIORITY,MESSAGE _COMM=node",
    );
    const levels = { error: "3", warn: "4", info: "6", debug: "7" } as const;
    const entries = json
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { PRIORITY: string; MESSAGE: string });
    for (const { PRIORITY, MESSAGE } of entries) {
      const { level } = JSON.parse(MESSAGE) as { level: keyof typeof levels };
      expect(PRIORITY).toBe(levels[level]);
    }
    expect(new Set(entries.map(({ PRIORITY }) => PRIORITY)).size).toBeGreaterThan(1);
    const read = await guest.must(`journalctl -u callgate.service -o cat | ${guest.callgate} tail`);
    expect(read).toMatch(/ERROR config\.refused/);
    expect(read).toMatch(/INFO +call\.ended +agent\/cli/);
  });

  it("from inside of the broker's unit there is no network, no program and no role's file", async () => {
    const told = await insideOf("callgate.service", [
      "/srv/docs/a.txt",
      "/srv/docs",
      "/var/lib/tally",
      "/etc/callgate/connector.key",
      "/etc/shadow",
      "/root",
      "/home",
      "/proc/1/environ",
    ]);
    expect(told.uid).toBe(Number((await guest.must("id -u callgate")).trim()));
    for (const way of [told.tcp, told.tcp6, told.udp]) expect(way).toMatch(/^(?:EAFNOSUPPORT|EPERM|EACCES)$/);
    for (const program of Object.values(told.exec)) expect(program).toMatch(/^(?:ENOENT|EACCES|EPERM)$/);
    for (const [path, came] of Object.entries(told.write))
      expect(`${path} ${came}`).toMatch(/ (?:EROFS|EACCES|EPERM)$/);
    for (const [path, came] of Object.entries(told.read))
      expect(`${path} ${came}`).toMatch(/ (?:ENOENT|EACCES|EPERM|EMPTY)$/);
    expect(told.others).toBeLessThanOrEqual(2); // itself, and the broker, which is the same user
  });

  it("a files role sees its own directory and no other", async () => {
    await guest.must("mkdir -p /srv/docs && cp /etc/callgate/insider.mjs /srv/docs/");
    const told = await insideOf(
      "callgate-files@files.service",
      ["/srv/docs/a.txt", "/srv/other/b.txt", "/var/lib/tally", "/etc/callgate/callgate.toml", "/etc/shadow"],
      "/srv/docs/insider.mjs",
    );
    expect(told.read).toEqual({
      "/srv/docs/a.txt": "yes",
      "/srv/other/b.txt": "ENOENT",
      "/var/lib/tally": "ENOENT",
      "/etc/callgate/callgate.toml": "ENOENT",
      "/etc/shadow": "ENOENT",
    });
    for (const way of [told.tcp, told.udp]) expect(way).toMatch(/^(?:EAFNOSUPPORT|EPERM|EACCES)$/);
    for (const program of Object.values(told.exec)) expect(program).toMatch(/^(?:ENOENT|EACCES|EPERM)$/);
  });

  it("the connector's credentials are readable in its unit only", async () => {
    const mine = ["/run/credentials/probe.service/key", "/run/credentials/probe.service/callers_me"];
    const connector = await insideOf("callgate-connector.service", [...mine, "/etc/callgate/connector.key"]);
    expect(connector.read).toEqual({
      [mine[0]!]: "yes",
      [mine[1]!]: "yes",
      "/etc/callgate/connector.key": "EACCES",
    });
    await guest.must("rm -rf /etc/systemd/system/probe*");
    const broker = await insideOf("callgate.service", mine);
    expect(Object.values(broker.read)).toEqual(["ENOENT", "ENOENT"]);
  });

  it("an installation that is repeated changes nothing, and one that is taken away leaves the state", async () => {
    await guest.must("rm -rf /etc/systemd/system/probe* && systemctl daemon-reload");
    expect(await guest.must(`${guest.callgate} install`)).toContain("everything is as it was");
    await guest.must("echo '# mine' >> /etc/systemd/system/callgate-mcp@.service");
    const kept = await guest.run(`${guest.callgate} install`);
    expect(kept.out).toContain("kept, since it was changed or written by hand");
    expect(kept.status).toBe(4);
    const gone = await guest.run(`${guest.callgate} uninstall`);
    expect(gone.out).toContain("What stays: the state");
    expect(await guest.must("ls /etc/systemd/system | grep callgate || true")).toBe(
      "callgate-mcp@.service\n",
    );
    expect(await guest.must("ls /var/lib/callgate")).toContain("state.mdb");
    expect(await guest.must("ls /run/callgate")).toBe("");
    await guest.must(`${guest.callgate} uninstall --purge --force`);
    expect(await guest.must("ls /var/lib/callgate || true")).not.toContain("state.mdb");
  });
});
