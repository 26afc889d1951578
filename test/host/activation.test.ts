import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, lstatSync, openSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeAll, describe, expect, it } from "vitest";

import { type InheritedSocket, takeInherited } from "../../src/host/activation.ts";
import { type Libc, loadLibc } from "../../src/host/libc.ts";
import { listenInherited } from "../../src/host/listen.ts";
import { cleanUp, connected, GROUP, onCleanUp, requireRoot, temporaryDirectory } from "./listen_fixture.ts";

let libc: Libc;

beforeAll(async () => {
  requireRoot();
  const loaded = await loadLibc();
  if (loaded === undefined) throw new Error("koffi must load where the tests run");
  libc = loaded;
});
afterEach(cleanUp);

/** A listening socket as a service manager makes it, to be handed on. */
function managed(path: string): Server {
  const server = createServer().listen(path);
  onCleanUp(() => server.close());
  return server;
}

/** Leaves a socket that was handed on to its heir, with its file (which Node would remove). */
function handOver(path: string, server: Server): void {
  renameSync(path, `${path}.kept`);
  server.close();
  renameSync(`${path}.kept`, path);
}

function descriptor(of: object): number {
  return (of as { readonly _handle: { readonly fd: number } })._handle.fd; // private to Node, stable
}

interface Start {
  readonly fds: readonly number[];
  readonly names?: string | undefined;
  readonly paths: Readonly<Record<string, string>>;
  /** Left out: its own. */
  readonly pid?: string;
  /** Right after the descriptors are handed on. */
  readonly handOver?: () => void;
}

interface Report {
  readonly fault?: string;
  readonly serving: readonly string[];
  readonly left: readonly string[];
}

/** The shell becomes the daemon, so its process id is the daemon's, as with a service manager. */
async function start({ fds, names, paths, pid = "$$", handOver }: Start) {
  const variables = [`LISTEN_PID=${pid}`, `LISTEN_FDS=${fds.length}`];
  if (names !== undefined) variables.push(`LISTEN_FDNAMES=${names}`);
  const daemon = join(import.meta.dirname, "activation_daemon.ts");
  const argument = JSON.stringify(Object.entries(paths));
  const command = [
    "-c",
    `exec env ${variables.join(" ")} "$0" "$@"`,
    process.execPath,
    "--import",
    "tsx",
    daemon,
  ];
  const child = spawn("sh", [...command, argument], { stdio: ["ignore", "pipe", "inherit", ...fds] });
  onCleanUp(() => child.kill("SIGKILL"));
  handOver?.();
  return { child, report: await firstLine(child) };
}

async function firstLine(child: ChildProcess): Promise<Report> {
  const [line] = await once(createInterface({ input: child.stdout! }), "line");
  return JSON.parse(line) as Report;
}

async function reply(path: string): Promise<string> {
  const [answer] = await once(await connected(path), "data");
  return String(answer);
}

describe("inherited sockets", () => {
  it("are found by name whatever their order, served, and forgotten by the environment", async () => {
    const directory = temporaryDirectory();
    const paths = { agent: join(directory, "agent.sock"), files: join(directory, "files.sock") };
    const [agent, files] = [managed(paths.agent), managed(paths.files)];
    const { report } = await start({
      fds: [descriptor(files), descriptor(agent)],
      names: "files:agent",
      paths,
      handOver: () => {
        handOver(paths.agent, agent);
        handOver(paths.files, files);
      },
    });
    expect(report).toEqual({ serving: ["files 3 for us alone", "agent 4 for us alone"], left: [] });
    expect(await reply(paths.agent)).toBe("agent");
    expect(await reply(paths.files)).toBe("files");
  });

  it("are never removed, not when the daemon stops and not when it is killed", async () => {
    const path = join(temporaryDirectory(), "agent.sock");
    const server = managed(path);
    const before = lstatSync(path).ino;
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      const { child, report } = await start({
        fds: [descriptor(server)],
        names: "agent",
        paths: { agent: path },
      });
      expect(report.serving).toEqual(["agent 3 for us alone"]);
      child.kill(signal);
      await once(child, "exit");
      expect(lstatSync(path).ino).toBe(before);
    }
  });

  it("of another process are ignored, and forgotten as well", async () => {
    const path = join(temporaryDirectory(), "agent.sock");
    const fds = [descriptor(managed(path))];
    const { report } = await start({ fds, names: "agent", paths: { agent: path }, pid: String(process.pid) });
    expect(report).toEqual({ serving: [], left: [] });
    for (const pid of ["1", "", `0${process.pid}`, `${process.pid}x`, ` ${process.pid}`]) {
      const env = { LISTEN_PID: pid, LISTEN_FDS: "1", LISTEN_FDNAMES: "agent" };
      expect(takeInherited(env, process.pid, new Map([["agent", path]]), libc)).toEqual({
        ok: true,
        value: { byRole: new Map(), strangers: [] },
      });
      expect(env).toEqual({});
    }
  });

  it.each([
    ["a name that no role has", "stranger", "unknown_name"],
    ["a prototype's name", "constructor", "unknown_name"],
    ["the name of the file", "agent.sock", "unknown_name"],
    ["no names at all", undefined, "unnamed"],
    ["more names than descriptors", "agent:files", "unnamed"],
  ])("are refused with %s", (_, names, code) => {
    const path = join(temporaryDirectory(), "agent.sock");
    expect(verdict([descriptor(managed(path))], names, { agent: path })).toBe(code);
  });

  it("of a role that is gone from the config keep no daemon from starting, where each role has its own", () => {
    const directory = temporaryDirectory();
    const [path, old] = [join(directory, "agent.sock"), join(directory, "old.sock")];
    const fds = [descriptor(managed(old)), descriptor(managed(path))];
    expect(verdict(fds, "old:agent", { agent: path })).toBe("taken, and old is nobody's");
    expect(verdict(fds, "old:agent", { agent: path, files: join(directory, "files.sock") })).toBe(
      "unknown_name",
    );
  });

  it("are refused with one name twice", () => {
    const path = join(temporaryDirectory(), "agent.sock");
    const fd = descriptor(managed(path));
    expect(verdict([fd], "agent", { agent: path })).toBe("taken");
    expect(verdict([fd, fd], "agent:agent", { agent: path })).toBe("duplicate_name");
  });

  it("are refused where they cannot be checked for want of libc", () => {
    const env = { LISTEN_PID: "42", LISTEN_FDS: "1", LISTEN_FDNAMES: "agent" };
    const taken = takeInherited(env, 42, new Map([["agent", "/run/callgate/agent.sock"]]), undefined);
    expect(taken).toMatchObject({ fault: { code: "cannot_check" } });
  });

  it("are refused where their file is open to more than the config says", async () => {
    const path = join(temporaryDirectory(), "agent.sock");
    const inherited = { role: "agent", path, fd: descriptor(managed(path)) };
    chmodSync(path, 0o666);
    expect(await takenOver(inherited, 0o660, undefined)).toBe("open_to_others");
    chmodSync(path, 0o660);
    expect(await takenOver(inherited, 0o660, GROUP)).toBe("open_to_others");
  });

  it("are refused in a directory where others could replace their file", async () => {
    const directory = temporaryDirectory();
    const path = join(directory, "agent.sock");
    const inherited = { role: "agent", path, fd: descriptor(managed(path)) };
    chmodSync(directory, 0o777);
    expect(await takenOver(inherited, 0o777, undefined)).toBe("open_to_others");
  });

  it("are refused where their file is gone or is no socket", async () => {
    const path = join(temporaryDirectory(), "agent.sock");
    const inherited = { role: "agent", path, fd: descriptor(managed(path)) };
    unlinkSync(path);
    expect(await takenOver(inherited, 0o777, undefined)).toBe("missing");
    writeFileSync(path, "");
    expect(await takenOver(inherited, 0o777, undefined)).toBe("not_a_socket");
  });
});

/** As if `fds` were the inherited ones, which the kernel is asked about for real. */
function verdict(
  fds: readonly number[],
  names: string | undefined,
  paths: Readonly<Record<string, string>>,
): string {
  const env: NodeJS.ProcessEnv = { LISTEN_PID: "42", LISTEN_FDS: String(fds.length) };
  if (names !== undefined) env["LISTEN_FDNAMES"] = names;
  const real = (fd: number): number => fds[fd - 3] ?? -1;
  const moved: Libc = {
    ...libc,
    getsockopt: (fd, ...rest) => libc.getsockopt(real(fd), ...rest),
    getsockname: (fd, into) => libc.getsockname(real(fd), into),
  };
  const taken = takeInherited(env, 42, new Map(Object.entries(paths)), moved);
  if (!taken.ok) return taken.fault.code;
  const [stranger] = taken.value.strangers;
  return stranger === undefined ? "taken" : `taken, and ${stranger.name} is nobody's`;
}

async function takenOver(inherited: InheritedSocket, mode: number, gid: number | undefined): Promise<string> {
  const listener = await listenInherited(inherited, {
    role: inherited.role,
    mode,
    gid,
    backlog: 511,
    onConnection: (socket) => socket.destroy(),
    onAcceptFault: () => undefined,
  });
  return listener.ok ? "taken over" : listener.fault.code;
}

describe("an inherited descriptor is refused", () => {
  it("whose address is another role's path, a longer one, or another name for the same socket", () => {
    const directory = temporaryDirectory();
    const path = join(directory, "files.sock");
    const fds = [descriptor(managed(path))];
    const others = [
      join(directory, "agent.sock"),
      `${path}x`,
      path.slice(0, -1),
      `${directory}/./files.sock`,
    ];
    expect(verdict(fds, "agent", { agent: path })).toBe("taken");
    for (const other of others) expect(verdict(fds, "agent", { agent: other })).toBe("wrong_address");
  });

  it("whose address is abstract, and so anybody's", () => {
    const name = join(temporaryDirectory(), "agent.sock");
    expect(verdict([descriptor(managed(`\0${name}`))], "agent", { agent: name })).toBe("wrong_address");
  });

  it("which is a connection and does not listen", async () => {
    const path = join(temporaryDirectory(), "agent.sock");
    const server = managed(path);
    const [[accepted]] = await Promise.all([once(server, "connection"), connected(path)]);
    onCleanUp(() => accepted.destroy());
    // Its address is the role's: a socket that was accepted there.
    expect(verdict([descriptor(accepted)], "agent", { agent: path })).toBe("not_listening");
  });

  it("which is a network socket, a file, or not there", async () => {
    const path = join(temporaryDirectory(), "agent.sock");
    const server = createServer().listen(0, "127.0.0.1");
    onCleanUp(() => server.close());
    await once(server, "listening");
    const file = openSync(join(import.meta.dirname, "activation.test.ts"), "r");
    onCleanUp(() => closeSync(file));
    for (const fd of [descriptor(server), file, -1]) {
      expect(verdict([fd], "agent", { agent: path })).toBe("wrong_kind");
    }
  });
});

describe("the variables", () => {
  const none = new Map<string, string>();

  it.each(["", "-1", "1e3", "01", "99999", "0x1", " 1", undefined])(
    "are refused with LISTEN_FDS %j",
    async (fds) => {
      const env = {
        LISTEN_PID: "42",
        LISTEN_FDNAMES: "agent",
        ...(fds === undefined ? {} : { LISTEN_FDS: fds }),
      };
      expect(takeInherited(env, 42, none, libc)).toMatchObject({ fault: { code: "malformed" } });
      expect(env).toEqual({});
    },
  );

  it("are no news where there are none, or where they announce nothing", () => {
    expect(takeInherited({}, 42, none, undefined)).toEqual({
      ok: true,
      value: { byRole: none, strangers: [] },
    });
    const nothing = { LISTEN_PID: "42", LISTEN_FDS: "0", LISTEN_PIDFDID: "7", PATH: "/bin" };
    expect(takeInherited(nothing, 42, none, undefined)).toEqual({
      ok: true,
      value: { byRole: none, strangers: [] },
    });
    expect(nothing).toEqual({ PATH: "/bin" });
  });
});
