// The templates of roles, run as they are: a program of the owner's, the connector with turns of its model, the console.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWith } from "../needs.ts";
import { Guest } from "./guest.ts";
import { agentCall, CONFIG, CONFIG_FILE } from "./house.ts";

const MODEL = `
[roles.model]
users = ["callgate-model"]
group = "callgate-model"
[tools."model.turn"]
role = "model"
effect = "send"
destinations = []
store = false
class = "internal"
untrusted = true
timeout = "1m"
schema_file = "model_turn.schema.json"
[[grants]]
id = "agent-asks-the-model"
role = "agent"
tools = ["model.turn"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;
/** Nobody is at the provider's address, so each turn fails; the key would be sent there and nowhere else. */
const CONNECTOR = `
[connector]
[backend]
kind = "openai-chat"
base_url = "http://127.0.0.1:9"
credential = "key"
retries = 0
[[callers]]
id = "model"
secret_credential = "callers_model"
allowed_models = ["m"]
max_output_tokens = 9
`;
const KEY = "sesame-1618";
const SCHEMA = readFileSync(join(import.meta.dirname, "../../examples/model_turn.schema.json"), "utf8");

let guest: Guest;

describeWith(["systemd-analyze", "unshare", "systemctl"], "the units of programs", () => {
  beforeAll(async () => {
    guest = await Guest.boot({
      [CONFIG_FILE]: `${CONFIG}${MODEL}`,
      "/etc/callgate/model_turn.schema.json": SCHEMA,
      "/etc/callgate/connector.toml": CONNECTOR,
      "/etc/callgate/connector.key": `${KEY}\n`,
      "/srv/docs/a.txt": "kept\n",
    });
    const secret = `${guest.callgate} connector secret --to /etc/callgate/model.secret`;
    await guest.must(
      `${secret} && mkdir -m 0700 /etc/callgate/connector.callers && cp /etc/callgate/model.secret /etc/callgate/connector.callers/model && chmod 600 /etc/callgate/connector.key`,
    );
    const words = 'tally_provider.ts "$CALLGATE_SOCKET" /var/lib/callgate-tally/ran';
    const program = `#!/bin/sh\nexec ${guest.program(words)}\n`;
    await guest.must(
      `printf '%s' '${program}' > /usr/local/bin/callgate-tally && chmod 755 /usr/local/bin/callgate-tally`,
    );
    await guest.must(`${guest.callgate} install --files files=public,trusted:/srv/docs --now`);
  }, 120_000);
  afterAll(() => guest?.stop());

  it("a program of the owner's finds its socket, writes to its own directory, and is called", async () => {
    await guest.must("systemctl start callgate-program@tally");
    const call = agentCall(guest, "tally", { text: "by a program" });
    const out = await guest.until(call, (said) => said.includes("by a program"));
    expect(out).not.toContain("no_provider");
    expect(await guest.must("cat /var/lib/callgate-tally/ran")).toContain("by a program\n");
    expect(await guest.must("stat -c '%U %a' /var/lib/callgate-tally")).toBe("callgate-tally 700\n");
  }, 60_000);

  it("the connector is ready with its credentials, and a role gets turns of it, without the key being told", async () => {
    await guest.must("systemctl start callgate-connector");
    expect(await guest.must("systemctl show -p StatusText callgate-connector")).toMatch(
      /openai-chat at 127\.0\.0\.1:7811/,
    );
    await guest.must("systemctl start callgate-model@model");
    const input = [{ UserText: { text: "hi" } }];
    const turn = { model: "m", instructions: "Be brief.", input, max_output_tokens: 9 };
    const out = await guest.until(
      agentCall(guest, "model.turn", turn),
      (said) => !said.includes("no_provider"),
    );
    expect(out).toContain("TransportFailed");
    const log = await guest.must("journalctl -o cat");
    expect(log).not.toContain(KEY);
    await guest.must("systemctl stop callgate-connector");
    expect(await guest.must("systemctl show -p Result --value callgate-connector")).toBe("success\n");
  }, 60_000);

  it("the console serves the operator whose unit it is, by the link in its journal, and nobody without it", async () => {
    await guest.must("systemctl start callgate-console@root");
    const log = await guest.until("journalctl -u callgate-console@root -o cat", (said) =>
      said.includes("http://"),
    );
    const link = /http:\/\/\S+/.exec(log)?.[0] ?? "";
    const ask = (url: string) =>
      guest.must(
        `${guest.node} -e 'fetch("${url}",{redirect:"manual"}).then(async (a) => console.log(a.status, a.headers.get("set-cookie") !== null))'`,
      );
    expect(await ask(new URL("/", link).href)).not.toContain("true");
    const first = await ask(link);
    expect(first).toMatch(/^(?:200|30[0-9]) /);
    expect(await guest.must("systemctl is-active callgate-console@root")).toBe("active\n");
    await guest.must("systemctl stop callgate-console@root");
    expect(await guest.must("systemctl show -p Result --value callgate-console@root")).toBe("success\n");
  }, 60_000);

  it("the console runs in an operator's own service manager too", async () => {
    await guest.must("systemctl start user-runtime-dir@0.service user@0.service");
    const own = "XDG_RUNTIME_DIR=/run/user/0 systemctl --user";
    await guest.must(`${own} start callgate-console`);
    const log = "journalctl _UID=0 _SYSTEMD_USER_UNIT=callgate-console.service -o cat";
    const link = /http:\/\/[^/]+\//.exec(await guest.until(log, (said) => said.includes("http://")))?.[0];
    const page = `${guest.node} -e 'fetch("${link}").then((answer) => console.log(answer.status))'`;
    expect(await guest.must(page)).toBe("200\n");
    await guest.must(`${own} stop callgate-console`);
    expect(await guest.must(`${own} show -p Result --value callgate-console`)).toBe("success\n");
  }, 60_000);
});
