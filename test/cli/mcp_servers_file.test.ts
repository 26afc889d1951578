import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJsonc } from "../../src/cli/jsonc.ts";
import { type FillIn, folderOf } from "../../src/cli/mcp_placeholders.ts";
import {
  type McpServerReach,
  parseServerFile,
  readEntry,
  serverFileText,
} from "../../src/cli/mcp_server_entry.ts";
import { type McpServersRead, readMcpServers } from "../../src/cli/mcp_servers_file.ts";

const FILL_IN: FillIn = {
  env: { HOME: "/home/ada", TOKEN: "from-here" },
  folder: undefined,
  home: "/home/ada",
  readText: () => undefined,
};

interface Given {
  readonly taken?: readonly string[];
  readonly fillIn?: Partial<FillIn>;
}

function attempt(file: unknown, { taken = [], fillIn }: Given = {}) {
  const text = typeof file === "string" ? file : JSON.stringify(file);
  return readMcpServers(text, { roleCharsMax: 22, taken, fillIn: { ...FILL_IN, ...fillIn } });
}

function read(file: unknown, given: Given = {}): McpServersRead {
  const found = attempt(file, given);
  if (!found.ok) throw new Error(found.fault);
  return found.value;
}

const first = (file: unknown, given: Given = {}) => read(file, given).servers[0];

/** As clients write that they fill something in. */
const hole = (name: string): string => `\${${name}}`;

describe("a client's file", () => {
  it("is read as desktop clients have it, commands and addresses, with what belongs to the client told of", () => {
    const file = {
      theme: "dark",
      mcpServers: {
        "My Files": { command: "npx", args: ["-y", "x"], env: { KEY: "t", N: 5, OFF: null }, cwd: "/srv" },
        remote: { type: "http", url: "https://mcp.example/mcp", headers: { Authorization: "Bearer t" } },
        roo: { type: "streamable-http", url: "https://a.example", alwaysAllow: ["x"], timeout: 5 },
      },
    };
    expect(read(`\ufeff${JSON.stringify(file)}`)).toEqual({
      form: "mcpServers",
      servers: [
        {
          ...{ name: "My Files", role: "my-files", holes: [], remarks: [] },
          reach: {
            kind: "command",
            command: "npx",
            args: ["-y", "x"],
            env: { KEY: "t", N: "5" },
            cwd: "/srv",
          },
        },
        {
          ...{ name: "remote", role: "remote", holes: [], remarks: [] },
          reach: { kind: "url", url: "https://mcp.example/mcp", headers: { Authorization: "Bearer t" } },
        },
        {
          ...{ name: "roo", role: "roo", holes: [] },
          remarks: ["not taken over, being the client's own: alwaysAllow, timeout"],
          reach: { kind: "url", url: "https://a.example", headers: {} },
        },
      ],
      leftOut: [],
    });
  });

  it("is read as editors have it: with comments, commas before a bracket, and what they ask their user for", () => {
    const text = `{
      // servers of this project, "quoted" // twice
      "inputs": [{ "type": "promptString", "id": "key", "password": true }],
      "servers": {
        /* a, b, */
        "a": { "type": "stdio", "command": "a", "args": ["//not a comment", "/* nor this */", ",]",], },
        "b": { "type": "http", "url": "https://b.example/mcp", "headers": { "X-Key": "${hole("input:key")}" } },
      },
    }`;
    const { form, servers } = read(text);
    expect(form).toBe("servers");
    expect(servers[0]?.reach).toMatchObject({ args: ["//not a comment", "/* nor this */", ",]"] });
    expect(servers[1]?.holes).toEqual([hole("input:key")]);
  });

  it.each([
    ["Zed", { context_servers: { a: { source: "custom", command: "a", args: ["b"], env: {} } } }],
    ["Zed, once", { context_servers: { a: { command: { path: "a", args: ["b"], env: {} } } } }],
    ["VS Code's settings", { mcp: { servers: { a: { command: "a", args: ["b"] } } } }],
    ["opencode", { mcp: { a: { type: "local", command: ["a", "b"], environment: {}, enabled: true } } }],
  ])("is read as %s has it", (_, file) => {
    expect(first(file)?.reach).toEqual({
      kind: "command",
      command: "a",
      args: ["b"],
      env: {},
      cwd: undefined,
    });
  });

  it.each([
    ["Windsurf", { serverUrl: "https://a.example/mcp" }],
    ["Gemini, beside the old address", { httpUrl: "https://a.example/mcp", url: "https://a.example/sse" }],
    ["opencode", { type: "remote", url: "https://a.example/mcp" }],
  ])("has an address as %s has it", (_, entry) => {
    expect(first({ mcpServers: { a: entry } })?.reach).toMatchObject({ url: "https://a.example/mcp" });
  });

  it("loses headers that are the protocol's own, and no others", () => {
    const headers = { Accept: "text/event-stream", "content-type": "x/y", "X-Key": "k" };
    expect(first({ mcpServers: { a: { url: "https://a.example", headers } } })?.reach).toMatchObject({
      headers: { "X-Key": "k" },
    });
  });
});

describe("what a client fills in", () => {
  it("is filled in as it does it, where that is known", () => {
    const entry = {
      command: `${hole("userHome")}/bin/a`,
      args: [`${hole("workspaceFolder")}/x`, hole("NOT_THERE:-otherwise"), hole("input:secret")],
      env: { A: hole("env:TOKEN"), B: "$TOKEN", C: hole("TOKEN"), D: hole("NOT_THERE"), E: "pa$$word" },
    };
    const server = first({ servers: { a: entry } }, { fillIn: { folder: "/srv/project" } });
    expect(server?.reach).toEqual({
      kind: "command",
      command: "/home/ada/bin/a",
      args: ["/srv/project/x", "otherwise", hole("input:secret")],
      env: { A: "from-here", B: "from-here", C: "from-here", D: hole("NOT_THERE"), E: "pa$$word" },
      cwd: "/srv/project",
    });
    expect(server?.holes).toEqual([hole("input:secret"), hole("NOT_THERE")]);
  });

  it("is left to a shell where one reads it", () => {
    const args = ["-c", `exec a ${hole("TOKEN")} ${hole("X:-y")} ${hole("env:TOKEN")}`];
    expect(first({ mcpServers: { a: { command: "/bin/sh", args } } })?.reach).toMatchObject({
      args: ["-c", `exec a ${hole("TOKEN")} ${hole("X:-y")} from-here`],
    });
  });

  it("never comes from where variables of the language come from", () => {
    const env = { A: hole("constructor"), B: hole("env:toString") };
    expect(first({ mcpServers: { a: { command: "a", env } } })?.reach).toMatchObject({ env });
  });

  it("has its folder from the file's own place", () => {
    expect(folderOf("/p/.vscode/mcp.json")).toBe("/p");
    expect(folderOf("/p/.cursor/mcp.json")).toBe("/p");
    expect(folderOf("/p/.mcp.json")).toBe("/p");
    expect(folderOf("/home/ada/.config/Claude/claude_desktop_config.json")).toBeUndefined();
  });

  it("comes from the file of variables that the entry names", () => {
    const files: Readonly<Record<string, string>> = { "/p/.env": "A=1\nexport B='2'\nC=3 # three\n" };
    const fillIn = { folder: "/p", readText: (path: string) => files[path] };
    const entry = { command: "a", envFile: `${hole("workspaceFolder")}/.env`, env: { A: "own" } };
    expect(first({ servers: { a: entry } }, { fillIn })).toMatchObject({
      reach: { env: { A: "own", B: "2", C: "3" } },
      remarks: [expect.stringContaining("envFile")],
    });
    expect(read({ servers: { a: { ...entry, envFile: "/elsewhere" } } }, { fillIn }).leftOut).toEqual([
      "a has its variables in a file (envFile) that can't be read: put them into env",
    ]);
  });
});

describe("a server", () => {
  it("gets a role of its own, in the grammar, short enough and not taken", () => {
    const names = [
      ...["Git Hub", "git-hub", "git_hub", "GIT HUB", "123", "ファイル", "operator", "a__b", "__proto__"],
      ...["a".repeat(60), `${"a".repeat(60)}b`],
    ];
    const servers = `{${names.map((name) => `${JSON.stringify(name)}:{"command":"x"}`).join()}}`;
    const found = read(`{"mcpServers":${servers}}`, { taken: ["operator"] }).servers;
    const roles = found.map(({ role }) => role);
    expect(new Set(roles).size).toBe(names.length);
    for (const role of roles) expect(role).toMatch(/^[a-z](?:[a-z0-9]|[_-](?![_-]|$)){0,21}$/);
    expect(roles).toContain("git-hub-2");
    expect(roles).not.toContain("operator");
  });

  it.each<[string, unknown, string]>([
    ["switched off", { command: "x", disabled: true }, "is switched off in the file"],
    ["switched off, as others say it", { command: "x", enabled: false }, "is switched off in the file"],
    ["of the old transport", { type: "sse", url: "https://x/secret" }, "speaks the old transport"],
    [
      "of the old transport, said so",
      { transport: "sse", url: "https://x/secret" },
      "speaks the old transport",
    ],
    ["of WebSocket", { type: "ws", url: "wss://secret" }, "speaks WebSocket"],
    ["of an extension", { source: "extension", settings: { key: "secret" } }, "comes with an extension"],
    ["without a command", { args: ["secret"] }, "has neither a command nor a url"],
    ["with args that are none", { command: "x", args: "secret" }, "has args"],
    ["with an env that is none", { command: "x", env: { A: ["secret"] } }, "has an env"],
    ["with a variable that is none", { command: "x", env: { "A-B": "secret" } }, "has an env"],
    ["with a variable of ours", { command: "x", env: { CALLGATE_SOCKET: "secret" } }, "CALLGATE_SOCKET"],
    ["with a NUL", { command: "x", args: ["secret\0"] }, "has a text with a NUL"],
    ["with another scheme", { url: "ftp://secret" }, "has a url that must be"],
    ["that all could listen to", { url: "http://secret.example/mcp" }, "has a url that must be https"],
    ["with a password in it", { url: "https://u:secret@x.example" }, "has a url that must hold no user"],
    [
      "with a header of two lines",
      { url: "https://x.example", headers: { A: "b\r\nsecret: c" } },
      "a header",
    ],
    ["with one header twice", { url: "https://x.example", headers: { A: "secret", a: "secret" } }, "twice"],
    ["in a place of no place", { command: "x", cwd: "secret" }, "has a cwd that is not absolute"],
    ["that is callgate", { command: "node", args: ["c.js", "mcp", "serve"] }, "is callgate itself"],
    ["that is nothing", null, "is no object"],
  ])("%s is left out and said why, without a value of its", (_, entry, why) => {
    const { servers, leftOut } = read({ mcpServers: { one: entry, two: { command: "y" } } });
    expect(servers.map(({ name }) => name)).toEqual(["two"]);
    expect(leftOut).toEqual([expect.stringMatching(/^one /)]);
    expect(leftOut[0]).toContain(why);
    expect(leftOut[0]).not.toContain("secret");
  });

  it("whose name turns the line is shown as what it is", () => {
    const { leftOut } = read({ mcpServers: { "a\u202e\n\u2028b": { url: "x" } } });
    expect(leftOut[0]).toMatch(/^a\\u\{202e\}\\n\\u\{2028\}b /);
  });
});

describe("a file that can't be read", () => {
  it.each([
    ["nothing", "", "is empty"],
    ["half a file", '{\n"mcpServers": {\n"a": {"command": secret', "is no JSON (line 3)"],
    ["a list", "[]", "names no servers"],
    [
      "servers in a list",
      '{"mcpServers":[{"name":"secret"}]}',
      "its mcpServers is not what clients have there",
    ],
    ["other settings", '{"theme":"secret"}', "names no servers"],
    [
      "one server twice",
      '{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}',
      "has mcpServers / a twice",
    ],
    [
      "a member twice",
      '{"mcpServers":{"a":{"env":{"K":"1","K":"2"}}}}',
      "has mcpServers / a / env / K twice",
    ],
  ])("is refused: %s", (_, text, why) => {
    const found = attempt(text);
    expect(found).toMatchObject({ ok: false, fault: expect.stringContaining(why) });
    expect(JSON.stringify(found)).not.toContain("secret");
  });

  it("is not refused for what stands twice elsewhere, nor for names that differ in case", () => {
    const text = '{"x":1,"x":2,"mcpServers":{"a":{"command":"x","env":{"http_proxy":"1","HTTP_PROXY":"2"}}}}';
    expect(read(text).servers).toHaveLength(1);
  });

  it("takes no longer than its length, whatever stands in it", () => {
    for (const piece of ["/*", '"\\"', ",", "[", '"a":', "// \n", ", /* */ "])
      expect(parseJsonc(`{${piece.repeat(200_000 / piece.length)}`).ok).toBe(false);
  }, 20_000);
});

describe("JSON with comments", () => {
  it("is JSON where it has none", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.boolean(), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent ? 2 : 0);
        expect(parseJsonc(text)).toEqual({ ok: true, value: { value: JSON.parse(text), repeated: [] } });
      }),
    );
  });
});

describe("a server's own file", () => {
  const command = fc.record({
    kind: fc.constant("command" as const),
    command: fc.string({ minLength: 1, unit: "binary" }).filter((text) => !text.includes("\0")),
    args: fc.array(fc.string({ unit: "binary" }).filter((text) => !text.includes("\0"))),
    env: fc.dictionary(
      fc.stringMatching(/^[A-Z_]{1,8}$/),
      fc.string({ unit: "binary" }).filter((text) => !text.includes("\0")),
    ),
    cwd: fc.option(fc.constant("/srv"), { nil: undefined }),
  });

  it("says what was taken over, whatever stands in it", () => {
    fc.assert(
      fc.property(command, (reach: McpServerReach) => {
        const text = serverFileText(reach);
        const again = parseServerFile(text);
        if (!again.ok) expect(again.fault).toContain("still has");
        else expect(again.value).toEqual(JSON.parse(JSON.stringify(reach)));
      }),
    );
  });

  it("is refused while something is to be filled in, and where it says more than it is read for", () => {
    const fault = (entry: object) => {
      const found = parseServerFile(JSON.stringify(entry));
      return found.ok ? "" : found.fault;
    };
    expect(fault({ command: "a", env: { K: hole("K") } })).toContain(`still has ${hole("K")}`);
    expect(fault({ url: "https://a.example", headers: { K: hole("input:k") } })).toContain("still has");
    expect(fault({ command: "a", arg: ["secret"] })).toMatch(/^has members beside/);
    expect(readEntry({ command: "sh", args: ["-c", `exec ${hole("X")}`] }).ok).toBe(true);
    expect(fault({ command: "sh", args: ["-c", `exec ${hole("X")}`] })).toBe("");
  });
});
