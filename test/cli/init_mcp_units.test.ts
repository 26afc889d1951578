import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeWith } from "../needs.ts";
import { compiled, HOST, init } from "./init_rig.ts";

const execute = promisify(execFile);

let place: string;
const at = (...names: string[]) => join(place, ...names);
const lines = (name: string) => readFileSync(at("e%t c/systemd", name), "utf8").split("\n");

beforeAll(async () => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "callgate-mcp-units-")));
  writeFileSync(at("callgate.js"), "", { mode: 0o755 });
  const servers = {
    fs: { command: "npx", args: ["-y", "fs", "/srv/docs", "/srv/a b", "--key=%h", "a\nExecStartPre=/bin/x"] },
    web: { url: "https://w.example/mcp" },
  };
  writeFileSync(at("client.mcp"), JSON.stringify({ mcpServers: servers }));
  const host = { ...HOST, node: process.execPath, script: at("callgate.js") };
  const flags = { service: true, operator: ["alice"], fromMcp: at("client.mcp"), start: false };
  const { status } = await init(at("e%t c"), { ...flags, caller: ["agent=bob"] }, host);
  expect(status).toBe(0);
});

afterAll(() => rmSync(place, { recursive: true, force: true }));

describe("a unit of an MCP server", () => {
  it("runs it as a user of its own, hands it its file, and ends all that it starts", () => {
    expect(lines("callgate-fs.service")).toEqual(
      expect.arrayContaining([
        ...["User=callgate-fs", "KillMode=control-group", "ProtectSystem=strict", "ProtectHome=tmpfs"],
        `LoadCredential=server:${at("e%%t c/mcp/fs.json")}`,
        `ExecStart=${process.execPath} ${at("callgate.js")} mcp provide --socket /run/callgate/fs.sock --prefix fs. --server-file %d/server`,
      ]),
    );
  });

  it("forbids no namespaces, which keep the server in", () => {
    const settings = lines("callgate-fs.service").filter((line) => !line.startsWith("#"));
    expect(
      settings.filter((line) => /^(?:RestrictNamespaces|ProtectKernelTunables|ProtectProc)=/.test(line)),
    ).toEqual([]);
  });

  it("shows plain paths among the arguments to open, and no other argument", () => {
    const text = lines("callgate-fs.service").join("\n");
    expect(text).toContain("\n#BindReadOnlyPaths=/srv/docs\n#BindPaths=/srv/docs\n");
    expect(text).not.toMatch(/ExecStartPre|--key|a b/);
  });
});

describeWith(["systemd-analyze"], "systemd itself", () => {
  it.each(["callgate.service", "callgate-fs.service", "callgate-web.service"])(
    "finds nothing wrong with %s",
    async (name) => {
      const unit = at("e%t c/systemd", name);
      const { stdout, stderr } = await execute("systemd-analyze", ["verify", "--man=no", unit]);
      expect(`${stdout}${stderr}`).toBe("");
    },
  );

  it("finds a server's unit well closed, for one that makes namespaces", async () => {
    const unit = at("e%t c/systemd/callgate-fs.service");
    const { stdout } = await execute("systemd-analyze", ["security", "--offline=yes", unit]);
    const level = Number(/Overall exposure level for \S+: ([0-9.]+)/.exec(stdout)?.[1]);
    expect(level).toBeLessThan(4);
  });
});

describeWith(["systemd-sysusers"], "the users", () => {
  it("are made as the config wants them, with the client's own user in the agent's group", async () => {
    const root = at("root");
    mkdirSync(join(root, "etc"), { recursive: true });
    const people = [
      "root:x:0:0::/root:/bin/sh",
      "alice:x:1000:1000::/home/alice:/bin/bash",
      "bob:x:1001:1001::/h:/bin/sh",
    ];
    writeFileSync(join(root, "etc/passwd"), `${people.join("\n")}\n`);
    writeFileSync(join(root, "etc/group"), "root:x:0:\nalice:x:1000:\nbob:x:1001:\n");
    const file = at("e%t c/sysusers.d/callgate.conf");
    writeFileSync(file, readFileSync(file, "utf8").replace("#m bob", "m bob"));
    await execute("systemd-sysusers", [`--root=${root}`, file]);
    const [passwd = "", group = ""] = ["passwd", "group"].map((name) =>
      readFileSync(join(root, "etc", name), "utf8"),
    );
    const loaded = await compiled(at("e%t c/callgate.toml"), passwd, group);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
    expect(loaded.value.warnings).toEqual([]);
    expect(/^callgate-agent:[^:]*:[0-9]+:(.*)$/m.exec(group)?.[1]?.split(",").toSorted()).toEqual([
      "bob",
      "callgate",
    ]);
  });
});
