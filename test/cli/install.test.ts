import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { UsageFault } from "../../src/cli/call.ts";
import { install } from "../../src/cli/install.ts";
import type { InstallHost } from "../../src/cli/install_choice.ts";
import { uninstall } from "../../src/cli/uninstall.ts";
import { readInstalledConfig } from "../../src/host/install_config.ts";

const CONFIG = `
[roles.agent]
users = ["callgate-agent"]
group = "callgate-agent"
[roles.files]
users = ["keeper-of-files"]
group = "callgate-files"
[roles.mail]
users = ["callgate-mail"]
provides = ["post."]
[roles.operator]
groups = ["callgate-operators"]
group = "callgate-operators"
operator = true
`;

const HOST: InstallHost = {
  uid: 0,
  node: "/usr/bin/node",
  script: "",
  systemd: 252,
  isUser: (name) => name === "alice",
};
const UNITS = "etc/systemd/system";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "callgate-install-"));
  mkdirSync(join(root, "etc/callgate"), { recursive: true });
  writeFileSync(join(root, "etc/callgate/callgate.toml"), CONFIG);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function terminal() {
  const told = { out: "", err: "" };
  return {
    told,
    out: (text: string) => {
      told.out += text;
    },
    err: (text: string) => {
      told.err += text;
    },
    isTerminal: false,
  };
}

async function run(flags: Record<string, unknown> = {}, words: readonly string[] = [], host = HOST) {
  const { told, ...at } = terminal();
  const ran: string[] = [];
  const status = await install(at, words, { root, session: "cli", ...flags } as never, {
    read: readInstalledConfig,
    host,
    run: async (line) => {
      ran.push(line.join(" "));
      return 0;
    },
  });
  return { status, ran, ...told };
}

const text = (path: string) => readFileSync(join(root, path), "utf8");

it("users that are not there yet are no fault of the config, and are those that it makes", async () => {
  const { status } = await run();
  expect(status).toBe(0);
  const users = text("etc/sysusers.d/callgate-roles.conf");
  expect(users.match(/^[ug] \S+/gm)).toEqual(["u callgate-agent", "u callgate-mail", "g callgate-files"]);
});

it("whoever runs a role is put into its group, and nobody is made who is not there", async () => {
  writeFileSync(
    join(root, "etc/callgate/callgate.toml"),
    CONFIG.replace('groups = ["callgate-operators"]', 'users = ["alice", "root"]'),
  );
  const { out } = await run();
  expect(text("etc/sysusers.d/callgate-roles.conf").match(/^#?m .*/gm)).toEqual([
    "#m keeper-of-files callgate-files",
    "m alice callgate-operators",
  ]);
  expect(out).toContain("No user here is called keeper-of-files. When there is one:\n");
  expect(out).toContain("usermod --append --groups callgate-files keeper-of-files\n");
});

it("a socket differs from the template only where the config does", async () => {
  await run();
  expect(existsSync(join(root, UNITS, "callgate-role@agent.socket.d"))).toBe(false);
  expect(text(`${UNITS}/callgate-role@operator.socket.d/50-callgate.conf`)).toContain(
    "SocketGroup=callgate-operators",
  );
  const mail = text(`${UNITS}/callgate-role@mail.socket.d/50-callgate.conf`);
  expect(mail).toContain("SocketGroup=callgate\n");
  expect(mail).toContain("SocketMode=0600");
});

it("the broker has the sockets of the config's roles, no more and no fewer", async () => {
  await run();
  const sockets = /^Sockets=(.*)$/m.exec(text(`${UNITS}/callgate.service.d/50-callgate.conf`))?.[1];
  expect(sockets?.split(" ")).toEqual(
    ["agent", "files", "mail", "operator"].map((role) => `callgate-role@${role}.socket`),
  );
});

it("a files role is given its directories, each bound as it may be used, by the user that the config has", async () => {
  await run({ files: ["files=trusted:/srv/docs", "files=rw:/srv/n%o$t es"] });
  const lines = text(`${UNITS}/callgate-files@files.service.d/50-callgate.conf`).split("\n");
  expect(lines).toContain("User=keeper-of-files");
  expect(lines).toContain("BindReadOnlyPaths=/srv/docs");
  expect(lines).toContain('BindPaths="/srv/n%%o$t es"');
  expect(lines.at(lines.indexOf("ExecStart=") + 1)).toMatch(
    / role files --socket \/run\/callgate\/files\.sock --root internal,trusted,ro:\/srv\/docs --root "internal,untrusted,rw:\/srv\/n%%o\$\$t es"$/,
  );
});

it("an MCP server gets the role's prefix, and a network only where it is asked for", async () => {
  await run({ mcp: "mail", env: ["LEVEL=1"] }, ["npx", "-y", "a server"]);
  const path = `${UNITS}/callgate-mcp@mail.service.d/50-callgate.conf`;
  expect(text(path)).toContain('--prefix post. --env LEVEL=1 -- npx -y "a server"\n');
  expect(text(path)).not.toContain("PrivateNetwork");
  await run({ mcp: "mail", url: "https://mcp.example/mcp" });
  expect(text(path)).toContain("--url https://mcp.example/mcp\n");
  expect(text(path)).toContain("PrivateNetwork=no");
});

it("an MCP server's file is handed to its unit alone, and what it names of the disk is shown and not opened", async () => {
  const file = join(root, "e%t c.json");
  const args = ["-y", "fs", "/srv/docs", "/srv/a b", "--key=%h", "a\nExecStartPre=/bin/x"];
  writeFileSync(file, JSON.stringify({ command: "npx", args, env: { KEY: "sesame" } }));
  await run({ server: [`mail=${file}`] });
  const path = `${UNITS}/callgate-mcp@mail.service.d/50-callgate.conf`;
  const lines = text(path).split("\n");
  expect(lines).toContain(`LoadCredential=server:${file.replaceAll("%", "%%")}`);
  expect(lines.at(lines.indexOf("ExecStart=") + 1)).toMatch(/ --prefix post\. --server-file %d\/server$/);
  expect(lines).toEqual(
    expect.arrayContaining(["# BindReadOnlyPaths=/srv/docs", "# BindPaths=/srv/docs", "PrivateNetwork=no"]),
  );
  expect(text(path)).not.toMatch(/ExecStartPre|--key|a b|sesame|^Bind.*docs/m);
});

it("done again it changes nothing, and what was given to a role stays", async () => {
  await run({ files: ["files=/srv/docs"] });
  const again = await run();
  expect(again.out).toMatch(/^everything is as it was/);
  expect(text(`${UNITS}/callgate-files@files.service.d/50-callgate.conf`)).toContain("/srv/docs");
});

it("what a role was given before is named again where it is enabled, and what it serves where rights are told of", async () => {
  mkdirSync(join(root, "srv/no tes"), { recursive: true });
  await run({ files: ["files=rw:/srv/no tes"] });
  const { out } = await run();
  expect(out).toMatch(/systemctl --root=\S+ enable .* callgate-files@files\.service\n/);
  expect(out).toContain("setfacl -R -m u:callgate-files:rwX '/srv/no tes'\n");
});

it("what somebody has changed by hand is kept and told of, until it is forced", async () => {
  await run();
  appendFileSync(join(root, UNITS, "callgate.service"), "# mine\n");
  const kept = await run();
  expect(kept.status).toBe(4);
  expect(kept.err).toContain(
    `kept, since it was changed or written by hand (--force replaces it): ${root}/${UNITS}/callgate.service`,
  );
  expect(text(`${UNITS}/callgate.service`)).toContain("# mine");
  expect((await run({ force: true })).status).toBe(0);
  expect(text(`${UNITS}/callgate.service`)).not.toContain("# mine");
});

it("of a role that the config has no more nothing stays", async () => {
  await run({ mcp: "mail" }, ["server"]);
  writeFileSync(
    join(root, "etc/callgate/callgate.toml"),
    CONFIG.replace(/\[roles\.mail\][^[]*\["callgate-mail"\]\nprovides = \["post\."\]\n/, ""),
  );
  const { out } = await run();
  expect(out).toContain(`removed  ${root}/${UNITS}/callgate-mcp@mail.service.d/50-callgate.conf`);
  expect(existsSync(join(root, UNITS, "callgate-mcp@mail.service.d"))).toBe(false);
  expect(existsSync(join(root, UNITS, "callgate-role@mail.socket.d"))).toBe(false);
});

it("a dry run shows all of it and writes nothing", async () => {
  const { out } = await run({ dryRun: true });
  expect(out).toContain(`#### ${root}/${UNITS}/callgate.service (new)`);
  expect(existsSync(join(root, "etc/systemd"))).toBe(false);
});

it.each([
  [{ files: ["nobody=/srv/docs"] }, "no role"],
  [{ files: ["files=/srv/a:b"] }, "a colon"],
  [{ files: ["files"] }, "ROLE=ROOT"],
  [{ mcp: "mail" }, "wants the server's command"],
  [{ server: ["mail"] }, "ROLE=FILE"],
  [{ server: ["mail=etc/mail.json"] }, "no absolute path"],
  [{ network: true }, "--mcp ROLE"],
  [{ now: true }, "without --root"],
])("%j is refused", async (flags, why) => {
  const refused = run(flags);
  await expect(refused).rejects.toThrow(UsageFault);
  await expect(refused).rejects.toThrow(why);
});

it("a config with a mistake installs nothing, and the mistake has its line", async () => {
  appendFileSync(join(root, "etc/callgate/callgate.toml"), "wrong = 1\n");
  const { status, err } = await run();
  expect(status).toBe(4);
  expect(err).toMatch(/callgate\.toml:\d+:1: unknown key "wrong"/);
  expect(existsSync(join(root, "etc/systemd"))).toBe(false);
});

it("a config that is not there is told of as such, with what makes one", async () => {
  rmSync(join(root, "etc/callgate/callgate.toml"));
  const { status, err } = await run();
  expect(status).toBe(4);
  expect(err).toMatch(/there is no such file\n.*nothing was written.*init --systemd/);
});

it("a config or a state in a home is refused: the units have no homes", async () => {
  writeFileSync(join(root, "etc/callgate/callgate.toml"), `[daemon]\nstate = "/home/me/state"\n${CONFIG}`);
  await expect(run()).rejects.toThrow("in a home directory");
});

it("taken away, the state, the config and what others wrote stay", async () => {
  await run();
  const own = join(root, UNITS, "callgate-mine.service");
  writeFileSync(own, "[Service]\n");
  mkdirSync(join(root, "var/lib/callgate"), { recursive: true });
  writeFileSync(join(root, "var/lib/callgate/state.mdb"), "x");
  const { told, ...at } = terminal();
  expect(await uninstall(at, { root, session: "cli" } as never, async () => 0)).toBe(0);
  expect(existsSync(join(root, UNITS, "callgate.service"))).toBe(false);
  expect(existsSync(own)).toBe(true);
  expect(text("var/lib/callgate/state.mdb")).toBe("x");
  expect(text("etc/callgate/callgate.toml")).toBe(CONFIG);
  expect(told.out).toContain("What stays: the state");
  await uninstall(at, { root, session: "cli", purge: true } as never, async () => 0);
  expect(existsSync(join(root, "var/lib/callgate"))).toBe(false);
});
