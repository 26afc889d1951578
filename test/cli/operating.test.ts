import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { provide } from "../../src/library.ts";
import { callgate, cleanUp, Daemon, onCleanUp, Place, type Ran, run } from "../daemon/daemon.ts";
import { trusted } from "../daemon/frames.ts";
import { WirePeer } from "../daemon/wire_peer.ts";

// The command line against the real daemon, with its files role and roles of other users.

/** Users that no account needs to exist for. */
const FRONT = 54_321;
const BOT = 54_322;
const OPS = 54_323;

const CONFIG = (docs: string) => `
[roles.agent]
anyone = true
[roles.files]
anyone = true
[roles.extra]
users = [0]
provides = ["extra."]
[roles.slow]
anyone = true
[roles.operator]
anyone = true
operator = true
[roles.front]
users = [${FRONT}]
group = ${FRONT}
[roles.bot]
users = [${BOT}]
group = ${BOT}
sessions = "opened"
taint_scope = "session"

[tools.read_file]
role = "files"
effect = "read"
schema = { type = "object", properties = { path = { type = "string" } }, required = ["path"], additionalProperties = false }
[tools.list_dir]
role = "files"
effect = "read"
[tools.wait]
role = "slow"
effect = "write"
untrusted = false

[[grants]]
id = "reads"
role = "agent"
tools = ["read_file"]
effect = "allow"
when = 'under(args.path, "${docs}")'
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "no-secrets"
role = "agent"
tools = ["read_file"]
effect = "deny"
when = 'under(args.path, "${docs}/secret")'
reason = "Secrets are for people."
[[grants]]
id = "waits"
role = "agent"
tools = ["wait", "callgate.calls.*", "callgate.grants.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "operates"
role = "operator"
tools = ["callgate.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "opens"
role = "front"
tools = ["callgate.sessions.*"]
effect = "allow"
taint_max = "public"
taint_untrusted = false
[[grants]]
id = "bot-reads"
role = "bot"
tools = ["read_file"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "extra-announces"
role = "extra"
tools = ["callgate.tools.announce"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;

/** Its state is in it too, so that several daemons can live at once. */
class WholePlace extends Place {
  override write(config: string): void {
    writeFileSync(this.config, `[daemon]\nsockets = "run"\nstate = "state"\n${config}`, { mode: 0o644 });
  }
}

let daemon: Daemon;
let docs: string;
let plan: string;

beforeAll(async () => {
  const place = new WholePlace("");
  docs = join(place.directory, "docs");
  plan = join(docs, "plan.txt");
  mkdirSync(join(docs, "secret"), { recursive: true });
  writeFileSync(plan, "Ship on Friday.\n");
  place.write(CONFIG(docs));
  daemon = await Daemon.start(place);
  const root = `internal,trusted,rw:${docs}`;
  const role = spawn(
    process.execPath,
    [callgate(), "role", "files", "--socket", daemon.socket("files"), "--root", root],
    {
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  onCleanUp(() => role.kill("SIGKILL"));
  const [serving] = await once(role.stderr, "data");
  expect(String(serving)).toMatch(/^serving list_dir, /);
});
afterAll(cleanUp);

const as = (role: string, ...args: string[]): Promise<Ran> => run([...args, "--socket", daemon.socket(role)]);

async function shown(role: string, ...args: string[]): Promise<Record<string, unknown>> {
  const ran = await as(role, ...args, "--json");
  expect(ran).toMatchObject({ status: 0, err: "" });
  return JSON.parse(ran.out) as Record<string, unknown>;
}

describe("callgate call", () => {
  it("prints the content on standard output and all about it on standard error, and exits with 0", async () => {
    const ran = await as("agent", "call", "read_file", JSON.stringify({ path: plan }), "--session", "s1");
    expect(ran).toMatchObject({ status: 0, out: "Ship on Friday.\n" });
    expect(ran.err).toMatch(/^\[session s1, call [0-9]+\]\n\[result: internal, untrusted\]\n$/);
  });

  it("reads the arguments from standard input, and prints a JSON line for each message", async () => {
    const words = ["call", "read_file", "-", "--json", "--socket", daemon.socket("agent")];
    const ran = await run(words, { input: `${JSON.stringify({ path: plan })}\n` });
    expect(ran).toMatchObject({ status: 0, err: "" });
    expect(JSON.parse(ran.out)).toEqual({
      ...trusted("Ship on Friday.\n"),
      class: "internal",
      untrusted: true,
    });
  });

  it("says why a call was denied: the grant, its owner's words, the taint; exits with 3", async () => {
    const denied = await as("agent", "call", "read_file", JSON.stringify({ path: `${docs}/secret/key` }));
    expect(denied).toMatchObject({ status: 3, out: "" });
    const lines = denied.err.split("\n").slice(1);
    expect(lines).toEqual([
      "denied: denied_by_grant",
      "  decided by: grant no-secrets (row deny)",
      "  reason: Secrets are for people.",
      expect.stringMatching(/^ {2}the session's taint then: [a-z]+, (un)?trusted$/),
      "",
    ]);
    const unknown = await as("agent", "call", "no_such_tool");
    expect(unknown).toMatchObject({ status: 3 });
    expect(unknown.err).toContain("denied: no_grant\n  decided by: no grant (row nothing)\n");
  });

  it("exits with 4 where the call failed, and says what of it may have run", async () => {
    const failed = await as("agent", "call", "read_file", JSON.stringify({ path: `${docs}/none` }));
    expect(failed).toMatchObject({ status: 4, out: "" });
    expect(failed.err).toMatch(/\nfailed: provider: The provider ran or tried to, and says: /);
    const nobody = await as("agent", "call", "wait");
    expect(nobody).toMatchObject({ status: 4 });
    expect(nobody.err).toMatch(/\nfailed: no_provider: Its provider is not connected\. Nothing ran\.\n$/);
  });

  it.each([
    ["no socket", ["call", "read_file"]],
    ["arguments that are no object", ["call", "read_file", "[1]", "--socket", "x"]],
    ["a call id that is none", ["call", "read_file", "{}", "--call", "-1", "--socket", "x"]],
    ["a session that is none", ["call", "read_file", "{}", "--session", "a b", "--socket", "x"]],
    ["two ways to the broker", ["call", "read_file", "--fd", "3", "--socket", "x"]],
    ["a command that there is not", ["cal"]],
    ["a number that is none", ["sessions", "open", "bot", "s", "--expires", "soon", "--socket", "x"]],
  ])("exits with 2 for %s, before it connects", async (_, words) => {
    const ran = await run(words);
    expect(ran).toMatchObject({ status: 2, out: "" });
    expect(ran.err).not.toContain("    at ");
    expect(ran.err.trim()).not.toBe("");
  });

  it("exits with 2, and without a stack, where standard input can't be read", async () => {
    const directory = openSync(docs, "r");
    const words = [callgate(), "call", "read_file", "-", "--socket", "x"];
    const child = spawn(process.execPath, words, { stdio: [directory, "ignore", "pipe"] });
    closeSync(directory);
    const [errors] = await Promise.all([text(child.stderr as Readable), once(child, "close")]);
    expect([child.exitCode, errors]).toEqual([
      2,
      "callgate: standard input can't be read\n(callgate call --help shows how it is used)\n",
    ]);
  });

  it("exits with 1 where there is no broker", async () => {
    const ran = await run(["call", "read_file", "--socket", daemon.socket("nobody")]);
    expect(ran).toEqual({
      status: 1,
      out: "",
      err:
        "callgate: unreachable: no connection to the broker (ENOENT)\n" +
        `  Does the broker run, and is "${daemon.socket("nobody")}" its socket?\n`,
    });
  });

  it("asked again with its id gives the same bytes, and the provider has run once", async () => {
    let runs = 0;
    const provider = await provide({
      to: { path: daemon.socket("slow") },
      tools: {
        wait: () => {
          runs += 1;
          return `run ${runs} é😀`;
        },
      },
    });
    const again = () =>
      as(
        "agent",
        "call",
        "wait",
        '{"a":1}',
        "--session",
        "again",
        "--call",
        "18446744073709551615",
        "--json",
      );
    const first = await again();
    expect(first.status).toBe(0);
    expect(await again()).toEqual(first);
    expect(runs).toBe(1);
    const other = await as(
      "agent",
      "call",
      "wait",
      '{"a":2}',
      "--session",
      "again",
      "--call",
      "18446744073709551615",
    );
    expect(other).toMatchObject({ status: 4, err: expect.stringContaining("failed: conflict: ") });
    await provider.close();
  });

  it("works over an inherited descriptor", async () => {
    const socket = connect(daemon.socket("agent"));
    onCleanUp(() => socket.destroy());
    await once(socket, "connect");
    socket.pause();
    const words = [callgate(), "call", "read_file", JSON.stringify({ path: plan }), "--fd", "3"];
    const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "ignore", socket] });
    const [out] = await Promise.all([text(child.stdout as Readable), once(child, "close")]);
    expect([out, child.exitCode]).toEqual(["Ship on Friday.\n", 0]);
  });

  it("ends quietly where nobody reads its output", async () => {
    const words = [
      callgate(),
      "call",
      "read_file",
      JSON.stringify({ path: plan }),
      "--socket",
      daemon.socket("agent"),
    ];
    const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.destroy();
    const [errors] = await Promise.all([text(child.stderr), once(child, "close")]);
    expect(child.exitCode).toBe(0);
    expect(errors).not.toContain("EPIPE");
  });
});

describe("callgate role files", () => {
  it("serves over an inherited descriptor, and says so and exits with 1 where the broker is gone", async () => {
    const own = await Daemon.start(new WholePlace(CONFIG(docs)));
    const socket = connect(own.socket("files"));
    await once(socket, "connect");
    socket.pause();
    const words = [callgate(), "role", "files", "--fd", "3", "--root", docs];
    const child = spawn(process.execPath, words, { stdio: ["ignore", "ignore", "pipe", socket] });
    onCleanUp(() => child.kill("SIGKILL"));
    const errors = text(child.stderr as Readable);
    await once(child.stderr as Readable, "data");
    socket.destroy();
    const read = await run([
      "call",
      "read_file",
      JSON.stringify({ path: plan }),
      "--socket",
      own.socket("agent"),
    ]);
    expect(read).toMatchObject({ status: 0, out: "Ship on Friday.\n" });
    const closed = once(child, "close");
    await own.stop();
    await closed;
    expect(child.exitCode).toBe(1);
    expect(await errors).toMatch(/^serving list_dir, .*\ncallgate: lost: .+\n$/);
  });
});

describe("an operator's commands", () => {
  it("status shows roles and load as lines for people, and as JSON", async () => {
    const ran = await as("operator", "status");
    expect(ran).toMatchObject({ status: 0, err: "" });
    expect(ran.out).toMatch(
      /^as role +operator\nversion +\d+\.\d+\.\d+\nup +\d.*\npolicy +[0-9a-f]{12}, 3 tools, 7 grants, in force\n/,
    );
    expect(ran.out).toMatch(/\nquestions +none wait\n/);
    expect(ran.out).toMatch(/\nROLE +CONNECTIONS +ASKING +SERVING +TAINT\nagent +0 +0 +0 +/);
    expect(await shown("operator", "status")).toMatchObject({ role: "operator", running_calls: 0 });
  });

  it("grants list shows every grant, and an agent's only its own", async () => {
    const all = (await shown("operator", "grants", "list"))["grants"] as { id: string }[];
    expect(all.map(({ id }) => id)).toContain("bot-reads");
    const own = (await shown("agent", "grants", "list"))["grants"] as { id: string }[];
    expect(own.map(({ id }) => id)).toEqual(["reads", "no-secrets", "waits"]);
    const lines = (await as("agent", "grants", "list")).out.split("\n");
    expect(lines[0]).toMatch(/^reads +allow +agent: read_file$/);
    expect(lines[1]).toBe("    all sessions; taint up to restricted, untrusted");
    expect(lines[2]).toMatch(/^ {4}when under\(args\.path, /);
  });

  it("grants explain tells what would be decided, for a taint that is not there yet", async () => {
    const words = ["grants", "explain", "read_file", JSON.stringify({ path: plan })];
    expect(await shown("operator", ...words, "--role", "agent")).toMatchObject({
      verdict: "allow",
      grant: "reads",
    });
    const outside = await shown(
      "operator",
      "grants",
      "explain",
      "read_file",
      '{"path":"/etc/passwd"}',
      "--role",
      "agent",
    );
    expect(outside).toMatchObject({ verdict: "deny", reason: "no_grant" });
    const tainted = await shown(
      "operator",
      "grants",
      "explain",
      "callgate.sessions.open",
      "--role",
      "front",
      "--untrusted",
    );
    expect(tainted).toMatchObject({ verdict: "deny", reason: "taint_too_high" });
    const misspelt = await as("operator", ...words, "--role", "agent", "--taint-class", "secret");
    expect(misspelt).toMatchObject({
      status: 2,
      err: expect.stringContaining("Allowed choices are public,"),
    });
    const noJson = await as("operator", "grants", "explain", "write_file", "note.md", "--role", "agent");
    expect(noJson).toMatchObject({ status: 2, err: expect.stringContaining("must be one JSON object") });
  });

  it("sessions are opened by another user, used, shown and closed for good", async () => {
    const front = (...args: string[]) =>
      run([...args, "--socket", daemon.socket("front"), "--json"], { uid: FRONT });
    const bot = () =>
      run(
        [
          "call",
          "read_file",
          JSON.stringify({ path: plan }),
          "--session",
          "chat-1",
          "--socket",
          daemon.socket("bot"),
        ],
        {
          uid: BOT,
        },
      );
    expect(await bot()).toMatchObject({ status: 3, err: expect.stringContaining("denied: no_grant") });
    const opened = await front(
      "sessions",
      "open",
      "bot",
      "chat-1",
      "--request",
      "Read the plan.",
      "--expires",
      "60",
    );
    expect(opened).toMatchObject({ status: 0, err: "" });
    expect(await bot()).toMatchObject({ status: 0, out: "Ship on Friday.\n" });
    expect(await shown("operator", "sessions", "show", "chat-1", "--role", "bot")).toMatchObject({
      state: "open",
      taint: { class: "internal", untrusted: true },
      opened_by: "front",
      request: "Read the plan.",
    });
    const own = await run(["sessions", "open", "bot", "chat-2", "--socket", daemon.socket("operator")], {
      uid: BOT,
    });
    expect(own).toMatchObject({
      status: 4,
      err: expect.stringContaining("Nobody opens a session for their own role or user"),
    });
    await shown("operator", "sessions", "close", "chat-1", "--role", "bot");
    expect(await bot()).toMatchObject({ status: 3 });
    expect(await front("sessions", "open", "bot", "chat-1")).toMatchObject({
      status: 4,
      err: expect.stringContaining("used before"),
    });
  });

  it("a user who is not named does not get in", async () => {
    const from = daemon.lines.length;
    const ran = await as("front", "status"); // as root, whom no file mode stops
    expect(ran).toMatchObject({
      status: 1,
      err: expect.stringContaining("May this user connect as this role"),
    });
    expect(await daemon.event("peer.refused", undefined, from)).toMatchObject({ role: "front", uid: 0 });
  });

  it("an announced tool is shown whole, accepted by its digest and then in service", async () => {
    const description = `Adds. ${"x".repeat(500)} \u202e`;
    const provider = await provide({
      to: { path: daemon.socket("extra") },
      tools: { "extra.add": ({ args }) => String(Number(args?.["a"]) + Number(args?.["b"])) },
      announce: [{ name: "extra.add", description, schema: { type: "object" } }],
    });
    const listed = (await shown("operator", "tools", "list", "--prefix", "extra."))["tools"] as unknown[];
    expect(listed).toHaveLength(1);
    expect(JSON.stringify(listed)).not.toContain("Adds."); // nobody has looked at these words yet
    const human = await as("operator", "tools", "diff", "extra.add");
    expect(human.out).toContain(`Adds. ${"x".repeat(500)} \\u{202e}`);
    const diff = await shown("operator", "tools", "diff", "extra.add");
    const digest = /"digest":"([0-9a-f]{64})"/.exec(JSON.stringify(diff))?.[1] ?? "";
    const wrong = await as("operator", "tools", "accept", "extra.add", "0".repeat(64));
    expect(wrong.status).toBe(4);
    const words = ["tools", "accept", "extra.add", digest, "--socket", daemon.socket("operator")];
    // Nobody accepts what their own user offers.
    expect(await run(words)).toMatchObject({
      status: 4,
      err: expect.stringContaining("of their own role or user"),
    });
    expect(await run(words, { uid: OPS })).toMatchObject({ status: 0 });
    expect(JSON.stringify(await shown("operator", "tools", "list", "--prefix", "extra."))).toContain("Adds.");
    await provider.close();
  });

  it("calls why and cancel look at one call of the agent's", async () => {
    const provider = await WirePeer.connect(daemon.socket("slow"));
    const caller = await WirePeer.connect(daemon.socket("agent"));
    caller.ask(1n, "wait", {}, 77n, "cancelled");
    await provider.request();
    const cancelled = await shown(
      "operator",
      "calls",
      "cancel",
      "77",
      "--role",
      "agent",
      "--of",
      "cancelled",
    );
    expect(cancelled).toMatchObject({ cancelled: true });
    expect(await caller.response()).toMatchObject({
      status: "failed",
      message: expect.stringMatching(/^cancelled: /),
    });
    caller.ask(2n, "send_mail", {}, 78n, "cancelled");
    expect(await caller.response()).toMatchObject({ status: "denied" });
    const why = await shown("operator", "calls", "why", "78", "--role", "agent", "--of", "cancelled");
    expect(why).toMatchObject({ row: "nothing", grant: null });
    await Promise.all([caller.close(), provider.close()]);
  });

  it("freeze stops a role at once, and --thaw lets it go on", async () => {
    const agent = await WirePeer.connect(daemon.socket("agent"));
    agent.ask(1n, "nothing", {}, 900n);
    await agent.response();
    expect(await shown("operator", "freeze", "agent")).toMatchObject({ role: "agent", frozen: true });
    expect(await agent.refused()).toBe("internal");
    expect((await as("agent", "call", "read_file")).status).not.toBe(0);
    expect(await shown("operator", "freeze", "agent", "--thaw")).toMatchObject({ frozen: false });
    expect((await as("agent", "call", "read_file", JSON.stringify({ path: plan }))).status).toBe(0);
  });

  it("is denied to an agent, with why", async () => {
    const ran = await as("agent", "freeze", "operator");
    expect(ran).toMatchObject({ status: 3, out: "", err: expect.stringContaining("denied: no_grant") });
  });
});

describe("callgate tail", () => {
  it("makes the daemon's own lines readable, one for one", async () => {
    const lines = daemon.lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const ran = await run(["tail"], {
      input: `${lines}<4>{"level":"warn","event":"x","a":"\\u001b[2J"}\nno json \u001b[2J\n`,
    });
    const out = ran.out.split("\n");
    expect(ran).toMatchObject({ status: 0, err: "" });
    expect(out).toHaveLength(daemon.lines.length + 3);
    const ready = daemon.lines.findIndex(({ event }) => event === "daemon.ready");
    expect(out[ready]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} INFO {2}daemon\.ready +pid=\d+ version=\S+ sockets=/);
    expect(out.at(-3)).toMatch(/WARN {2}x +a=\\u\{1b\}\[2J$/);
    expect(out.at(-2)).toBe("no json \\u{1b}[2J");
  });
});

describe("the Python examples", () => {
  it("call and serve through the daemon", async () => {
    const place = new WholePlace(`
[roles.agent]
anyone = true
[roles.py]
anyone = true
[tools.word_count]
role = "py"
effect = "read"
[[grants]]
id = "counts"
role = "agent"
tools = ["word_count"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`);
    const broker = await Daemon.start(place);
    const file = (name: string) => join(import.meta.dirname, "../../examples/python", name);
    const provider = spawn("python3", ["-I", file("provider.py"), broker.socket("py")], { stdio: "ignore" });
    onCleanUp(() => provider.kill("SIGKILL"));
    await broker.event("peer.connected");
    const words = ["-I", file("caller.py"), broker.socket("agent"), "word_count", '{"text":"one two 😀"}'];
    const caller = spawn("python3", words, { stdio: ["ignore", "pipe", "inherit"] });
    const [out] = await Promise.all([text(caller.stdout), once(caller, "close")]);
    expect(caller.exitCode).toBe(0);
    expect(JSON.parse(out)).toEqual({ ...trusted("3"), untrusted: true });
    const gone = once(provider, "exit");
    await broker.stop();
    expect((await gone)[0]).toBe(0);
  });
});

describe("callgate demo", () => {
  it("shows what gets through, and leaves no file and no process", async () => {
    const scratch = new Place("").directory;
    const ran = await run(["demo"], { env: { TMPDIR: scratch } });
    expect(ran).toMatchObject({ status: 0, err: "" });
    const answers = [...ran.out.matchAll(/gate answers (\w+ +[^ \n]+)/g)].map(([, answer]) => answer);
    expect(answers).toEqual([
      "result  class=internal",
      "denied  no_grant",
      "denied  no_grant",
      "result  class=internal",
      "result  class=internal",
      "denied  taint_too_high",
      "denied  grant_expired",
      "result  class=internal",
      "denied  approval_refused",
    ]);
    expect(ran.out).not.toContain(scratch);
    expect(readdirSync(scratch)).toEqual(["callgate.toml"]);
    expect(processesWith(scratch)).toEqual([]);
  });

  it("runs where the umask lets a group write, as on many desktops", async () => {
    const words = ["-c", 'umask 002; exec "$0" "$@"', process.execPath, callgate(), "demo"];
    const child = spawn("sh", words, { stdio: ["ignore", "ignore", "pipe"] });
    const [errors] = await Promise.all([text(child.stderr), once(child, "close")]);
    expect([child.exitCode, errors]).toEqual([0, ""]);
  });

  it("interrupted, leaves no file and no process either", async () => {
    const scratch = new Place("").directory;
    const child = spawn(process.execPath, [callgate(), "demo"], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, TMPDIR: scratch },
    });
    await once(child.stdout, "data");
    const ended = once(child, "exit");
    child.kill("SIGINT");
    expect((await ended)[0]).toBe(130);
    expect(readdirSync(scratch)).toEqual(["callgate.toml"]);
    expect(processesWith(scratch)).toEqual([]);
  });
});

/** Ids of processes that name the text in their arguments. */
function processesWith(part: string): string[] {
  const named = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(part);
    } catch {
      return false; // gone meanwhile
    }
  };
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && named(name));
}
