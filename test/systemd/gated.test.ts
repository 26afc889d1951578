// From a client's config to a service: what `callgate init --systemd --from-mcp` writes is installed and started, with a real
// MCP server that its role confines, and a user of the machine who runs the client.

import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWith } from "../needs.ts";
import { Guest } from "./guest.ts";

const MEMORY =
  "/usr/lib/node_modules/callgate/node_modules/@modelcontextprotocol/server-memory/dist/index.js";
const SECRET = "sesame-2718";
/** What the client filled in. */
const HOLE = `\${input:key}`;
const OPERATOR = "--socket /run/callgate/operator.sock";

const READS = `
[[grants]]
id = "agent-reads-memory"
role = "agent"
tools = ["memory.read_graph"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;

let guest: Guest;

describeWith(["systemd-analyze", "unshare", "systemctl"], "a client's servers as a service", () => {
  beforeAll(async () => {
    guest = await Guest.boot({});
    const memory = {
      command: guest.node,
      args: [MEMORY],
      env: { KEY: SECRET, MEMORY_FILE_PATH: "/var/lib/callgate-memory/m.json" },
    };
    const unfilled = { command: guest.node, args: [MEMORY], env: { KEY: HOLE } };
    const client = JSON.stringify({ mcpServers: { memory, unfilled } });
    await guest.must(`useradd --create-home bob && printf '%s' '${client}' > /root/client.json`);
    await guest.must(
      `${guest.callgate} init /etc/callgate --systemd --from-mcp /root/client.json --no-start --caller agent=bob --operator root`,
    );
  }, 120_000);
  afterAll(() => guest?.stop());

  it("init has written the units, and what it says is to be done next does it", async () => {
    const servers =
      "--server memory=/etc/callgate/mcp/memory.json --server unfilled=/etc/callgate/mcp/unfilled.json";
    const { status, out } = await guest.run(`${guest.callgate} install ${servers} --now`);
    expect(out).toContain("done: systemctl restart callgate.service");
    expect(status).toBe(0);
    expect(await guest.must("id -nG bob")).toContain("callgate-agent");
    await guest.until("journalctl -u callgate-mcp@memory -o cat", (log) =>
      log.includes("in service: 0 of 9"),
    );
  }, 60_000);

  const called = (user: string) =>
    `runuser -u ${user} -- ${guest.callgate} call memory.read_graph '{}' --socket /run/callgate/agent.sock`;

  it("the client's user calls a tool once an operator has looked at it, and nobody else gets through its socket", async () => {
    const diff = await guest.must(`${guest.callgate} tools diff 'memory.*' ${OPERATOR}`);
    const digest = /\bsha256:[0-9a-f]+|[0-9a-f]{64}/.exec(diff.split("\n").filter(Boolean).at(-1) ?? "")?.[0];
    await guest.must(`${guest.callgate} tools accept 'memory.*' ${digest} ${OPERATOR}`);
    await guest.must(
      `printf '%s' '${READS}' >> /etc/callgate/callgate.toml && systemctl reload callgate.service`,
    );
    await guest.until("journalctl -u callgate.service -o cat", (log) => log.includes('"config.reloaded"'));
    const call = (user: string) => guest.run(called(user));
    const asked = await call("bob");
    expect(asked.out).toContain("entities");
    expect((await call("callgate-memory")).status).not.toBe(0);
  }, 60_000);

  it("the server is confined inside its unit, and its secrets are in no unit, process list or log", async () => {
    const pid = (await guest.must("pgrep -u callgate-memory -f server-memory | tail -n 1")).trim();
    const namespace = async (kind: string, of: string) =>
      (await guest.must(`readlink /proc/${of}/ns/${kind}`)).trim();
    const unit = (await guest.must("systemctl show -p MainPID --value callgate-mcp@memory")).trim();
    for (const kind of ["user", "mnt", "pid"])
      expect(await namespace(kind, pid), kind).not.toBe(await namespace(kind, unit));
    expect((await guest.run(`ls -A /proc/${pid}/root/run/callgate`)).out.trim()).toBe("");
    const seen = await guest.run(
      `grep -rl ${SECRET} /etc/systemd /proc/[0-9]*/cmdline; journalctl -o cat | grep ${SECRET}`,
    );
    expect(seen.out.split("\n").filter((line) => line !== "" && !/\bgrep\b/.test(line))).toEqual([]);
  }, 60_000);

  it("a restart of the broker leaves the server running", async () => {
    const server = async () =>
      (await guest.must("pgrep -u callgate-memory -f server-memory | tail -n 1")).trim();
    const before = await server();
    await guest.must("systemctl restart callgate.service");
    await guest.until(called("bob"), (out) => out.includes("entities"));
    expect(await server()).toBe(before);
  }, 60_000);

  it("a server whose file still has something to fill in is not started again and again", async () => {
    const shown = "systemctl show -p NRestarts -p ActiveState -p ExecMainStatus callgate-mcp@unfilled";
    const state = await guest.until(shown, (out) => out.includes("ActiveState=failed"));
    expect(state).toContain("NRestarts=0");
    expect(state).toContain("ExecMainStatus=2");
    expect(await guest.must("journalctl -u callgate-mcp@unfilled -o cat")).toContain(`still has ${HOLE}`);
  }, 60_000);
});
