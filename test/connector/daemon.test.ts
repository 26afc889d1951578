import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { cleanUp, run } from "../daemon/daemon.ts";
import { Connector, ConnectorPlace, MODEL, ModelServer } from "./daemon_rig.ts";

// The connector as a process, with a server that plays its provider.

afterEach(cleanUp);

const KEY = "sk-canary-5f3c9d";
const PROMPT = "canary prompt 8a71";

interface More {
  readonly connector?: string;
  readonly keyed?: boolean;
  readonly shell?: string;
}

async function started(more: More = {}) {
  const model = await ModelServer.start();
  const key = more.keyed === true ? 'credential_file = "key"\n' : "";
  const place = new ConnectorPlace(`${model.backend}${key}`, more.connector);
  if (more.keyed === true) place.secret("key", `${KEY}\n`);
  const shell = more.shell === undefined ? {} : { shell: more.shell };
  return { model, place, connector: await Connector.start(place, shell) };
}

describe("the connector", () => {
  it("gives a caller a turn, sends the key to its provider, and says when it stops", async () => {
    const { model, connector } = await started({ keyed: true });
    const { status, out, err } = await connector.call(["hello"]);
    expect({ status, out }).toEqual({ status: 0, out: "echo: hello\n" });
    expect(err).toContain("the answer is complete; 11 tokens read, 7 written");
    expect(model.asked[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
    expect(await connector.stop()).toBe(0);
    expect(connector.lines.map(({ event }) => event)).toEqual([
      "connector.store_opened",
      "connector.listening",
      "connector.ready",
      "connector.turn",
      "connector.draining",
      "connector.stopped",
    ]);
  });

  it("reads a key that was replaced at the next turn, and fails the turn where there is none", async () => {
    const { model, place, connector } = await started({ keyed: true });
    await connector.call(["one"]);
    place.secret("next", "sk-second");
    renameSync(place.path("next"), place.path("key"));
    await connector.call(["two"]);
    renameSync(place.path("key"), place.path("gone"));
    const { status, err } = await connector.call(["three"]);
    expect(status).toBe(4);
    expect(err).toContain("CredentialUnavailable");
    expect(model.asked.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${KEY}`,
      "Bearer sk-second",
    ]);
    expect(await connector.event("connector.no_key")).toMatchObject({
      why: expect.stringContaining("does not exist"),
    });
  });

  it("does not send a key that everybody can read", async () => {
    const { model, place, connector } = await started({ keyed: true });
    place.secret("key", KEY, 0o644);
    expect((await connector.call(["hello"])).err).toContain("CredentialUnavailable");
    expect(model.asked).toEqual([]);
  });

  it("takes its secrets out of the service manager's credentials", async () => {
    const model = await ModelServer.start();
    const place = new ConnectorPlace(`${model.backend}credential = "provider-key"\n`);
    const credentials = place.path("credentials");
    mkdirSync(credentials, { mode: 0o500 });
    writeFileSync(join(credentials, "provider-key"), KEY, { mode: 0o440 });
    const connector = await Connector.start(place, { env: { CREDENTIALS_DIRECTORY: credentials } });
    expect((await connector.call(["hello"])).status).toBe(0);
    expect(model.asked[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  it("lets a running turn end at SIGTERM, and gives up one that takes longer than it may", async () => {
    const { model, place, connector } = await started({ connector: 'drain_timeout = "1s"' });
    let finish = (): void => undefined;
    model.behave = (_, __, say) => {
      finish = () => say("late");
    };
    const turn = connector.call(["hello", "--request-id", "slow"]);
    await model.askedTimes(1);
    const stopped = connector.stop();
    await connector.event("connector.draining");
    finish();
    expect(await turn).toMatchObject({ status: 0, out: "late\n" });
    expect(await stopped).toBe(0);

    model.behave = () => undefined;
    const again = await Connector.start(place);
    const lost = again.call(["hello", "--request-id", "never"]);
    await model.askedTimes(2);
    expect(await again.stop()).toBe(0);
    expect((await lost).status).toBe(1);
  });

  it("goes on after SIGHUP, and says that nothing was reloaded", async () => {
    const { connector } = await started();
    connector.child.kill("SIGHUP");
    await connector.event("connector.not_reloaded");
    expect((await connector.call(["hello"])).status).toBe(0);
  });

  it("does not start beside another on the same state, or on a port that is taken, and names both", async () => {
    const { model, place, connector } = await started();
    const second = await Connector.start(place, { ready: false });
    expect(await second.ended).toBe(78);
    expect(await second.errors).toContain(`in use by another daemon that is alive (pid ${connector.pid})`);
    const other = new ConnectorPlace(model.backend);
    writeFileSync(
      other.config,
      readFileSync(place.config, "utf8").replace("port = 0", `port = ${connector.port}`),
    );
    const third = await Connector.start(other, { ready: false });
    expect(await third.ended).toBe(78);
    expect(await third.errors).toContain(`port ${connector.port} can't be listened on (EADDRINUSE)`);
  });
});

describe("a turn whose connector dies", () => {
  it("in its midst is never run again, and one that had ended is given out again", async () => {
    const { model, place, connector } = await started();
    expect((await connector.call(["hello", "--request-id", "whole"])).out).toBe("echo: hello\n");
    model.behave = () => undefined;
    const cut = connector.call(["hello", "--request-id", "cut"]);
    await model.askedTimes(2);
    await connector.kill();
    expect(await cut).toMatchObject({
      status: 1,
      err: expect.stringContaining("with --request-id cut fetches the answer"),
    });

    const again = await Connector.start(place);
    const known = await again.call(["hello", "--request-id", "cut"]);
    expect(known.status).toBe(4);
    expect(known.err).toContain("Indeterminate");
    expect((await again.call(["hello", "--request-id", "whole"])).out).toBe("echo: hello\n");
    expect(model.asked).toHaveLength(2);
  });

  it("is not lost by a caller that goes away", async () => {
    const { model, connector } = await started();
    let finish = (): void => undefined;
    model.behave = (_, __, say) => {
      finish = () => say("all the same");
    };
    const words = ["hello", "--request-id", "left"];
    const gone = connector.call([...words, "--timeout", "1s"]);
    await model.askedTimes(1);
    expect(await gone).toMatchObject({ status: 1, out: "" });
    const waiting = connector.call(words);
    await connector.event("connector.refused", (line) => line["InFlight"] !== undefined);
    finish();
    expect(await waiting).toMatchObject({ status: 0, out: "all the same\n" });
    expect(model.asked).toHaveLength(1);
  });
});

describe("a config that can't be used", () => {
  it("is refused with its lines, by the daemon and by --check alike, and quotes no secret", async () => {
    const place = new ConnectorPlace(
      'kind = "openai-chat"\nbase_url = "http://example.org/v1"\n',
      "max_conections = 1",
    );
    place.secret("me.secret", "short-secret");
    const connector = await Connector.start(place, { ready: false });
    expect(await connector.ended).toBe(78);
    const errors = await connector.errors;
    expect(errors).toMatch(
      /connector\.toml:\d+:1: unknown key "max_conections".*did you mean "max_connections"/,
    );
    expect(errors).toMatch(/connector\.toml:\d+:\d+: the base URL is http to another machine/);
    const checked = await run(["connector", "serve", "--config", place.config, "--check"]);
    expect(checked).toMatchObject({ status: 1, err: "" });
    expect(checked.out).toContain("2 errors; this config would be refused");

    place.configure('kind = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\n');
    const short = await run(["connector", "serve", "--config", place.config, "--check"]);
    expect(short.status).toBe(1);
    expect(short.out).toMatch(/connector\.toml:\d+:15: error: the connection secret has 12 bytes/);
    expect(short.out).not.toContain("short-secret");
  });

  it("is warned of where its turns could take every connection", async () => {
    const backend = 'kind = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\n';
    const place = new ConnectorPlace(backend, "max_connections = 4");
    const { status, out } = await run(["connector", "serve", "--config", place.config, "--check"]);
    expect(status).toBe(0);
    expect(out).toMatch(/connector\.toml:\d+:\d+: warning: all callers together may run 4 turns/);
    expect(out).toContain("no errors, 1 warning");
  });

  it("passes the check with what is wrong only as a warning, and opens nothing", async () => {
    const place = new ConnectorPlace(
      'kind = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\ncredential_file = "none"\n',
    );
    const { status, out } = await run(["connector", "serve", "--config", place.config, "--check"]);
    expect(status).toBe(0);
    expect(out).toMatch(
      /warning: every turn would fail for want of the key: ".*none" can't be used: .* does not exist/,
    );
    expect(readdirSync(place.directory).toSorted()).toEqual(["connector.toml", "me.secret"]);
  });

  it("that two callers share a secret in is told without it", async () => {
    const place = new ConnectorPlace('kind = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\n');
    const config = readFileSync(place.config, "utf8");
    writeFileSync(
      place.config,
      `${config}\n[[callers]]\nid = "you"\nsecret_file = "me.secret"\nallowed_models = ["m"]\nmax_output_tokens = 1\n`,
    );
    const connector = await Connector.start(place, { ready: false });
    expect(await connector.ended).toBe(78);
    expect(await connector.errors).toContain('the callers "me" and "you" have the same connection secret');
  });
});

describe("after a run of faults", () => {
  it("neither the key nor a prompt is in logs, errors, state, a core or the process list", async () => {
    const { model, place, connector } = await started({ keyed: true, shell: "ulimit -c unlimited;" });
    await faultRun(model, connector);
    const command = readFileSync(`/proc/${connector.pid}/cmdline`, "utf8");
    const environment = environmentOf(connector.pid);
    expect(readFileSync(`/proc/${connector.pid}/limits`, "utf8")).toMatch(/Max core file size +0 +0 /);
    await connector.kill("SIGABRT");
    const seen = [
      command,
      environment,
      connector.output,
      await connector.errors,
      ...bytesBelow(place.path("state")),
    ];
    expect(seen.length).toBeGreaterThan(5);
    for (const canary of [
      KEY,
      "canary",
      PROMPT,
      "answer 77aa",
      Buffer.from(PROMPT).toString("base64").slice(0, 20),
    ])
      for (const text of seen) expect(text.includes(canary)).toBe(false);
    expect(readdirSync(place.directory).filter((name) => name.startsWith("core"))).toEqual([]);
    expect(model.asked.length).toBeGreaterThan(5);
  });
});

/** Root alone may read it: a process of the same user is kept out. */
function environmentOf(pid: number): string {
  const read = () => readFileSync(`/proc/${pid}/environ`, "utf8");
  if (process.geteuid?.() === 0) return read();
  expect(read).toThrow("EACCES");
  return "";
}

/** Every way to fail, each with the key and the prompt thrown back by the provider. */
async function faultRun(model: ModelServer, connector: Connector): Promise<void> {
  const echoed = JSON.stringify({ error: { type: "invalid_request_error", message: `${KEY} ${PROMPT}` } });
  const failing: readonly ModelServer["behave"][] = [
    ...[400, 401, 404, 500, 503].map(
      (status): ModelServer["behave"] =>
        (_, response) =>
          void response.writeHead(status, { "content-type": "application/json" }).end(echoed),
    ),
    (_, response) => void response.writeHead(302, { location: `http://127.0.0.1:9/?${KEY}` }).end(PROMPT),
    (_, response) =>
      void response.writeHead(200, { "content-type": "text/event-stream" }).end(`data: ${KEY} ${PROMPT}\n\n`),
    (_, response) => void response.destroy(),
    (_, __, say) => say(`answer 77aa ${PROMPT}`),
  ];
  for (const behave of failing) {
    model.behave = behave;
    const { out, err } = await connector.call(["-"], PROMPT);
    expect(`${out}${err}`).not.toContain(KEY);
  }
  model.behave = () => undefined;
  const before = model.asked.length;
  void connector.call(["-"], PROMPT);
  await model.askedTimes(before + 1); // it dies with this turn running
}

function bytesBelow(directory: string): readonly string[] {
  return readdirSync(directory).flatMap((name) => {
    const path = join(directory, name);
    return statSync(path).isDirectory() ? bytesBelow(path) : [readFileSync(path, "latin1")];
  });
}

describe("callgate connector call", () => {
  it("says what is wrong with how it is used, and asks nothing", async () => {
    const { model, place, connector } = await started();
    const open = place.secret("open.secret", "x".repeat(40), 0o644);
    const cases: readonly (readonly [words: readonly string[], says: RegExp])[] = [
      [[], /say what to ask/],
      [["hello", "--max-output-tokens", "0"], /whole number from 1/],
      [["hello", "--connect", "192.0.2.1:7811"], /an address of this machine/],
      [["hello", "--secret-file", open], /is open to every user/],
      [["hello", "--secret-file", place.path("none")], /can't be read \(ENOENT\)/],
      [["hello", "--request", place.path("me.secret")], /no prompt goes with it/],
      [["--request", place.path("me.secret")], /is no request in its JSON view: line 1/],
      [["hello", "--instructions", ""], /instructions must be a text of this kind: not empty/],
      [["hello", "--request-id", " x"], /request_id must be a text of this kind/],
    ];
    for (const [words, says] of cases) {
      const { status, err } = await connector.call(words);
      expect({ words, status, err }).toEqual({ words, status: 2, err: expect.stringMatching(says) });
      expect(err).not.toContain("0123456789abcdef");
    }
    expect(model.asked).toEqual([]);
  });

  it("tells refusals by the policy with status 3, and an unknown caller or secret as no answer", async () => {
    const { model, place, connector } = await started();
    expect(await connector.call(["hello", "--model", "other"])).toMatchObject({
      status: 3,
      err: expect.stringContaining("ModelNotAllowed"),
    });
    expect(await connector.call(["hello", "--max-output-tokens", "5000"])).toMatchObject({
      status: 3,
      err: expect.stringContaining("OutputTokensOverBound"),
    });
    const wrong = place.secret("wrong.secret", "w".repeat(40));
    for (const words of [
      ["--secret-file", wrong],
      ["--caller", "you"],
    ])
      expect(await connector.call(["hello", ...words])).toMatchObject({
        status: 1,
        err: expect.stringContaining("does not know this caller with this secret"),
      });
    expect(model.asked).toEqual([]);
  });

  it("takes a whole request out of a file, and gives the whole result as JSON", async () => {
    const { place, connector } = await started();
    const request = {
      request_id: "from-file",
      model: MODEL,
      instructions: "Be brief.",
      input: [
        { UserText: { text: "one" } },
        { AssistantText: { text: "two" } },
        { UserText: { text: "three" } },
      ],
      max_output_tokens: 10,
    };
    writeFileSync(place.path("turn.json"), JSON.stringify(request));
    const { status, out, err } = await connector.call(["--request", place.path("turn.json"), "--json"]);
    expect({ status, err }).toEqual({ status: 0, err: "" });
    expect(JSON.parse(out)).toMatchObject({
      request_id: "from-file",
      disposition: {
        Transported: { events: [{ sequence: 0, payload: { TextDelta: { text: "echo: three" } } }] },
      },
    });
  });

  it("says that a connector is not there, with status 1, and that nothing ran", async () => {
    const { connector } = await started();
    await connector.stop();
    const { status, err } = await connector.call(["hello"]);
    expect(status).toBe(1);
    expect(err).toContain("can't be reached: does it run?; nothing was started");
  });
});
