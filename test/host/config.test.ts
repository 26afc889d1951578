import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { fault, ok } from "../../src/base/faults.ts";
import { ROLE_LIMITS_DEFAULT } from "../../src/base/limits.ts";
import { compiled, EXTRA_LINE, expectFault, faultLines, minimal } from "./config_fixture.ts";

const grant = (rest: string) => minimal(`[[grants]]\nid = "g"\nrole = "agent"\n${rest}`);
const BOUNDS = 'taint_max = "public"\ntaint_untrusted = false';
const allow = (rest: string) => grant(`effect = "allow"\n${BOUNDS}\n${rest}`);
const role = (rest: string) => minimal(`[roles.other]\n${rest}`);
const tool = (rest: string) => minimal(`[tools.other]\nrole = "files"\n${rest}`);

describe("a faultless config", () => {
  it("has every default filled in", async () => {
    const text = minimal();
    const { config, warnings } = await compiled(text);
    expect(warnings).toEqual([]);
    expect(config).toMatchObject({
      path: "/etc/callgate/callgate.toml",
      socketsDir: "/run/callgate",
      stateDir: "/var/lib/callgate",
      audit: { keepForMs: 31_536_000_000, checkpointEveryMs: 3_600_000, bytesMax: 1_073_741_824 },
      drainTimeoutMs: 10_000,
      frameTimeoutMs: 30_000,
      replayForMs: 86_400_000,
      logLevel: "info",
    });
    expect(config.policy.allowSameUser).toBe(false);
    expect(config.policy.gives).toEqual([]);
    expect(config.policy.version).toBe(createHash("sha256").update(text).digest("hex"));
    expect(config.policy.roles.get("agent")).toEqual({
      name: "agent",
      admits: { uids: new Set([1001]), gids: new Set() },
      socket: { mode: 0o600, gid: undefined },
      sessions: "any",
      taintScope: "role",
      isolated: false,
      operator: false,
      broker: false,
      classMax: "restricted",
      provides: [],
      limits: ROLE_LIMITS_DEFAULT,
    });
    expect(config.policy.tools.get("read_file")).toMatchObject({
      role: "files",
      description: undefined,
      effect: "read",
      floor: { class: "public", untrusted: true },
      timeoutMs: 60_000,
      resultBytesMax: 262_144,
      onOversize: "cut",
      destinations: [],
      store: "files",
      storeKey: undefined,
      record: "durable",
      auditArguments: [],
    });
    expect(config.policy.grants).toEqual([
      {
        id: "reads",
        role: "agent",
        tools: ["read_file"],
        sessions: [],
        effect: "allow",
        when: undefined,
        taintMax: { class: "internal", untrusted: true },
        aboveTaint: "deny",
        expiresAtMs: undefined,
        maxCalls: undefined,
        approvalTtlMs: 900_000,
        remember: true,
        refuseForMs: 3_600_000,
        remembers: undefined,
        equal: undefined,
        reason: undefined,
      },
    ]);
  });

  it("carries what was set", async () => {
    const { config } = await compiled(
      `${role(`users = ["operator", 4242]
groups = ["callgate-operators"]
group = 77
mode = "0600"
sessions = "opened"
taint_scope = "session"
isolated = true
connections = 1
provides = ["other."]
class_max = "internal"
limits = { joins = 3 }
[tools."other.send"]
role = "other"
class = "internal"
untrusted = false
effect = "send"
timeout = "250ms"
on_oversize = "fail"
store = false
[daemon]
sockets = "../run"
drain_timeout = "0s"
replay_for = "2d"`)}`,
    );
    expect(config).toMatchObject({ socketsDir: "/etc/run", drainTimeoutMs: 0, replayForMs: 172_800_000 });
    expect(config.policy.roles.get("other")).toMatchObject({
      admits: { uids: new Set([1002, 4242]), gids: new Set([2006]) },
      socket: { mode: 0o600, gid: 77 },
      isolated: true,
      limits: { ...ROLE_LIMITS_DEFAULT, connections: 1, joins: 3 },
    });
    expect(config.policy.tools.get("other.send")).toMatchObject({
      floor: { class: "internal", untrusted: false },
      timeoutMs: 250,
      store: undefined,
    });
  });

  it.each([
    ['users = ["agent"]', 0o600],
    ['users = ["agent"]\ngroup = "callgate-agent"', 0o660],
    ["anyone = true", 0o666],
    ['anyone = true\ngroup = "callgate-agent"', 0o660],
    ['anyone = true\nmode = "0600"', 0o600],
  ])("gives the socket of a role with %j the narrowest mode that serves it", async (text, mode) => {
    const { config } = await compiled(role(text));
    expect(config.policy.roles.get("other")?.socket.mode).toBe(mode);
  });

  it("does not load the condition compiler where no grant has a condition", async () => {
    const loadConditions = () => Promise.reject(new Error("loaded"));
    expect((await compiled(minimal(), { loadConditions })).config.policy.grants).toHaveLength(1);
  });

  it("has another version when only the text of a schema file changes", async () => {
    const text = minimal('[tools.other]\nrole = "files"\neffect = "read"\nschema_file = "s.json"');
    const version = async (json: string) =>
      (await compiled(text, { readRelative: async () => ok(json) })).config.policy.version;
    expect(await version('{"type":"object"}')).not.toBe(await version('{"type":"object","title":""}'));
  });

  it("compiles a condition once and keeps its source", async () => {
    const { config } = await compiled(allow(`tools = ["read_file"]\nwhen = '''\nargs.path\n== "x"'''`));
    expect(config.policy.grants[1]?.when?.source).toBe('args.path\n== "x"');
  });
});

describe("several faults", () => {
  it("are all reported in one go, in the order of the file", async () => {
    const text = `allow_same_user = "yes"
[daemon]
drain_timeout = "10"
[roles.agent]
usrs = ["agent"]
[tools.x]
role = "nobody-such"
effect = "reed"
[[grants]]
id = "Bad Id"
role = "agnt"
tools = []
effect = "allow"`;
    expect((await faultLines(text)).map((line) => line.replace(/^(\d+:\d+) ([^;,]*).*$/s, "$1 $2"))).toEqual([
      "1:19 allow_same_user must be true or false (without quotes)",
      '3:17 drain_timeout must be a duration from "0s" to "1h" (a number and ms',
      "4:8 the role admits nobody",
      '5:1 unknown key "usrs" in a role',
      '7:8 no role "nobody-such"',
      '8:10 effect must be one of "read"',
      "9:3 an allow must say up to which taint it holds",
      "9:3 an allow must say up to which taint it holds",
      "10:6 id must be a lower-case letter",
      '11:8 no role "agnt"',
      "12:9 tools must not be empty",
    ]);
  });

  it("include duplicate keys beside all others", async () => {
    const lines = await faultLines(minimal('[log]\nlevel = "info"\nlevel = "warn"\n[daemon]\nsocket = "x"'));
    expect(lines.map((line) => line.split(" ")[0])).toEqual([`${EXTRA_LINE + 2}:1`, `${EXTRA_LINE + 4}:1`]);
  });
});

describe("the file as a whole", () => {
  it.each([
    ["", "1:1"],
    ["# nothing\n", "1:1"],
    ["[roles]", "1:2"],
  ])("an emptied config (%j) is refused instead of admitting nobody from now on", (text, at) =>
    expectFault(text, at, "no role is configured"),
  );

  it("keys named like an object's own machinery are unknown, not inherited", async () => {
    for (const key of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      await expectFault(minimal(`[${key}]`), `${EXTRA_LINE}:2`, `unknown key "${key}" in the file`);
      await expectFault(tool(`${key} = 1 #!`), "@:1", `unknown key "${key}" in a tool`);
    }
  });

  it("shows odd characters of a key escaped", () =>
    expectFault(minimal('["a\u202eb\\u001b[2J"]'), `${EXTRA_LINE}:2`, '"a\\u202eb\\u001b[2J"'));

  it.each([
    ["grants = 3", "grants must be a list of tables, each begun with [[grants]], not an integer"],
    ["[grants]", "grants must be a list of tables, each begun with [[grants]], not a table"],
    ["[[log]]", "log must be a table, begun with [log], not a list"],
    ["tools = []", "tools must be a table, begun with [tools], not a list"],
  ])("%s has the wrong shape", (text, message) =>
    expectFault(
      `${text}${text.startsWith("[") ? "" : "\n"}\n[roles.agent]\nusers = ["agent"]`,
      text.startsWith("[[") ? "1:3" : text.startsWith("[") ? "1:2" : `1:${text.indexOf("=") + 3}`,
      message,
    ),
  );

  it("a duration is a number and a unit, nothing else, and within its bounds", async () => {
    for (const wrong of [
      '"10"',
      "10",
      '"10 s"',
      '"-1s"',
      '"1.5s"',
      '"1h30m"',
      '"10S"',
      '"010s"',
      '"2h"',
      '"9999999999999s"',
    ]) {
      await expectFault(
        minimal(`[daemon]\ndrain_timeout = ${wrong} #!`),
        "@:17",
        "drain_timeout must be a duration",
      );
    }
  });

  it("a socket path that the kernel would cut is refused at its role", async () => {
    const path = (bytes: number) => `/${"d".repeat(bytes - "//agent.sock".length)}`;
    const text = (bytes: number) => `[daemon]\nsockets = "${path(bytes)}"\n[roles.agent]\nusers = [1]`;
    expect((await compiled(text(107))).config.socketsDir).toBe(path(107));
    await expectFault(text(108), "3:8", "has 108 bytes; a socket's path has at most 107");
    // In characters it would fit.
    await expectFault(text(107).replace("dd", "\u00e9d"), "3:8", "has 108 bytes");
  });

  it("a socket directory with a NUL is refused", () =>
    expectFault(minimal('[daemon]\nsockets = "/run\\u0000/x" #!'), "@:11", "sockets must be the path"));
});

describe("roles", () => {
  it.each([
    ["", /admits nobody; write users/],
    ["anyone = false", /admits nobody/],
    ["users = [] #!", /admits nobody/],
    ["users = []\ngroups = []", /admits nobody/],
    ["groups = []", /admits nobody/],
  ])("one that admits nobody is refused: %j", async (text, message) => {
    const lines = await faultLines(role(text));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(message);
  });

  it("an empty list beside a list that names somebody is fine", async () => {
    const { config } = await compiled(role('users = ["agent"]\ngroups = []'));
    expect(config.policy.roles.get("other")?.admits).toEqual({ uids: new Set([1001]), gids: new Set() });
    await compiled(role('users = []\ngroups = ["callgate-agent"]'));
  });

  it.each(["users", "groups"])("anyone = true and %s exclude each other", (key) =>
    expectFault(role(`anyone = true\n${key} = [1] #!`), "@:1", "mean nothing beside anyone = true"),
  );

  it.each([
    ['users = ["agnt"] #!', "@:10", 'no user "agnt" in /etc/passwd; create it, or give its numeric id'],
    ['groups = ["agent"] #!', "@:11", 'no group "agent" in /etc/group'],
    ['users = ["minus"] #!', "@:10", 'no user "minus"'],
    ['users = ["nobody"] #!', "@:10", "user id 65534 stands for nobody in particular"],
    ["users = [65534] #!", "@:10", "user id 65534 stands for nobody"],
    ["users = [4294967295] #!", "@:10", "must be a name in quotes or a numeric id"],
    ["users = [-1] #!", "@:10", "must be a name in quotes or a numeric id"],
    ['users = ["1001"] #!', "@:10", "must be a name in quotes or a numeric id without quotes"],
    ['users = [""] #!', "@:10", "must be a name"],
    ['users = ["agent", "agent"] #!', "@:19", 'users names "agent" twice'],
    ['users = ["agent"]\ngroup = "none-such" #!', "@:9", 'no group "none-such"'],
  ])("%s is refused", (text, at, message) => expectFault(role(text), at, message));

  it("the first line of a user's name counts, as for the C library", async () => {
    const { config } = await compiled(role('users = ["agent"]'));
    expect(config.policy.roles.get("other")?.admits).toMatchObject({ uids: new Set([1001]) });
  });

  it.each(["0777", "0644", "0620", "600", "0o600", "4600", "0000"])("mode %j is refused", (mode) =>
    expectFault(role(`users = [1]\nmode = "${mode}" #!`), "@:8", 'mode must be "0600", "0660" or'),
  );

  it("a socket is open to the world only where anyone may connect", async () => {
    await expectFault(role('users = [1]\nmode = "0666" #!'), "@:8", "lets every local user connect");
    await compiled(role('anyone = true\nmode = "0666"'));
  });

  it("a session's name that the caller picks is no clean slate", async () => {
    await expectFault(role('users = [1]\ntaint_scope = "session" #!'), "@:15", 'needs sessions = "opened"');
    await expectFault(
      role('users = [1]\ntaint_scope = "session" #!\nsessions = "any"'),
      "@:15",
      'needs sessions = "opened"',
    );
  });

  it.each(["Agent", "1agent", "a:b", "a.b", "", "\u0430gent", "a".repeat(49)])(
    "%j is no role name",
    async (name) => {
      const lines = await faultLines(minimal(`[roles.${JSON.stringify(name)}]\nusers = [1]`));
      expect(lines).toHaveLength(1);
      expect(lines[0]).toContain("is no role name");
    },
  );

  it("a key in the wrong place is told its place", async () => {
    await expectFault(role("users = [1]\njoins = 3 #!"), "@:1", "[roles.NAME.limits]");
    await expectFault(role("users = [1]\nlimits.connections = 3 #!"), "@:8", "in the role itself");
  });

  it.each(["0", "-1", "1.0", "1e3", "true", '"1"', "10001", "nan"])("connections = %s is refused", (value) =>
    expectFault(
      role(`users = [1]\nconnections = ${value} #!`),
      "@:15",
      "connections must be a whole number from 1 to 10000",
    ),
  );

  it.each(Object.keys(ROLE_LIMITS_DEFAULT).filter((key) => key !== "connections"))(
    "the limit %s has bounds",
    async (key) => {
      for (const value of [0, -1, 2 ** 53 - 1]) {
        await expectFault(
          role(`users = [1]\nlimits.${key} = ${value} #!`),
          `@:${key.length + 11}`,
          `${key} must be a whole number`,
        );
      }
    },
  );
});

describe("prefixes that a role may announce under", () => {
  it.each(["callgate", "callgate.", "callgate.x", "callgate_x", "c", "call", "callgate-"])(
    "%j is the broker's",
    (prefix) =>
      expectFault(role(`users = [1]\nprovides = ["${prefix}"] #!`), "@:13", "the broker's own callgate.*"),
  );

  it.each(["", "*", "a*", "A", ".", "a b", "callgat\u0435."])("%j is no prefix", (prefix) =>
    expectFault(role(`users = [1]\nprovides = ["${prefix}"] #!`), "@:13", /each of provides must/),
  );

  it("never overlap between roles, in either direction", async () => {
    for (const [one, other] of [
      ["x.", "x.y."],
      ["x.y.", "x."],
      ["x.", "x."],
    ]) {
      await expectFault(
        role(`users = [1]\nprovides = ["${one}"]\n[roles.third]\nusers = [2]\nprovides = ["${other}"] #!`),
        "@:13",
        "two providers cannot own one name",
      );
    }
    await compiled(role('users = [1]\nprovides = ["x.", "x.y."]'));
  });

  it("never cover a tool that the config gives to another role", async () => {
    await expectFault(
      role('users = [1]\nprovides = ["read_"] #!'),
      "@:13",
      'covers the tool "read_file", which line 5',
    );
    await compiled(
      minimal().replace('users = ["callgate-files"]', 'users = ["callgate-files"]\nprovides = ["read_"]'),
    );
  });
});

describe("tools", () => {
  it.each(["callgate", "callgate.status", "callgate.x"])(
    "a tool called %j would pass for the broker's own",
    (name) =>
      expectFault(minimal(`[tools."${name}"] #!\nrole = "files"`), "@:8", "belongs to the broker itself"),
  );

  it.each(["Read", "a..b", ".a", "a.", "a:b", "", "a*", "re\u0430d", "a".repeat(129)])(
    "%j is no tool name",
    (name) => expectFault(minimal(`[tools."${name}"] #!\nrole = "files"`), "@:8", "is no tool name"),
  );

  it("a tool name with a dot and no quotes is told its quotes", async () => {
    const lines = await faultLines(minimal('[tools.fs.read]\nrole = "files"'));
    expect(lines).toEqual([
      `${EXTRA_LINE}:8 a tool needs "role", which is missing`,
      `${EXTRA_LINE}:11 unknown key "read" in a tool; a tool name with a dot stands in quotes: [tools."fs.read"]`,
    ]);
  });

  it("a role that does not exist is refused with the one that was likely meant", () =>
    expectFault(minimal('[tools.x]\nrole = "fils" #!'), "@:8", 'no role "fils"; did you mean "files"?'));

  it("a floor above what its provider may give would fail every result", () =>
    expectFault(
      minimal(
        '[tools.x]\nrole = "low"\nclass = "confidential" #!\n[roles.low]\nusers = [9]\nclass_max = "internal"',
      ),
      "@:9",
      'is above class_max "internal" of role low',
    ));

  it.each(["destinations = ['pth'] #!", "store_key = 'pth' #!"])(
    "%s must be an argument of the schema",
    async (line) => {
      const schema = "schema = { type = 'object', properties = { path = {} } }";
      await expectFault(
        tool(`${schema}\n${line}`),
        line.startsWith("d") ? "@:17" : "@:13",
        'no argument "pth"; did you mean "path"?',
      );
      await compiled(tool(line));
      await compiled(tool(`${schema}\n${line.replace("pth", "path")}`));
    },
  );

  it("an argument named like an object's own machinery is not declared by inheritance", () =>
    expectFault(
      tool("schema = { type = 'object', properties = { path = {} } }\ndestinations = ['constructor'] #!"),
      "@:17",
      "declares no argument",
    ));

  it("a store is a name or false, and its key needs one", async () => {
    await expectFault(tool("store = true #!"), "@:9", "store must be");
    await expectFault(tool("store = 'A B' #!"), "@:9", "store must be the name of a store");
    await expectFault(
      tool("store = false\nstore_key = 'path' #!"),
      "@:13",
      "means nothing beside store = false",
    );
  });

  it("a fault within an inline schema is reported at its own place", async () => {
    await expectFault(
      tool("[tools.other.schema]\n\ntype = 'objet' #!"),
      "@:8",
      'schema at "/type": must be object',
    );
    await expectFault(tool("schema = { } #!"), "@:10", 'schema at "/type": must be object');
    await expectFault(
      tool("schema.type = 'object'\nschema.const = 2027-01-01 #!"),
      "@:16",
      "a value that JSON has too",
    );
    await expectFault(tool("schema.type = 'object'\nschema.maximum = inf #!"), "@:18", "finite number");
    await expectFault(tool("schema = 'x.json' #!"), "@:10", "schema must be a table");
  });

  it("a schema keeps its numbers exact and its odd keys", async () => {
    const { config } = await compiled(
      tool(
        "schema = { type = 'object', maximum = 9007199254740991, properties.__proto__ = { multipleOf = 0.5 } }",
      ),
    );
    const source = config.policy.tools.get("other")?.schema?.source;
    expect(source).toEqual(
      new Map<string, unknown>([
        ["type", "object"],
        ["maximum", 9007199254740991n],
        ["properties", new Map([["__proto__", new Map([["multipleOf", 0.5]])]])],
      ]),
    );
  });

  it("a schema file that is missing, broken or wrong is reported at its name, with its own line", async () => {
    const text = tool('schema_file = "s.json" #!');
    const at = `${EXTRA_LINE + 2}:15 "s.json"`;
    const withFile = (content: string) => faultLines(text, { readRelative: async () => ok(content) });
    expect(await faultLines(text, { readRelative: async () => fault("no such file") })).toEqual([
      `${EXTRA_LINE + 2}:15 cannot read "s.json": no such file`,
    ]);
    expect((await withFile('{\n"a": 1,\n"a": 2}'))[0]).toContain(`${at} line 3 is no strict JSON`);
    expect(await withFile('{"type":"array"}')).toEqual([`${at} at "/type": must be object`]);
    await expectFault(tool('schema = { type = "object" }\nschema_file = "s.json" #!'), "@:1", "not both");
  });
});

describe("grants", () => {
  it.each(["id", "role", "tools", "effect", "taint_max", "taint_untrusted"])(
    "one without %s is refused",
    async (key) => {
      const text = allow('tools = ["read_file"]');
      const kept = text
        .split("\n")
        .filter((line, index) => index < EXTRA_LINE || !line.startsWith(`${key} =`));
      const lines = await faultLines(kept.join("\n"));
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatch(new RegExp(`^${EXTRA_LINE}:3 .*${key}`));
    },
  );

  it.each([
    "taint_max = 'public'",
    "taint_untrusted = true",
    "above_taint = 'ask'",
    "expires = 2030-01-01T00:00:00Z",
  ])("a deny with %s is refused: it holds always", (line) =>
    expectFault(
      grant(`effect = "deny"\ntools = ["read_file"]\n${line} #!`),
      "@:1",
      "a deny holds at any taint and for good",
    ),
  );

  it("two of one id are refused, naming the first", () =>
    expectFault(
      minimal(`[[grants]]\nid = "reads" #!\nrole = "agent"\ntools = ["read_file"]\neffect = "deny"`),
      "@:6",
      'line 10 has a grant "reads" already',
    ));

  it.each(["[]", '[""]', '["*x"]', '["a*b"]', '["Read"]', '["a", "a"]', "[1]", '"read_file"'])(
    "tools = %s is refused: it matches nothing, or not what it seems to",
    async (tools) => {
      const lines = await faultLines(grant(`effect = "deny"\ntools = ${tools}`));
      expect(lines.length).toBeGreaterThan(0);
      for (const line of lines) expect(line.startsWith(`${EXTRA_LINE + 4}:`)).toBe(true);
    },
  );

  it("a tool that does not exist is refused with the one that was likely meant", async () => {
    await expectFault(
      allow('tools = ["read_fil"] #!'),
      "@:10",
      'no such tool "read_fil"; did you mean "read_file"?',
    );
    await expectFault(
      allow('tools = ["callgate.statu"] #!'),
      "@:10",
      'no tool "callgate.statu"; did you mean "callgate.status"?',
    );
    await expectFault(allow('tools = ["__proto__"] #!'), "@:10", "each of tools must be");
    await expectFault(allow('tools = ["constructor"] #!'), "@:10", 'no such tool "constructor"');
    await expectFault(allow('tools = ["callgate"] #!'), "@:10", 'no such tool "callgate"');
  });

  it("sessions are told apart only where somebody else opens them", async () => {
    const named = 'tools = ["read_file"]\nsessions = ["a-*"] #!';
    await expectFault(allow(named), "@:1", "names its own sessions");
    const opened = allow(named).replace('users = ["agent"]', 'users = ["agent"]\nsessions = "opened"');
    expect((await compiled(opened)).config.policy.grants[1]?.sessions).toEqual(["a-*"]);
    await expectFault(opened.replace('["a-*"]', "[]"), "@:12", "sessions must not be empty");
    await expectFault(opened.replace('["a-*"]', '["*a"]'), "@:13", "each of sessions must be");
  });

  it("an expiry says where its clock stands", async () => {
    for (const wrong of ["2027-01-01", "2027-01-01T00:00:00", '"2027-01-01T00:00:00Z"', "1"]) {
      await expectFault(
        allow(`tools = ["read_file"]\nexpires = ${wrong} #!`),
        "@:11",
        "such as 2027-01-01T00:00:00Z",
      );
    }
    const { config } = await compiled(allow('tools = ["read_file"]\nexpires = 2027-01-01T00:00:00+01:00'));
    expect(config.policy.grants[1]?.expiresAtMs).toBe(Date.UTC(2026, 11, 31, 23));
  });

  it("a condition that does not compile is reported at its text, and an empty one is none", async () => {
    await expectFault(allow('tools = ["read_file"]\nwhen = "((" #!'), "@:8", "does not compile: unbalanced");
    await expectFault(allow('tools = ["read_file"]\nwhen = "" #!'), "@:8", "when must not be empty");
  });

  it("what a compiler says about a text of the file stays on one line and moves no cursor", async () => {
    const compile = (source: string) => fault(`cannot read ${source}`);
    const lines = await faultLines(allow('tools = ["read_file"]\nwhen = "\\u001b[2J\\n\u202e"'), {
      loadConditions: async () => ({ compile }),
    });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("cannot read \\u001b[2J\\u000a\\u202e");
  });

  it("a conditional allow on a tool whose arguments nothing closes is refused", async () => {
    const conditional = (tools: string, schema: string) =>
      allow(`when = "true"\ntools = ["${tools}"] #!\n[tools.read_it]\nrole = "files"\n${schema}`);
    for (const pattern of ["read_it", "read_*", "*"]) {
      await expectFault(conditional(pattern, ""), "@:10", 'the tool "read_it" has no schema');
      await expectFault(
        conditional(pattern, "schema = { type = 'object' }"),
        "@:10",
        "lets unknown arguments through",
      );
      await compiled(conditional(pattern, "schema = { type = 'object', additionalProperties = false }"));
    }
    await compiled(
      grant(`effect = "deny"\nwhen = "true"\ntools = ["read_it"]\n[tools.read_it]\nrole = "files"`),
    );
  });

  it("a schema that was refused is reported once, not again at every conditional allow", () =>
    expectFault(
      allow(`when = "true"\ntools = ["x"]\n[tools.x]\nrole = "files"\nschema.type = "z" #!`),
      "@:15",
      "must be object",
    ));

  it("a key of no version yet is unknown, not ignored", () =>
    expectFault(
      allow('tools = ["read_file"]\non_untrusted = "withhold" #!'),
      "@:1",
      'unknown key "on_untrusted"',
    ));
});
