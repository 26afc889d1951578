import { execFile } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemdWord } from "../../src/cli/init_units.ts";
import { describeWith } from "../needs.ts";
import { compiled, HOST, init } from "./init_rig.ts";

const execute = promisify(execFile);

let place: string;
const at = (...names: string[]) => join(place, ...names);
const unit = (name: string) => readFileSync(at("etc/systemd", name), "utf8");
const lines = (text: string) => text.split("\n");

beforeAll(async () => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "callgate-units-")));
  writeFileSync(at("callgate.js"), "", { mode: 0o755 });
  const provider = [
    "files=trusted:/srv/docs",
    "files=rw:/srv/n%o$t es",
    "mail",
    "homes=rw:/home/alice/notes",
    "temp=/tmp/x",
  ];
  const host = { ...HOST, node: process.execPath, script: at("callgate.js") };
  const { status } = await init(at("etc"), { service: true, provider, operator: ["alice"] }, host);
  expect(status).toBe(0);
});

afterAll(() => rmSync(place, { recursive: true, force: true }));

describe("the broker's unit", () => {
  it("has no network, no capability and no disk but its state", () => {
    expect(lines(unit("callgate.service"))).toEqual(
      expect.arrayContaining([
        ...["User=callgate", "PrivateNetwork=yes", "RestrictAddressFamilies=AF_UNIX", "IPAddressDeny=any"],
        ...["NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "ProtectHome=yes"],
        ...["StateDirectory=callgate", "StateDirectoryMode=0700", "RuntimeDirectoryMode=0755"],
        ...["ExecReload=/bin/kill -HUP $MAINPID", "Restart=on-failure", "RestartPreventExitStatus=78"],
        `ExecStart=${process.execPath} ${at("callgate.js")} serve --config ${at("etc/callgate.toml")}`,
      ]),
    );
  });

  it("forbids nothing that the daemon's own runtime needs", () => {
    const settings = lines(unit("callgate.service")).filter((line) => !line.startsWith("#"));
    expect(
      settings.filter((line) => /^(?:MemoryDenyWriteExecute|LimitAS|ProcSubset|ReadWritePaths)=/.test(line)),
    ).toEqual([]);
  });
});

describe("a unit of a provider of files", () => {
  it("starts it with its roots, and lets it write to those that are writable only", () => {
    expect(lines(unit("callgate-files.service"))).toEqual(
      expect.arrayContaining([
        `ExecStart=${process.execPath} ${at("callgate.js")} role files --socket /run/callgate/files.sock --root internal,trusted,ro:/srv/docs --root "internal,untrusted,rw:/srv/n%%o$$t es"`,
        'ReadWritePaths="/srv/n%%o$t es"',
        "User=callgate-files",
        "PrivateNetwork=yes",
      ]),
    );
    expect(unit("callgate-files.service")).not.toContain("ReadWritePaths=/srv/docs");
  });

  it("hides homes but for the root in one, and keeps /tmp where a root is", () => {
    expect(lines(unit("callgate-homes.service"))).toEqual(
      expect.arrayContaining(["ProtectHome=tmpfs", "BindPaths=/home/alice/notes", "PrivateTmp=yes"]),
    );
    expect(lines(unit("callgate-temp.service"))).toEqual(
      expect.arrayContaining(["ProtectHome=yes", "PrivateTmp=no"]),
    );
  });
});

describe("roles without a program of ours", () => {
  it("get a template that systemd does not take for a unit", () => {
    const names = readdirSync(at("etc/systemd")).toSorted();
    expect(names).toContain("callgate-mail.service.example");
    expect(names).toContain("callgate-agent.service.example");
    expect(names.filter((name) => name.endsWith(".service"))).toEqual([
      ...["callgate-files.service", "callgate-homes.service", "callgate-temp.service", "callgate.service"],
    ]);
  });
});

describe("a word of a unit", () => {
  it.each([
    ["/srv/docs", "/srv/docs"],
    ["/srv/a b", '"/srv/a b"'],
    ["100%", "100%%"],
    ["$HOME", "$$HOME"],
    ["ümlaut", '"ümlaut"'],
  ])("%s is written as %s", (text, word) => {
    expect(systemdWord(text)).toBe(word);
  });
});

describeWith(["systemd-analyze"], "systemd itself", () => {
  it.each([
    "callgate.service",
    "callgate-files.service",
    "callgate-homes.service",
    "user/callgate-console.service",
  ])("finds nothing wrong with %s", async (name) => {
    const { stdout, stderr } = await execute("systemd-analyze", [
      "verify",
      "--man=no",
      at("etc/systemd", name),
    ]);
    expect(`${stdout}${stderr}`).toBe("");
  });

  it.each(["callgate-mail", "callgate-agent"])(
    "finds nothing wrong with the template of %s once its program is set",
    async (name) => {
      const text = unit(`${name}.service.example`).replace("/usr/local/bin/CHANGE-ME", at("callgate.js"));
      mkdirSync(at("templates"), { recursive: true });
      writeFileSync(at("templates", `${name}.service`), text);
      const { stdout, stderr } = await execute("systemd-analyze", [
        "verify",
        "--man=no",
        at("templates", `${name}.service`),
      ]);
      expect(`${stdout}${stderr}`).toBe("");
    },
  );

  it("finds the broker's unit as closed as can be", async () => {
    const { stdout } = await execute("systemd-analyze", [
      "security",
      "--offline=yes",
      at("etc/systemd/callgate.service"),
    ]);
    const level = Number(/Overall exposure level for \S+: ([0-9.]+)/.exec(stdout)?.[1]);
    expect(level).toBeLessThan(1.5);
  });
});

describeWith(["systemd-sysusers", "systemd-tmpfiles"], "the users and directories", () => {
  it("are made as the config and the daemon want them", async () => {
    const root = at("root");
    mkdirSync(join(root, "etc"), { recursive: true });
    writeFileSync(
      join(root, "etc/passwd"),
      "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/bash\n",
    );
    writeFileSync(join(root, "etc/group"), "root:x:0:\nalice:x:1000:\n");
    await execute("systemd-sysusers", [`--root=${root}`, at("etc/sysusers.d/callgate.conf")]);
    const [passwd, group] = ["passwd", "group"].map((name) =>
      readFileSync(join(root, "etc", name), "utf8"),
    ) as [string, string];
    const loaded = await compiled(at("etc/callgate.toml"), passwd, group);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
    const membersOf = (name: string) => new RegExp(`^${name}:[^:]*:[0-9]+:(.*)$`, "m").exec(group)?.[1];
    expect(membersOf("callgate-files")).toBe("callgate");
    expect(membersOf("callgate-operators")?.split(",").toSorted()).toEqual(["alice", "callgate"]);
    if (process.getuid?.() !== 0) return; // who is not root can give directories to nobody
    await execute("systemd-tmpfiles", [`--root=${root}`, "--create", at("etc/tmpfiles.d/callgate.conf")]);
    const { stdout } = await execute("stat", [
      "-c",
      "%a %u",
      join(root, "run/callgate"),
      join(root, "var/lib/callgate"),
    ]);
    const uid = /^callgate:[^:]*:([0-9]+):/m.exec(passwd)?.[1];
    expect(stdout).toBe(`755 ${uid}\n700 ${uid}\n`);
  });
});
