import { type ChildProcess, spawnSync } from "node:child_process";
import { once } from "node:events";
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { forbiddingSettings } from "../../../../src/roles/mcp/provide/namespaces.ts";
import { cleanUp, onCleanUp } from "../../../daemon/daemon.ts";
import { describeWith } from "../../../needs.ts";
import { House, houseConfig } from "./house.ts";
import { processesWith, untilProcesses } from "./processes.ts";

// What a hostile server can reach, and what is left of it. Tests run as root, so the role runs as another user too.

afterEach(cleanUp);

const HOSTILE = fileURLToPath(new URL("hostile_server.mjs", import.meta.url));
const ATTACKS = ["reach", "look", "signal", "mount", "hide", "end"];
const OTHER_UID = 61_234;
const IS_ROOT = process.getuid?.() === 0;
/** A clone may lie where nobody else gets at it. */
const IS_OPEN =
  IS_ROOT &&
  spawnSync(process.execPath, ["--check", HOSTILE], { uid: OTHER_UID, gid: OTHER_UID, cwd: "/" }).status ===
    0;
const USERS: readonly (readonly [string, number | undefined])[] = [
  ...(IS_ROOT ? [["root", undefined] as const] : [["an ordinary user", undefined] as const]),
  ...(IS_OPEN ? [["an ordinary user", OTHER_UID] as const] : []),
];

let marks = 0;

/** A number that stands in the command line of no other process. */
function newMark(): string {
  marks += 1;
  return `0.${process.pid}${Date.now()}${marks}`;
}

async function hostile(
  how: {
    readonly uid?: number | undefined;
    readonly words?: readonly string[];
    readonly socket?: string;
  } = {},
): Promise<{ readonly home: House; readonly role: ChildProcess; readonly attack: Attack }> {
  const home = await House.build(houseConfig(ATTACKS));
  const { uid, words = [], socket } = how;
  const role = home.run([...words, "--", process.execPath, HOSTILE], {
    ...(uid === undefined ? {} : { uid }),
    ...(socket === undefined ? {} : { socket }),
  });
  const ended = once(role, "exit").then(() => Promise.reject(new Error(home.said.join("\n"))));
  ended.catch(() => undefined);
  await Promise.race([home.hears(/^callgate: mcp: in service: 6/), ended]);
  return { home, role, attack: async (tool, args) => JSON.parse(await home.text(tool, args)) as never };
}

type Attack = <T>(tool: string, args: Readonly<Record<string, unknown>>) => Promise<T>;

/** A directory for the test, that everybody may enter. */
function aside(): string {
  const directory = mkdtempSync(join(tmpdir(), "callgate-aside-"));
  spawnSync("chmod", ["755", directory]);
  onCleanUp(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

describeWith(["unshare", "setpriv", "mount", "setsid", "env"], "a hostile server", () => {
  it.each(USERS)(
    "of %s does not reach a role's socket by any way, though nobody is connected",
    async (_, uid) => {
      const { home, role, attack } = await hostile({ uid });
      const run = join(home.directory, "run");
      const links = aside();
      symlinkSync(run, join(links, "run"));
      symlinkSync(join(run, "operator.sock"), join(links, "operator"));
      const ways = (socket: string) => [
        join(run, socket),
        join(links, "run", socket),
        `/proc/self/root${run}/${socket}`,
        `/proc/1/root${run}/${socket}`,
        `${run}/../run/${socket}`,
      ];
      const paths = [...ways("server.sock"), ...ways("operator.sock"), join(links, "operator")];
      const outcome = await attack<Record<string, string>>("reach", { paths });
      expect(Object.keys(outcome)).toHaveLength(11);
      for (const [path, how] of Object.entries(outcome))
        expect([path, how]).toEqual([path, expect.stringMatching(/^(ENOENT|EACCES)$/)]);
      // The same ways, for those who may.
      expect(spawnSync("test", ["-S", join(links, "operator")]).status).toBe(0);
      role.kill("SIGTERM");
      await once(role, "exit");
    },
  );

  it.each(USERS)("of %s sees no process of others, nor into the one that keeps it", async (_, uid) => {
    const { home, attack } = await hostile({ uid });
    const seen = await attack<Seen>("look", { directory: join(home.directory, "run") });
    expect(seen.processes.filter((words) => /callgate\.js/.test(words))).toEqual([]);
    expect(seen.processes).toHaveLength(2);
    for (const outcome of [...Object.values(seen.first), ...Object.values(seen.links), seen.writes])
      expect(outcome).toBe("EACCES");
    expect(seen.directory).toBe("[]");
    expect(seen.status).toMatch(/^CapEff:\s+0+$/m);
    expect(seen.status).toMatch(/^CapPrm:\s+0+$/m);
    expect(seen.status).toMatch(/^CapBnd:\s+0+$/m);
    expect(seen.status).toMatch(/^NoNewPrivs:\s+1$/m);
    // SIGINT, SIGQUIT and SIGCHLD: what a shell would have it ignore. Node ignores others itself.
    const ignored = BigInt(`0x${/^SigIgn:\s+(\S+)$/m.exec(seen.status)?.[1] ?? "ff"}`);
    expect(ignored & 0x1_0006n).toBe(0n);
  });

  it.each(USERS)("of %s signals neither the role nor what keeps it", async (_, uid) => {
    const { home, role, attack } = await hostile({ uid });
    const keepers = processesWith(HOSTILE).filter(({ words }) => !words.includes("provide"));
    expect(keepers.length).toBeGreaterThanOrEqual(3);
    const targets = [role.pid, home.broker.pid, process.pid].filter((pid) => pid !== undefined);
    const outcome = await attack<Record<string, string>>("signal", { targets });
    for (const pid of targets) expect([pid, outcome[pid]]).toEqual([pid, "ESRCH"]);
    expect(processesWith(HOSTILE).filter(({ words }) => !words.includes("provide"))).toHaveLength(
      keepers.length,
    );
    expect(await attack("reach", { paths: [] })).toEqual({});
  });

  it.each(USERS)(
    "of %s takes no cover away, neither itself nor in a namespace of its own",
    async (_, uid) => {
      const { home, attack } = await hostile({ uid });
      const directory = join(home.directory, "run");
      const seen = await attack<Record<string, string>>("mount", { directory, aside: aside() });
      for (const words of Object.values(seen)) expect(words).not.toMatch(/\.sock/);
      expect(seen["umount"]).toMatch(/umount/);
      expect(seen["nested"]).toMatch(/not mounted|Invalid argument|not permitted|block devices/i);
      expect(seen["entered"]).toMatch(/nsenter/);
    },
  );
});

interface Seen {
  readonly processes: readonly string[];
  readonly first: Readonly<Record<string, string>>;
  readonly links: Readonly<Record<string, string>>;
  readonly writes: string;
  readonly directory: string;
  readonly status: string;
}

describeWith(
  ["unshare", "setpriv", "mount", "setsid", "env"],
  "what a server has hidden from its end",
  () => {
    const MANY = 200;

    it.each([
      ["the role is told to end", async (role: ChildProcess) => role.kill("SIGTERM"), true],
      ["the role is killed", async (role: ChildProcess) => role.kill("SIGKILL"), false],
    ] as const)("ends when %s", async (_, end, isCounted) => {
      const { role, attack } = await hostile({ uid: IS_OPEN ? OTHER_UID : undefined });
      const mark = newMark();
      await attack("hide", { count: MANY, mark });
      expect(processesWith(mark)).toHaveLength(MANY);
      await end(role);
      await once(role, "exit");
      if (isCounted) expect(processesWith(mark)).toEqual([]);
      await untilProcesses(mark, (count) => count === 0);
      await untilProcesses(HOSTILE, (count) => count === 0);
    });

    it.each([
      [
        "the server ends by itself",
        { how: "exit" },
        /gone \(exit 3; 200 processes of its were ended\), end 1/,
      ],
      ["the server kills everything that it can", { how: "everything" }, /gone \(exit 3[;)].*end 1/],
    ] as const)("ends when %s, is counted, and the server is started again", async (_, args, told) => {
      const { home, attack } = await hostile();
      const mark = newMark();
      await attack("hide", { count: MANY, mark });
      const from = home.said.length;
      expect(await home.call("end", args)).toMatchObject({ status: "failed" });
      await home.hears(told, from);
      expect(processesWith(mark)).toEqual([]);
      expect(await whenThere(home)).toEqual({});
    });

    it("ends when what waits for the namespace is killed from outside", async () => {
      const { home, attack } = await hostile();
      const mark = newMark();
      await attack("hide", { count: MANY, mark });
      const outermost = processesWith(HOSTILE).find(({ words }) => /unshare$/.test(words[0] ?? ""));
      expect(outermost).toBeDefined();
      process.kill(outermost?.pid ?? 0, "SIGKILL");
      await home.hears(/the server is gone \(SIGKILL; what it started could not be looked for\)/);
      expect(processesWith(mark)).toEqual([]);
    });
  },
);

/** The answer of a server that is being started again. */
async function whenThere(home: House): Promise<unknown> {
  for (;;) {
    const answer = await home.call("reach", { paths: [] });
    if (answer.status !== "result") {
      await new Promise((resolve) => setTimeout(resolve, 50));
      continue;
    }
    return JSON.parse(
      (JSON.parse(answer.content) as { content: [{ text: string }] }).content[0].text,
    ) as unknown;
  }
}

describeWith(["unshare", "setpriv", "mount", "setsid", "env"], "what is hidden", () => {
  it("are the files and directories that the owner names, and the socket's directory by all its names", async () => {
    const keys = aside();
    mkdirSync(join(keys, "state"));
    writeFileSync(join(keys, "state", "data"), "secret");
    writeFileSync(join(keys, "token"), "secret");
    const words = ["--hide", join(keys, "state"), "--hide", join(keys, "token")];
    const { home, attack } = await hostile({ words });
    expect(await attack("look", { directory: join(keys, "state") })).toMatchObject({ directory: "[]" });
    // Connecting to a plain file says that it is there.
    expect(await attack("reach", { paths: [join(keys, "token"), join(keys, "state", "data")] })).toEqual({
      [join(keys, "token")]: "ECONNREFUSED",
      [join(keys, "state", "data")]: "ENOENT",
    });
    expect(home.said.join("\n")).toMatch(/has 6 tools; it is confined/);
  });

  it("is not enough where the socket has a second name, or its directory holds other things", async () => {
    const home = await House.build(houseConfig(ATTACKS));
    const socket = home.broker.socket("server");
    const second = join(home.directory, "second.sock");
    linkSync(socket, second);
    const provide = async (words: readonly string[], to = socket) => {
      const from = home.said.length;
      const role = home.run([...words, "--", process.execPath, HOSTILE], { socket: to });
      const [status] = (await once(role, "exit")) as [number];
      return { status, said: home.said.slice(from).join("\n") };
    };
    const linked = await provide([]);
    expect(linked).toMatchObject({ status: 4, said: expect.stringMatching(/second name \(a hard link\)/) });
    unlinkSync(second);
    symlinkSync(socket, second);
    writeFileSync(join(home.directory, "run", "notes.txt"), "");
    const mixed = await provide([], second);
    expect(mixed).toMatchObject({
      status: 4,
      said: expect.stringMatching(/holds other things \(notes\.txt\)/),
    });
    expect(mixed.said).toMatch(/--unconfined .* give it a user of its own/);
  });

  it("is hidden again when the directory of the sockets was replaced: the server is started anew", async () => {
    const { home, attack } = await hostile();
    const run = join(home.directory, "run");
    const from = home.said.length;
    await home.broker.kill();
    await home.hears(/no connection to the broker/, from);
    rmSync(run, { recursive: true });
    const { Daemon } = await import("../../../daemon/daemon.ts");
    await Daemon.start(home.broker.place);
    await home.hears(/directory of the role's socket was replaced/, from);
    expect(await whenThere(home)).toEqual({});
    const seen = await attack<Seen>("look", { directory: run });
    expect(seen.directory).toBe("[]");
  });
});

describe("a server that is not confined", () => {
  it("is told of in the log", async () => {
    const { home } = await hostile({ words: ["--unconfined"] });
    expect(home.said.join("\n")).toMatch(/warning: the server is not confined/);
    expect(home.said.join("\n")).toMatch(/has 6 tools; it is not confined/);
  });
});

describe("where the kernel forbids namespaces", () => {
  it.each([
    [
      "kernel/apparmor_restrict_unprivileged_userns",
      "1\n",
      ["kernel.apparmor_restrict_unprivileged_userns = 1"],
    ],
    ["kernel/unprivileged_userns_clone", "0\n", ["kernel.unprivileged_userns_clone = 0"]],
    ["user/max_user_namespaces", "0\n", ["user.max_user_namespaces = 0"]],
    ["user/max_user_namespaces", "96364\n", []],
  ])("%s of %j is told as %j", (file, value, told) => {
    expect(forbiddingSettings((path) => (path === `/proc/sys/${file}` ? value : undefined))).toEqual(told);
  });
});
