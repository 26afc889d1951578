import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UsageFault } from "../../src/cli/call.ts";
import type { Flags } from "../../src/cli/command_row.ts";
import { writePlan } from "../../src/cli/init_write.ts";
import { runProgram } from "../../src/cli/program.ts";
import { Desk } from "./desk.ts";
import { compiled, HOST, init, PASSWD, usersFor } from "./init_rig.ts";

/** Of the tests themselves: the directories are theirs. */
const UID = process.getuid?.() ?? 0;

let place: string;
let umask: number;

beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "callgate-init-")));
  umask = process.umask(0o022);
});

afterEach(() => {
  process.umask(umask);
  rmSync(place, { recursive: true, force: true });
});

const at = (...names: string[]) => join(place, ...names);
const mode = (path: string) => (statSync(path).mode & 0o7777).toString(8);
const tree = (path: string) => readdirSync(path, { recursive: true, encoding: "utf8" }).toSorted();

describe("a tryout", () => {
  it("has a config without mistakes, something trusted and something untrusted to read, and nobody else gets in", async () => {
    const { status, desk } = await init(at("demo"), {}, { ...HOST, uid: UID });
    expect({ status, err: desk.err_ }).toEqual({ status: 0, err: "" });
    expect(tree(at("demo"))).toEqual([
      ...["callgate.toml", "inbox", "inbox/letter.txt", "notes", "notes/plan.txt", "run"],
    ]);
    const loaded = await compiled(at("demo/callgate.toml"), PASSWD);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
    const { policy, socketsDir, stateDir } = loaded.value.config;
    expect({ socketsDir, stateDir }).toEqual({ socketsDir: at("demo/run"), stateDir: at("demo/state") });
    expect([...policy.roles.keys()]).toEqual(["agent", "files", "operator"]);
    for (const role of policy.roles.values()) {
      expect(role.admits).toEqual({ uids: new Set([UID]), gids: new Set() });
      expect(role.socket.mode).toBe(0o600);
    }
  });

  it("is warned of for being one user's, and for nothing else", async () => {
    await init(at("demo"));
    const loaded = await compiled(at("demo/callgate.toml"), PASSWD);
    const codes = loaded.ok ? loaded.value.warnings.map(({ code }) => code) : [];
    expect(codes).toEqual(["same_user", "shared_user", "approver_shares_users", "operator_shared"]);
  });

  it("says the commands that try it, as they are typed from where one is", async () => {
    const { desk } = await init(at("demo"), {}, { ...HOST, workingDirectory: place });
    expect(desk.out_).toContain("  callgate serve --config demo/callgate.toml\n");
    expect(desk.out_).toContain(
      `  callgate role files --socket demo/run/files.sock --root internal,trusted,rw:${at("demo/notes")} --root internal,untrusted,ro:${at("demo/inbox")}\n`,
    );
    expect(desk.out_).toContain(
      `  callgate call list_dir '{"path":"${at("demo/notes")}"}' --socket demo/run/agent.sock\n`,
    );
  });

  it.each([0o000, 0o002, 0o077])(
    "has the modes that the daemon wants, whatever the umask (%i)",
    async (mask) => {
      process.umask(mask);
      await init(at("demo"));
      expect([at("demo"), at("demo/run"), at("demo/notes"), at("demo/callgate.toml")].map(mode)).toEqual([
        ...["700", "700", "700", "600"],
      ]);
    },
  );

  it("goes into a directory that is there, beside what is in it", async () => {
    writeFileSync(at("mine.txt"), "mine");
    expect((await init(place)).status).toBe(0);
    expect(readFileSync(at("mine.txt"), "utf8")).toBe("mine");
    expect(tree(place)).toContain("callgate.toml");
  });

  it("says that the daemon will not start from a directory that others can write", async () => {
    mkdirSync(at("open"));
    chmodSync(at("open"), 0o777);
    const { desk } = await init(at("open/demo"), {}, { ...HOST, uid: process.getuid?.() ?? 0 });
    expect(desk.err_).toContain(
      `note: the daemon will not start from here: ${at("open")} can be written by others`,
    );
  });

  it("says which directory that is to be served is not there yet", async () => {
    const { status, desk } = await init(at("demo"), { provider: [`files=${at("later")}`, `out=${place}`] });
    expect(status).toBe(0);
    expect(desk.err_).toBe(
      `note: nothing is at ${at("later")}: make that directory before the provider that serves it starts\n`,
    );
  });

  it("has roles for callers and providers of one's own", async () => {
    const flags = { caller: ["claude", "cron"], provider: ["mail", "docs=trusted:/srv/docs"] };
    const { desk } = await init(at("demo"), flags);
    const loaded = await compiled(at("demo/callgate.toml"), PASSWD);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
    const { policy } = loaded.value.config;
    expect([...policy.roles.keys()]).toEqual(["claude", "cron", "mail", "docs", "operator"]);
    expect(policy.roles.get("mail")).toMatchObject({ provides: ["mail."], limits: { connections: 1 } });
    expect([...policy.tools.keys()]).toEqual([
      ...["docs.list_dir", "docs.read_file", "docs.stat", "docs.search_files"],
    ]);
    expect(desk.out_).toContain("--prefix docs. --root internal,trusted,ro:/srv/docs");
    expect(desk.out_).toContain(at("demo/run/mail.sock").slice(1));
  });
});

const INSTALLING = { ...HOST, install: async () => 0 };

describe("a service", () => {
  const FLAGS = {
    systemd: true,
    caller: ["agent", "cron"],
    provider: ["files=trusted:/srv/docs", "files=rw,confidential:/srv/no tes", "mail"],
    operator: ["alice"],
  };

  it("has a config that loads without warnings once its users are made", async () => {
    await init(at("etc"), FLAGS, INSTALLING);
    const { passwd, group } = await usersFor(at("etc/callgate.toml"));
    const loaded = await compiled(at("etc/callgate.toml"), passwd, group);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
    expect(loaded.value.warnings).toEqual([]);
    const { policy, socketsDir, stateDir } = loaded.value.config;
    expect({ socketsDir, stateDir }).toEqual({ socketsDir: "/run/callgate", stateDir: "/var/lib/callgate" });
    expect(policy.allowSameUser).toBe(false);
    expect(policy.roles.get("operator")).toMatchObject({ admits: { uids: new Set([1000]) }, operator: true });
    expect(policy.roles.get("files")).toMatchObject({ classMax: "confidential", socket: { mode: 0o660 } });
  });

  it("without a name for anybody has an agent, a provider of files and a group of operators", async () => {
    await init(at("etc"), { systemd: true }, INSTALLING);
    const { passwd, group } = await usersFor(at("etc/callgate.toml"));
    const loaded = await compiled(at("etc/callgate.toml"), passwd, group);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
    expect(loaded.value.warnings).toEqual([]);
    expect([...loaded.value.config.policy.roles.keys()]).toEqual(["agent", "files", "operator"]);
    expect(loaded.value.config.policy.roles.get("operator")?.admits).toMatchObject({ uids: new Set() });
  });

  it("names each user that is missing once it is checked", async () => {
    await init(at("etc"), { ...FLAGS, operator: ["alice", "bob"] }, INSTALLING);
    const loaded = await compiled(at("etc/callgate.toml"), PASSWD);
    const faults = loaded.ok ? [] : loaded.fault.map(({ message }) => message);
    expect(faults).toContain('no user "callgate-agent" in /etc/passwd; create it, or give its numeric id');
  });

  it("is installed in the same run with --systemd: its units serve what was asked for", async () => {
    const asked: Flags[] = [];
    const install = async (_: object, flags: Flags) => {
      asked.push(flags);
      return 4;
    };
    const { status } = await init(at("etc"), FLAGS, { ...HOST, install });
    expect(status).toBe(4); // the installer's own
    const files = ["files=internal,trusted,ro:/srv/docs", "files=confidential,untrusted,rw:/srv/no tes"];
    expect(asked).toMatchObject([{ config: at("etc/callgate.toml"), files, server: [] }]);
  });

  it("is the rule below /etc, with the command that installs it, and a tryout elsewhere", async () => {
    const there = "/etc/callgate-test-that-is-not-there";
    const below = await init(there, { print: true });
    expect(below.desk.out_).toContain(`#### file ${there}/callgate.toml (mode 0644)`);
    const elsewhere = await init(at("etc"), { print: true });
    expect(elsewhere.desk.out_).toContain(`#### file ${at("etc/callgate.toml")} (mode 0600)`);
  });

  it("notes a program that somebody else could change", async () => {
    mkdirSync(at("lib"));
    writeFileSync(at("lib/callgate.js"), "");
    chmodSync(at("lib/callgate.js"), 0o666);
    const { desk } = await init(
      at("etc"),
      { systemd: true },
      { ...INSTALLING, script: at("lib/callgate.js") },
    );
    expect(desk.err_).toContain("whoever can change the program can change the gate");
    expect(desk.err_).toContain(at("lib/callgate.js"));
  });

  it("notes that it runs from its source, which is not what others start", async () => {
    const host = { ...INSTALLING, script: at("bin/callgate.ts") };
    const { desk } = await init(at("etc"), { systemd: true }, host);
    expect(desk.err_).toContain("what was written names /usr/local/bin/callgate: install it there");
  });

  it("has a commented example for a provider of one's own that loads when it is taken out of the #", async () => {
    await init(at("etc"), FLAGS, INSTALLING);
    const path = at("etc/callgate.toml");
    const text = readFileSync(path, "utf8");
    const begin = text.indexOf('#[tools."mail.send"]');
    const end = text.indexOf("\n\n", begin);
    const example = text.slice(begin, end).replace(/^#/gm, "");
    writeFileSync(path, `${text.slice(0, begin)}${example}${text.slice(end)}`);
    const { passwd, group } = await usersFor(at("etc/callgate.toml"));
    const loaded = await compiled(path, passwd, group);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
    expect(loaded.value.warnings).toEqual([]);
    expect(loaded.value.config.policy.grants.find(({ id }) => id === "agent-asks-mail")).toMatchObject({
      effect: "ask",
      tools: ["mail.send"],
    });
  });
});

describe("what is allowed", () => {
  it.each([
    ["a tryout", {}],
    ["a service", { systemd: true, provider: ["files=rw:/srv/a", "mail"], caller: ["agent", "other"] }],
  ])(
    "to callers of %s from an untrusted session is reading and its own calls; all else is asked or denied",
    async (_, flags) => {
      await init(at("x"), flags, INSTALLING);
      const { passwd, group } = await usersFor(at("x/callgate.toml"));
      const loaded = await compiled(at("x/callgate.toml"), passwd, group);
      if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
      const { grants, roles, tools } = loaded.value.config.policy;
      const free = grants.filter(
        ({ effect, taintMax }) => effect === "allow" && taintMax?.untrusted === true,
      );
      for (const grant of free) {
        if (roles.get(grant.role)?.operator === true) continue;
        for (const tool of grant.tools)
          expect(tools.get(tool)?.effect ?? tool, `${grant.id} ${tool}`).toMatch(
            /^(?:read|callgate\.calls\.(?:why|cancel)|callgate\.tools\.announce)$/,
          );
      }
      expect(free.length).toBeGreaterThan(1);
    },
  );
});

describe("nothing is written over", () => {
  it("where one of the files is there: all of them are named, and none is written", async () => {
    mkdirSync(at("demo"));
    writeFileSync(at("demo/callgate.toml"), "mine");
    mkdirSync(at("demo/notes"));
    const { status, desk } = await init(at("demo"));
    expect(status).toBe(4);
    expect(desk.err_).toContain(`  ${at("demo/notes")}\n  ${at("demo/callgate.toml")}\n`);
    expect(tree(at("demo"))).toEqual(["callgate.toml", "notes"]);
    expect(readFileSync(at("demo/callgate.toml"), "utf8")).toBe("mine");
  });

  it("also through a link that leads nowhere", async () => {
    mkdirSync(at("demo"));
    symlinkSync(at("elsewhere"), at("demo/callgate.toml"));
    expect((await init(at("demo"))).status).toBe(4);
    expect(tree(place)).toEqual(["demo", "demo/callgate.toml"]);
  });

  it("where the directory is a file", async () => {
    writeFileSync(at("demo"), "mine");
    const { status, desk } = await init(at("demo"));
    expect(status).toBe(4);
    expect(desk.err_).toMatch(/nothing was written/);
    expect(readFileSync(at("demo"), "utf8")).toBe("mine");
  });

  it("and a second init changes nothing of the first", async () => {
    await init(at("demo"));
    const before = tree(at("demo"));
    expect((await init(at("demo"))).status).toBe(4);
    expect(tree(at("demo"))).toEqual(before);
  });
});

describe("a write that fails half-way", () => {
  it("leaves nothing of what was made, the directories above included", () => {
    const plan = [
      { path: "a", mode: 0o700, about: "" },
      { path: "a/one", mode: 0o600, text: "1", about: "" },
      { path: "b/two", mode: 0o600, text: "2", about: "" }, // there is no b
    ];
    const written = writePlan(at("x/y"), 0o700, plan);
    expect(written.ok ? "" : written.fault).toMatch(/^nothing was written: ENOENT/);
    expect(tree(place)).toEqual([]);
  });

  it("leaves what somebody else has put there meanwhile", () => {
    mkdirSync(at("x"));
    writeFileSync(at("x/two"), "theirs");
    const plan = ["one", "two"].map((path) => ({ path, mode: 0o600, text: "ours", about: "" }));
    const written = writePlan(at("x"), 0o700, plan);
    expect(written.ok ? "" : written.fault).toBe(
      `nothing was written: something else is at ${JSON.stringify(at("x/two"))}`,
    );
    expect(tree(at("x"))).toEqual(["two"]);
    expect(readFileSync(at("x/two"), "utf8")).toBe("theirs");
  });
});

describe("--print", () => {
  it("shows every file with its mode, and writes none", async () => {
    const { desk } = await init(at("demo"), { print: true });
    expect(desk.out_).toContain(
      `#### file ${at("demo/callgate.toml")} (mode 0600)\n# The configuration of callgate.`,
    );
    expect(tree(place)).toEqual([]);
  });
});

describe("what is refused before anything is written", () => {
  it.each<[string, string | undefined, Readonly<Record<string, string | boolean | readonly string[]>>]>([
    ["a role's name with a capital", undefined, { caller: ["Agent"] }],
    ["a role's name with a slash", undefined, { provider: ["../x"] }],
    ["a role's name with a line feed", undefined, { caller: ["a\n[roles.b]"] }],
    ["a name that is too long for a user's", undefined, { caller: ["a".repeat(23)] }],
    ["the operator's name", undefined, { caller: ["operator"] }],
    ["the broker's own name", undefined, { provider: ["callgate"] }],
    ["one name for two", undefined, { caller: ["files"] }],
    ["a root that is not absolute", undefined, { provider: ["files=docs"] }],
    ["a root with ..", undefined, { provider: ["files=/srv/../etc"] }],
    ["the whole machine", undefined, { provider: ["files=/"] }],
    ["a root with a quote", undefined, { provider: ["files=/srv/a'b"] }],
    ["a root with a double quote", undefined, { provider: ['files=/srv/a"b'] }],
    ["a root with a backslash", undefined, { provider: ["files=/srv/a\\b"] }],
    ["a root with a line feed", undefined, { provider: ["files=/srv/a\nExecStartPre=/bin/x"] }],
    ["a root with a character that turns the line", undefined, { provider: ["files=/srv/\u202egpj"] }],
    ["a root with a colon", undefined, { provider: ["files=/srv/a:b"] }],
    ["an option of a root that is none", undefined, { provider: ["files=secret:/srv/a"] }],
    ["a directory with a quote", "/tmp/it's", {}],
    ["a directory with a line feed", "/tmp/a\nb", {}],
    ["a directory that is too long for sockets", `/tmp/${"d".repeat(100)}`, {}],
    ["an operator of a tryout", undefined, { operator: ["alice"] }],
    ["an operator's name that is none", undefined, { systemd: true, operator: ["al ice"] }],
  ])("%s", async (_, directory, flags) => {
    await expect(init(directory ?? at("demo"), flags)).rejects.toThrow(UsageFault);
    expect(tree(place)).toEqual([]);
  });

  it("a user id that stands for nobody", async () => {
    await expect(init(at("demo"), {}, { ...HOST, uid: 65_534 })).rejects.toThrow(/65534/);
  });

  it("both kinds at once", async () => {
    const desk = new Desk();
    expect(await runProgram(["init", at("demo"), "--here", "--systemd"], desk)).toBe(2);
    expect(tree(place)).toEqual([]);
  });
});
