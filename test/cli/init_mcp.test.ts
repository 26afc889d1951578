import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UsageFault } from "../../src/cli/call.ts";
import type { Flags } from "../../src/cli/command_row.ts";
import { runProgram } from "../../src/cli/program.ts";
import { program } from "../roles/mcp/provide/house.ts";
import { Desk } from "./desk.ts";
import { compiled, HOST, init, PASSWD, usersFor } from "./init_rig.ts";

const UID = process.getuid?.() ?? 0;
const RUDE = fileURLToPath(new URL("rude_server.mjs", import.meta.url));
const SECRET = "sesame-3141";

let place: string;

beforeEach(() => {
  installed.length = 0;
  place = realpathSync(mkdtempSync(join(tmpdir(), "callgate-from-mcp-")));
  mkdirSync(at("docs"));
});

afterEach(() => rmSync(place, { recursive: true, force: true }));

const at = (...names: string[]) => join(place, ...names);
const text = (...names: string[]) => readFileSync(at(...names), "utf8");
const mode = (...names: string[]) => (statSync(at(...names)).mode & 0o7777).toString(8);
const node = (...args: string[]) => ({ command: process.execPath, args });
const hole = (name: string): string => `\${${name}}`;

/** What the installer was asked for. */
const installed: Flags[] = [];
const install = async (_: object, flags: Flags) => {
  installed.push(flags);
  return 0;
};
const HERE = () => ({ ...HOST, uid: UID, workingDirectory: place, home: place, install });

function from(servers: object, flags: Parameters<typeof init>[1] = {}, key = "mcpServers") {
  writeFileSync(at("client.mcp"), JSON.stringify({ [key]: servers }));
  return init(at("gate"), { fromMcp: "client.mcp", startTimeout: 30, ...flags }, HERE());
}

async function policyOf(path = at("gate/callgate.toml"), passwd = PASSWD, group = "") {
  const loaded = await compiled(path, passwd, group);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
  return loaded.value.config.policy;
}

describe("servers that are taken over", () => {
  it("become roles of one connection and one prefix, with nothing in force for the agent but seeing its tools", async () => {
    const { status, desk } = await from({
      Files: node(program("@modelcontextprotocol/server-filesystem"), at("docs")),
      memory: {
        ...node(program("@modelcontextprotocol/server-memory")),
        env: { MEMORY_FILE_PATH: at("m.json") },
      },
    });
    expect({ status, out: desk.out_ }).toMatchObject({ status: 0 });
    const { roles, grants } = await policyOf();
    expect([...roles.keys()]).toEqual(["agent", "files", "memory", "operator"]);
    expect(roles.get("files")).toMatchObject({
      provides: ["files."],
      limits: { connections: 1 },
      classMax: "internal",
    });
    expect(grants.filter(({ role }) => role === "agent")).toMatchObject([
      { tools: ["callgate.tools.list", "callgate.calls.why", "callgate.calls.cancel"] },
    ]);
    expect(desk.out_).toContain('  files   "Files", 14 tools, 10 of which it says only read\n');
    expect(desk.out_).toContain("  memory  9 tools, 3 of which it says only read\n");
    expect(text("gate/callgate.toml")).toContain('\n#  "memory.read_graph",\n');
  }, 60_000);

  it("keep the client's file as it is, and give it one entry in its own form", async () => {
    const servers = { a: node("x"), b: { type: "http", url: "https://b.example/mcp" } };
    const { desk } = await from(servers, { start: false }, "servers");
    expect(text("client.mcp")).toBe(JSON.stringify({ servers }));
    const [command, ...args] = [
      HOST.node,
      HOST.script,
      "mcp",
      "serve",
      "--socket",
      at("gate/run/agent.sock"),
    ];
    const entry = { servers: { callgate: { type: "stdio", command, args } } };
    expect(JSON.parse(text("gate/client.json"))).toEqual(entry);
    expect(desk.out_.trimEnd().split("\n").at(-1)).toBe(`  ${JSON.stringify(entry)}`);
  });

  it.each([
    ["mcpServers", { mcpServers: { callgate: { command: "/usr/bin/node" } } }],
    ["context_servers", { context_servers: { callgate: { source: "custom", command: "/usr/bin/node" } } }],
    ["mcp", { mcp: { callgate: { type: "local", enabled: true } } }],
  ])("give an entry in the form of %s", async (key, entry) => {
    await from({ a: { command: "x" } }, { start: false }, key);
    expect(JSON.parse(text("gate/client.json"))).toMatchObject(entry);
  });

  it("have their secrets in files that only their owner reads, and nowhere else", async () => {
    const servers = {
      a: { ...node(RUDE, "--fail", SECRET), env: { TOKEN: SECRET } },
      b: { url: "https://127.0.0.1:1/mcp", headers: { Authorization: `Bearer ${SECRET}` } },
      c: { command: "x", env: { A: ["bad", SECRET] } },
    };
    const { status, desk } = await from(servers);
    expect(status).toBe(0);
    expect(text("gate/mcp/a.json")).toContain(SECRET);
    expect(text("gate/mcp/b.json")).toContain(SECRET);
    expect(["gate", "gate/mcp", "gate/run"].map((one) => mode(one))).toEqual(["700", "700", "700"]);
    for (const one of readdirSync(at("gate"), { recursive: true, encoding: "utf8" })) {
      if (!statSync(at("gate", one)).isFile()) continue;
      expect(mode("gate", one)).toBe(one === "start.sh" ? "700" : "600");
      if (!/^mcp\//.test(one)) expect(text("gate", one)).not.toContain(SECRET);
    }
    expect(desk.out_ + desk.err_).not.toContain(SECRET);
  }, 60_000);

  it("that do not start, or hang, keep nothing up and are told of in their own words, escaped", async () => {
    const servers = {
      gone: { command: "no-such-program-anywhere" },
      fails: node(RUDE, "--fail"),
      hangs: node(RUDE, "--hang"),
    };
    const { status, desk } = await from(servers, { startTimeout: 3 });
    expect(status).toBe(0);
    expect(desk.err_).toMatch(/gone can't be looked at: there is no such program \(ENOENT\)/);
    expect(desk.err_).toMatch(
      /fails can't be looked at: it ended \(exit 7.*\)\n {2}server: \\u\{1b\}\[31mno token/,
    );
    expect(desk.err_).toMatch(/hangs can't be looked at: it did not answer in 3 s/);
    expect(text("gate/callgate.toml")).toContain('#tools = ["hangs.*"]');
    expect([...(await policyOf()).roles.keys()]).toContain("fails");
  }, 60_000);

  it("that mean harm stay in comments and on their line", async () => {
    const { desk } = await from({ "r\u202eude\n[roles.x]": node(RUDE) });
    const { roles, grants } = await policyOf();
    expect([...roles.keys()]).toEqual(["agent", "r-ude-roles-x", "operator"]);
    expect(grants.map(({ id }) => id)).toEqual([
      ...["r-ude-roles-x-announces", "agent-itself", "operator-operates"],
    ]);
    expect(desk.out_).toContain('"r\\u{202e}ude\\n[roles.x]", 2 tools, 1 of which');
    expect(text("gate/callgate.toml")).toContain("# the tool no_schema is left out");
    expect(text("gate/callgate.toml")).not.toMatch(/[\u2028\u202e]/);
  }, 60_000);

  it("are not started for what their client asks its user for, nor where they are told not to be", async () => {
    const servers = { a: { ...node(RUDE), env: { KEY: hole("input:key") } } };
    const { desk } = await from(servers);
    expect(desk.err_).not.toContain("starting");
    expect(desk.err_).toContain(
      `note: a needs ${hole("input:key")}, which its client filled in: write the value into ${at("gate/mcp/a.json")}`,
    );
    rmSync(at("gate"), { recursive: true });
    const other = await from({ a: node(RUDE) }, { start: false });
    expect(other.desk.err_).toBe("");
    expect(text("gate/callgate.toml")).toContain("init was told not to start it (--no-start)");
  });

  it("stand beside other providers and callers, each with a name of its own", async () => {
    const flags = { start: false, caller: ["agent", "bot"], provider: ["files=/srv/docs"] };
    await from({ agent: node("x"), files: node("x"), operator: node("x") }, flags);
    const { roles } = await policyOf();
    expect([...roles.keys()]).toEqual([
      ...["agent", "bot", "files", "agent-2", "files-2", "operator-2", "operator"],
    ]);
  });
});

describe("nothing is written, and no server is started", () => {
  it("where something is there already", async () => {
    mkdirSync(at("gate"));
    writeFileSync(at("gate/start.sh"), "mine");
    const { status, desk } = await from({ a: node(RUDE) });
    expect(status).toBe(4);
    expect(desk.err_).toContain(`  ${at("gate/start.sh")}\n`);
    expect(desk.err_).not.toContain("starting");
    expect(readdirSync(at("gate"))).toEqual(["start.sh"]);
  });

  it("where no server can be taken over, and each is told of", async () => {
    const { status, desk } = await from({ old: { type: "sse", url: "https://x" } });
    expect(status).toBe(4);
    expect(desk.err_).toMatch(
      /^callgate: nothing was written: no server.*\n {2}old speaks the old transport/,
    );
    expect((await from({})).desk.err_).toBe("callgate: nothing was written: the file names no server\n");
  });

  it.each<[string, (path: string) => void, string]>([
    ["is not there", () => undefined, "can't be read (ENOENT)"],
    ["is a directory", (path) => mkdirSync(path), "is no file"],
    ["is no JSON", (path) => writeFileSync(path, `{"mcpServers": ${SECRET}`), "is no JSON (line 1)"],
    ["is very long", (path) => writeFileSync(path, " ".repeat(1_100_000)), "is over a mebibyte long"],
  ])("where the client's file %s", async (_, make, why) => {
    make(at("client.mcp"));
    const ran = init(at("gate"), { fromMcp: "client.mcp", startTimeout: 30 }, HERE());
    await expect(ran).rejects.toThrow(UsageFault);
    await expect(ran).rejects.toThrow(why);
    await expect(ran).rejects.not.toThrow(SECRET);
    expect(readdirSync(place)).not.toContain("gate");
  });
});

describe("a service with servers", () => {
  const flags = { systemd: true, operator: ["alice"], start: false };

  it("loads without warnings once its users are made, and gives the client's own user the agent's socket", async () => {
    const servers = { fs: { ...node("x", SECRET), env: { K: SECRET } }, web: { url: "https://w.example" } };
    const { desk } = await from(servers, { ...flags, caller: ["agent=bob"] });
    const { passwd, group } = await usersFor(at("gate/callgate.toml"));
    const bob = "bob:x:1001:1001::/home/bob:/bin/bash\n";
    const loaded = await compiled(at("gate/callgate.toml"), `${passwd}${bob}`, group);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
    expect(loaded.value.warnings).toEqual([]);
    expect(loaded.value.config.policy.roles.get("agent")?.admits).toMatchObject({ uids: new Set([1001]) });
    expect(installed).toMatchObject([
      { server: [`fs=${at("gate/mcp/fs.json")}`, `web=${at("gate/mcp/web.json")}`], files: [] },
    ]);
    expect(desk.out_ + desk.err_ + text("gate/callgate.toml")).not.toContain(SECRET);
    expect([mode("gate/mcp"), mode("gate/mcp/fs.json")]).toEqual(["700", "600"]);
  });

  it("says that its entry is for nobody's client while no user runs it", async () => {
    const { desk } = await from({ fs: node("x") }, flags);
    expect(desk.out_).toContain("(this entry is for the user callgate-agent: name whoever runs the client");
  });

  it("has no operator who approves for their own client", async () => {
    const ran = from({ fs: node("x") }, { ...flags, caller: ["agent=alice"] });
    await expect(ran).rejects.toThrow("can't both run a caller and answer its questions");
  });
});

describe("callgate mcp provide --server-file", () => {
  const provide = async (...words: string[]) => {
    const desk = new Desk();
    const status = await runProgram(["mcp", "provide", "--socket", at("none/x.sock"), ...words], desk);
    return { status, err: desk.err_ };
  };

  it.each<[string, object | string, number, string]>([
    ["that others can read", { command: "x" }, 0o604, "is open to every user"],
    ["that is no JSON", SECRET, 0o600, "is no JSON"],
    ["that says nothing", {}, 0o600, "has neither a command nor a url"],
    ["that says more", { command: "x", secret: SECRET }, 0o600, "has members beside"],
    [
      "with something to fill in",
      { command: "x", args: [hole("input:k")] },
      0o600,
      `still has ${hole("input:k")}`,
    ],
  ])("refuses a file %s", async (_, entry, bits, why) => {
    writeFileSync(at("server.json"), typeof entry === "string" ? entry : JSON.stringify(entry));
    chmodSync(at("server.json"), bits);
    const { status, err } = await provide("--server-file", at("server.json"));
    expect(status).toBe(2);
    expect(err).toContain(why);
    expect(err).not.toContain(SECRET);
  });

  it("goes with nothing else that says how the server is reached", async () => {
    writeFileSync(at("server.json"), '{"command":"x"}', { mode: 0o600 });
    for (const words of [
      ["--url", "https://x.example"],
      ["--", "x"],
      ["--header-file", "x"],
    ])
      expect(await provide("--server-file", at("server.json"), ...words)).toMatchObject({
        status: 2,
        err: expect.stringContaining("--server-file says how the server is reached"),
      });
  });
});
