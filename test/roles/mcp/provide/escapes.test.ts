import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import type { Confinement } from "../../../../src/roles/mcp/provide/confinement.ts";
import { HeldPaths } from "../../../../src/roles/mcp/provide/confinement_covers.ts";
import { ServerProcess } from "../../../../src/roles/mcp/provide/server_process.ts";
import { cleanUp, onCleanUp } from "../../../daemon/daemon.ts";
import { describeWith } from "../../../needs.ts";

// What a server, or whoever wrote how it is started, could have our own programs do, or find when it is started again.

afterEach(cleanUp);

const PATH = "/usr/local/bin:/usr/bin:/bin";
const NEEDED = ["unshare", "setpriv", "mount", "setsid", "env"];

function temporary(): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "callgate-escapes-")));
  onCleanUp(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A directory of a gate, with sockets that are listened on. */
async function gateIn(home: string): Promise<string> {
  const gate = join(home, "gate");
  mkdirSync(join(gate, "run"), { recursive: true });
  mkdirSync(join(gate, "state"));
  writeFileSync(join(gate, "state", "data"), "secret\n");
  for (const name of ["operator", "server"]) {
    const server = createServer().listen(join(gate, "run", `${name}.sock`));
    await once(server, "listening");
    onCleanUp(() => void server.close());
  }
  return gate;
}

interface Run {
  readonly script: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly confinement?: Confinement;
}

/** All that a confined shell says. */
async function said({ script, args = [], env = {}, confinement }: Run): Promise<string> {
  const chunks: Buffer[] = [];
  const take = (chunk: Buffer) => void chunks.push(chunk);
  const command = { command: "sh", args: ["-c", script, "sh", ...args], env: { PATH, ...env } };
  const started = ServerProcess.start({ ...command, confinement }, { stdout: take, stderr: take });
  if (!started.ok) throw new Error(started.fault.how);
  expect(await started.value.ended).toMatchObject({ how: "exit 0" });
  return Buffer.concat(chunks).toString();
}

describeWith(NEEDED, "a server's variables", () => {
  it("load nothing into the programs that make its confinement: they run with more than the server may", async () => {
    const home = temporary();
    const env = { LD_DEBUG: "files", LD_DEBUG_OUTPUT: join(home, "loaded") };
    await said({ script: "env true", env });
    const loaded = readdirSync(home).map((name) => readFileSync(join(home, name), "utf8"));
    const programs = loaded.flatMap((text) =>
      [...text.matchAll(/initialize program: (\S+)/g)].map(([, name]) => name),
    );
    // Those that run with nothing but what the server has.
    expect(programs.map((name) => name?.split("/").at(-1)).sort()).toEqual(["env", "setsid", "sh", "true"]);
  });

  it("arrive as they were given, whatever is in them, and no other does", async () => {
    const env = {
      EMPTY: "",
      QUOTED: `"a' b $HOME \${PATH} \\\n# =`,
      _: "own",
      A_SPLIT: "-S x=y",
      PWD: "/nowhere",
    };
    const text = await said({ script: "env -0", env });
    const found = Object.fromEntries(
      text
        .split("\0")
        .filter((one) => one !== "")
        .map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]),
    );
    // The shell that is the server here sets its own.
    const { _: _own, PWD: _here, OLDPWD: _before, ...others } = found;
    const { _: _given, PWD: _there, ...expected } = env;
    expect(others).toEqual({ PATH, ...expected });
  });

  it("do not show in any command line", async () => {
    const text = await said({
      script: 'cat /proc/[0-9]*/cmdline | tr "\\0" "\\n"',
      env: { TOKEN: "not-for-others" },
    });
    expect(text).toContain("cmdline");
    expect(text).not.toContain("not-for-others");
  });
});

describeWith(NEEDED, "a server that puts another directory where the gate's was, and ends", () => {
  const MOVE = 'cd "$1" && mv gate moved && mkdir -p gate/run gate/state; ls -A moved/run';
  const LOOK = 'cd "$1" && ls -A moved/run moved/state';

  it.each([
    ["absolute", (gate: string, path: string) => join(gate, path)],
    ["relative", (_: string, path: string) => path],
  ] as const)("finds the moved one empty when it is started again (%s paths)", async (kind, name) => {
    const home = temporary();
    const gate = await gateIn(home);
    if (kind === "relative") {
      const before = process.cwd();
      process.chdir(gate);
      onCleanUp(() => process.chdir(before));
    }
    const held = new HeldPaths();
    const confinement = { socket: name(gate, "run/server.sock"), hidden: [name(gate, "state")], held };
    const where = { args: [home], confinement };
    expect(await said({ ...where, script: MOVE })).toBe("");
    expect(await said({ ...where, script: LOOK })).toBe("moved/run:\n\nmoved/state:\n");
    expect(readdirSync(join(home, "moved", "run"))).toEqual(["operator.sock", "server.sock"]);
  });

  it("is not started where what is hidden can't be found any more", () => {
    const home = temporary();
    mkdirSync(join(home, "state"));
    const held = new HeldPaths();
    expect(held.placesWith([join(home, "state")])).toEqual({ ok: true, value: [join(home, "state")] });
    rmSync(join(home, "state"), { recursive: true });
    expect(held.placesWith([])).toEqual({ ok: true, value: [] });
    expect(held.placesWith([join(home, "state")])).toMatchObject({ ok: false });
  });
});

describeWith([...NEEDED, "script"], "people's terminals", () => {
  it("are not there for a server, which could write to them and read what is typed", async () => {
    const terminal = spawn("script", ["-qfc", "tty; exec sleep 100000", "/dev/null"], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    onCleanUp(() => void terminal.kill("SIGKILL"));
    const [chunk] = (await once(terminal.stdout, "data")) as [Buffer];
    const path = chunk.toString().trim();
    expect(path).toMatch(/^\/dev\/pts\/[0-9]+$/);
    expect(spawnSync("test", ["-c", path]).status).toBe(0);
    expect(await said({ script: "ls /dev/pts" })).toBe("ptmx\n");
    // It can have its own.
    expect(await said({ script: 'script -qfc "tty" /dev/null </dev/null' })).toMatch(/^\/dev\/pts\/0/);
  });
});
