// A gate in a guest: a config with a caller, a provider that writes down what it ran, and an operator; installed and started
// as `callgate install --now` does.

import { Guest } from "./guest.ts";

export const CONFIG = `
[daemon]
drain_timeout = "2s"

[roles.agent]
users = ["callgate-agent"]
group = "callgate-agent"
[roles.tally]
users = ["callgate-tally"]
group = "callgate-tally"
[roles.files]
users = ["callgate-files"]
group = "callgate-files"
[roles.operator]
users = ["root"]
group = "callgate-operators"
operator = true

[tools.tally]
role = "tally"
effect = "write"
class = "public"
untrusted = false
[tools.hang]
role = "tally"
effect = "read"
class = "public"
untrusted = false
[tools.read_file]
role = "files"
effect = "read"
class = "public"
untrusted = false

[[grants]]
id = "agent-calls"
role = "agent"
tools = ["tally", "hang", "read_file"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "operator-operates"
role = "operator"
tools = ["callgate.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true

[roles.agent.limits]
calls_per_second = 100000
connects_per_second = 10000
`;

export const CONFIG_FILE = "/etc/callgate/callgate.toml";
export const TALLY = "/var/lib/tally";

/** A service of the guest's for a program of the tests. */
function service(guest: Guest, user: string, program: string): string {
  return `[Unit]\nStartLimitIntervalSec=0\n[Service]\nUser=${user}\nExecStart=${guest.program(program)}\nRestart=always\nRestartSec=100ms\n`;
}

/** `prepare`: run before the installation. */
export async function openHouse(
  files: Readonly<Record<string, string>> = {},
  prepare: (guest: Guest) => Promise<unknown> = async () => undefined,
): Promise<Guest> {
  const guest = await Guest.boot({
    [CONFIG_FILE]: CONFIG,
    "/srv/docs/a.txt": "kept by the files role\n",
    ...files,
  });
  await prepare(guest);
  await guest.must(`${guest.callgate} install --files files=public,trusted:/srv/docs --now`);
  await guest.must(`mkdir -m 0700 ${TALLY} && chown callgate-tally ${TALLY}`);
  const words = `tally_provider.ts /run/callgate/tally.sock ${TALLY}/ran`;
  const text = service(guest, "callgate-tally", words);
  await guest.must(`printf '%s' '${text}' > /etc/systemd/system/tally.service`);
  await guest.must("systemctl daemon-reload && systemctl start tally.service");
  const connected = `journalctl -u callgate.service -o cat | grep '"peer.connected","role":"tally"'`;
  await guest.until(connected, (line) => line !== "");
  return guest;
}

/** A call of the agent's, as the command makes it. */
export function agentCall(guest: Guest, tool: string, args: object): string {
  return `runuser -u callgate-agent -- ${guest.callgate} call ${tool} '${JSON.stringify(args)}' --socket /run/callgate/agent.sock`;
}
