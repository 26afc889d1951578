import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import type { Questions, WholeQuestion } from "../../../src/client/answers.ts";
import { connect } from "../../../src/client/caller.ts";
import { provide } from "../../../src/client/provider.ts";
import { type Asked, KEY_HEADER, type LoggedIn } from "../../../src/roles/console/api.ts";
import { ECHO } from "../../daemon/configs.ts";
import { callgate, cleanUp, Daemon, onCleanUp, Place, run } from "../../daemon/daemon.ts";
import { Listener, type Login, parsed } from "./rig.ts";

afterEach(cleanUp);

/** Every `slow` is asked. */
const ASKING = `${ECHO}
[[grants]]
id = "agent-is-asked"
role = "agent"
tools = ["slow"]
effect = "ask"
taint_max = "restricted"
taint_untrusted = true
`;

/** `callgate console` as a process, and a browser's side of it. */
class Console {
  readonly child: ChildProcess;
  out = "";
  err = "";
  #waiting: (() => void)[] = [];

  constructor(words: readonly string[]) {
    this.child = spawn(process.execPath, [callgate(), "console", ...words], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NODE_OPTIONS: "" },
    });
    onCleanUp(() => this.child.kill("SIGKILL"));
    this.child.stdout?.on("data", (chunk) => this.#came("out", String(chunk)));
    this.child.stderr?.on("data", (chunk) => this.#came("err", String(chunk)));
  }

  #came(where: "out" | "err", chunk: string): void {
    this[where] += chunk;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Waits until it has said so. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.out) ?? pattern.exec(this.err);
      if (found !== null) return found;
      if (this.child.exitCode !== null) throw new Error(`it ended: ${this.out}${this.err}`);
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        this.child.once("exit", () => resolve());
      });
    }
  }

  async ended(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
    return this.child.exitCode;
  }

  async port(): Promise<number> {
    return Number((await this.says(/^http:\/\/127\.0\.0\.1:(\d+)\/#login=[\w-]{43}$/m))[1]);
  }

  async logIn(): Promise<Login> {
    const port = await this.port();
    const token = [...this.out.matchAll(/#login=([\w-]{43})$/gm)].at(-1)?.[1];
    const response = await this.#post(port, "/api/login", {}, { token });
    const { key } = (await response.json()) as LoggedIn;
    return { key, cookie: response.headers.get("set-cookie")?.split(";")[0] ?? "" };
  }

  async ask<T>(login: Login, tool: string, args: object = {}): Promise<T> {
    const headers = { Cookie: login.cookie, [KEY_HEADER]: login.key };
    const response = await this.#post(await this.port(), `/api/ask/callgate.${tool}`, headers, args);
    const asked = (await response.json()) as Asked;
    if (asked.status !== "result") throw new Error(JSON.stringify(asked));
    return JSON.parse(asked.content) as T;
  }

  async listen(login: Login): Promise<Listener> {
    const port = await this.port();
    return new Listener(port, [
      `Host: 127.0.0.1:${port}`,
      `Cookie: ${login.cookie}`,
      `${KEY_HEADER}: ${login.key}`,
    ]);
  }

  #post(
    port: number,
    path: string,
    headers: Readonly<Record<string, string>>,
    body: object,
  ): Promise<Response> {
    const origin = `http://127.0.0.1:${port}`;
    const own = { Origin: origin, "Content-Type": "application/json", ...headers };
    return fetch(`${origin}${path}`, { method: "POST", headers: own, body: JSON.stringify(body) });
  }
}

/** A daemon, its provider, and an agent's call that waits for a person. */
async function waiting() {
  const place = new Place(ASKING);
  const config = readFileSync(place.config, "utf8");
  writeFileSync(place.config, `allow_same_user = true\n${config}`); // one user is agent and operator here
  const daemon = await Daemon.start(place);
  const provider = await provide({
    to: { path: daemon.socket("tools") },
    handle: async () => ({ content: "done", class: "public", untrusted: false }),
  });
  onCleanUp(() => provider.close());
  const agent = await connect({ to: { path: daemon.socket("agent") }, session: "s" });
  onCleanUp(() => agent.close());
  const call = agent.call("slow", { text: "hello" });
  const first = await call[Symbol.asyncIterator]().next();
  expect(first.value).toMatchObject({ status: "pending_approval" });
  return { daemon, call };
}

const lastOf = (listener: Listener) => listener.all("approvals").at(-1) as Questions | undefined;

describe("the console of a real daemon", () => {
  it("shows a question as it comes, approves it, and the call that waits gets its result", async () => {
    const { daemon, call } = await waiting();
    const console_ = new Console(["--socket", daemon.socket("operator")]);
    const login = await console_.logIn();
    const listener = await console_.listen(login);
    await listener.shows(`"tool":"slow"`);
    const [question] = lastOf(listener)?.approvals ?? [];
    const whole = await console_.ask<WholeQuestion>(login, "approvals.show", {
      approval: question?.approval,
    });
    await console_.ask(login, "approvals.approve", { approval: whole.approval, digest: whole.digest });
    expect(await call.final).toMatchObject({ status: "result", content: "done" });
    await listener.has("approvals", 2);
    while (lastOf(listener)?.approvals.length !== 0)
      await listener.has("approvals", listener.all("approvals").length + 1);
  });

  it("is told of the daemon's restart, and goes on with the one that comes", async () => {
    const { daemon } = await waiting();
    const console_ = new Console(["--socket", daemon.socket("operator")]);
    const login = await console_.logIn();
    const listener = await console_.listen(login);
    await listener.shows(`"tool":"slow"`);
    await daemon.kill();
    await listener.shows(`"connected":false`);
    await console_.says(/callgate: The broker can't be reached \(/);
    const again = await Daemon.start(daemon.place);
    await console_.says(/callgate: The broker is there\./);
    const { approvals } = await console_.ask<Questions>(login, "approvals.list");
    expect(approvals).toHaveLength(1); // it outlived the restart
    expect(await again.stop()).toBe(0);
  });

  it("gives out real figures to the token", async () => {
    const daemon = await Daemon.start(ECHO);
    const directory = mkdtempSync("/tmp/callgate-token-");
    onCleanUp(() => rmSync(directory, { recursive: true }));
    writeFileSync(`${directory}/token`, "t".repeat(40), { mode: 0o600 });
    const console_ = new Console([
      "--socket",
      daemon.socket("operator"),
      "--metrics-token-file",
      `${directory}/token`,
    ]);
    const url = `http://127.0.0.1:${await console_.port()}/metrics`;
    let figures = "";
    while (!figures.includes("callgate_up 1"))
      figures = await (await fetch(url, { headers: { Authorization: `Bearer ${"t".repeat(40)}` } })).text();
    expect(figures).toMatch(/^callgate_decisions_total\{.*\} \d+$/m);
    expect((await fetch(url)).status).toBe(401);
  });
});

/** Becomes that user in a process of its own, sends bytes, and says what came back. */
async function sentAs(uid: number, port: number, bytes: string): Promise<string> {
  const script = `
    process.setgroups([]); process.setgid(${uid}); process.setuid(${uid});
    const socket = require("node:net").connect(${port}, "127.0.0.1");
    socket.write(process.argv[1]);
    socket.pipe(process.stdout);`;
  const child = spawn(process.execPath, ["-e", script, bytes], { stdio: ["ignore", "pipe", "inherit"] });
  onCleanUp(() => child.kill("SIGKILL"));
  return text(child.stdout);
}

describe("an agent that can reach the port", () => {
  it.runIf(process.getuid?.() === 0)(
    "can't decide as another user, though it has the cookie, the key and the digest",
    async () => {
      const { daemon } = await waiting();
      const console_ = new Console(["--socket", daemon.socket("operator")]);
      const login = await console_.logIn();
      const port = await console_.port();
      const { approvals } = await console_.ask<Questions>(login, "approvals.list");
      const { approval, digest } = await console_.ask<WholeQuestion>(login, "approvals.show", {
        approval: approvals[0]?.approval,
      });
      const body = JSON.stringify({ approval, digest });
      const headers = [
        ...[`Host: 127.0.0.1:${port}`, `Origin: http://127.0.0.1:${port}`, "Content-Type: application/json"],
        ...[`Cookie: ${login.cookie}`, `${KEY_HEADER}: ${login.key}`, `Content-Length: ${body.length}`],
      ];
      const bytes = `POST /api/ask/callgate.approvals.approve HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n${body}`;
      expect(parsed(await sentAs(61_234, port, bytes))).toMatchObject({ status: 403 });
      expect((await console_.ask<Questions>(login, "approvals.list")).approvals).toHaveLength(1);
      console_.child.kill("SIGUSR2");
      await console_.says(/#login=[\w-]{43}\n(?:.*\n)*.*#login=([\w-]{43})$/m);
      const token = JSON.stringify({
        token: [...console_.out.matchAll(/#login=([\w-]{43})$/gm)].at(-1)?.[1],
      });
      const logIn = `POST /api/login HTTP/1.1\r\n${headers.slice(0, 3).join("\r\n")}\r\nContent-Length: ${token.length}\r\n\r\n${token}`;
      expect(parsed(await sentAs(61_234, port, logIn))).toMatchObject({ status: 403 });
      expect((await console_.logIn()).key).toMatch(/^[\w-]{43}$/); // the link is still good for its own user
    },
  );

  it.runIf(process.getuid?.() === 0)(
    "is served where it is the user named, and then this user is not",
    async () => {
      const daemon = await Daemon.start(ECHO);
      const console_ = new Console(["--socket", daemon.socket("operator"), "--user", "61234"]);
      const port = await console_.port();
      const page = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`;
      expect(parsed(await sentAs(61_234, port, page)).status).toBe(200);
      expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(403);
    },
  );
});

describe("callgate console", () => {
  it("prints its link to standard output alone, and another for SIGUSR2, each good once", async () => {
    const daemon = await Daemon.start(ECHO);
    const console_ = new Console(["--socket", daemon.socket("operator")]);
    await console_.logIn();
    console_.child.kill("SIGUSR2");
    await console_.says(/#login=[\w-]{43}\n(?:.*\n)*.*#login=[\w-]{43}$/m);
    await console_.logIn();
    expect(console_.out.trim().split("\n")).toHaveLength(2);
    expect(console_.err).not.toMatch(/login=|[\w-]{43}/);
    expect(console_.err).toContain("SIGUSR2 to process");
  });

  it.each(["SIGINT", "SIGTERM"] as const)("ends at %s at once, also while pages listen", async (signal) => {
    const daemon = await Daemon.start(ECHO);
    const console_ = new Console(["--socket", daemon.socket("operator")]);
    const login = await console_.logIn();
    const listener = await console_.listen(login);
    await listener.has("status");
    const idle = connectTcp(await console_.port(), "127.0.0.1");
    idle.on("error", () => undefined);
    await once(idle, "connect");
    console_.child.kill(signal);
    expect(await console_.ended()).toBe(0);
    await listener.ended();
    idle.destroy();
  });

  it("ends at once too where there is no broker, which it says and goes on to look for", async () => {
    const place = new Place(ECHO);
    const console_ = new Console(["--socket", place.socket("operator")]);
    await console_.says(/callgate: The broker can't be reached \(ENOENT\); it is tried again and again\.\n/);
    const login = await console_.logIn();
    await Daemon.start(place);
    await (await console_.listen(login)).shows(`"connected":true`);
    console_.child.kill("SIGINT");
    expect(await console_.ended()).toBe(0);
    const alone = new Console(["--socket", new Place(ECHO).socket("operator")]);
    await alone.says(/can't be reached/);
    alone.child.kill("SIGINT");
    expect(await alone.ended()).toBe(0);
  });

  it("says in words that its role is no operator", async () => {
    const daemon = await Daemon.start(`${ECHO}
[[grants]]
id = "agent-asks"
role = "agent"
tools = ["callgate.status"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`);
    const console_ = new Console(["--socket", daemon.socket("agent")]);
    await console_.says(/callgate: This role is no operator: it sees little here and decides nothing\./);
    const tools = new Console(["--socket", daemon.socket("tools")]);
    await tools.says(/callgate: This role may not ask for callgate\.status \(no_grant\)/);
  });

  it("refuses wrong use in a sentence", async () => {
    const socket = ["--socket", "/nowhere.sock"];
    for (const [words, status, sentence] of [
      [["--port", "70000"], 2, "from 1 to 65535"],
      [["--port", "x"], 2, "from 1 to 65535"],
      [["--address", "0.0.0.0"], 2, "127.0.0.1, ::1"],
      [["--user", "nobody-of-that-name"], 2, "no such name"],
      [["--user", "65534"], 4, "any unknown user"],
      [["--metrics-token-file", "/dev/null"], 4, "regular file"],
    ] as const) {
      const ran = await run(["console", ...socket, ...words]);
      expect([ran.status, ran.err]).toEqual([status, expect.stringContaining(sentence)]);
      expect(ran.out).toBe("");
    }
  });
});
