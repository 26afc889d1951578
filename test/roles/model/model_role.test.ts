import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, it } from "vitest";
import { Connector, ConnectorPlace, MODEL, ModelServer } from "../../connector/daemon_rig.ts";
import { callgate, cleanUp, Daemon, onCleanUp, Place, type Ran, run } from "../../daemon/daemon.ts";

// A broker, a connector, the role between them and a provider, each a process of its own.

afterEach(cleanUp);

const GRANT = `
[[grants]]
id = "agent-asks-the-model"
role = "agent"
tools = ["model.turn"]
effect = "allow"
taint_max = "internal"
taint_untrusted = true
`;

/** `tool`: more of the tool. */
function brokerConfig(grants = GRANT, tool = ""): string {
  return `
[roles.agent]
anyone = true
[roles.model]
anyone = true
class_max = "internal"
[roles.operator]
anyone = true
operator = true
[tools."model.turn"]
role = "model"
effect = "send"
store = false
class = "internal"
untrusted = true
timeout = "30s"
${tool}
[[grants]]
id = "operates"
role = "operator"
tools = ["callgate.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
${grants}`;
}

class House {
  readonly place: Place;
  readonly model: ModelServer;
  broker: Daemon;
  connector: Connector;
  role: ChildProcess | undefined;

  private constructor(place: Place, model: ModelServer, broker: Daemon, connector: Connector) {
    this.place = place;
    this.model = model;
    this.broker = broker;
    this.connector = connector;
  }

  static async open(config = brokerConfig()): Promise<House> {
    const model = await ModelServer.start();
    const place = new Place(config);
    const connector = await Connector.start(new ConnectorPlace(model.backend));
    const house = new House(place, model, await Daemon.start(place), connector);
    await house.startRole();
    return house;
  }

  async startRole(): Promise<void> {
    const words = ["role", "model", "--socket", this.place.socket("model"), "--caller", "me"];
    const secret = ["--secret-file", this.connector.place.path("me.secret")];
    const how = ["--connect", `127.0.0.1:${this.connector.port}`, "--wait", "1s", "--expiry-horizon", "2s"];
    const env = { ...process.env, NODE_OPTIONS: "" };
    const role = spawn(process.execPath, [callgate(), ...words, ...secret, ...how], {
      stdio: ["ignore", "ignore", "pipe"],
      env,
    });
    onCleanUp(() => role.kill("SIGKILL"));
    this.role = role;
    for await (const line of createInterface({ input: role.stderr }))
      if (line === "serving model.turn") return;
    throw new Error("the role did not start");
  }

  async killRole(): Promise<void> {
    this.role?.kill("SIGKILL");
    if (this.role !== undefined) await once(this.role, "exit");
  }

  /** Kills the broker, and starts it again on the same disk; the role comes back by itself, if it lives. */
  async restartBroker(): Promise<void> {
    await this.broker.kill();
    this.broker = await Daemon.start(this.place);
    if (this.role?.signalCode === null)
      await this.broker.event("peer.connected", ({ role }) => role === "model");
  }

  ask(text: string, ...words: readonly string[]): Promise<Ran> {
    const args = JSON.stringify({
      model: MODEL,
      instructions: "Be brief.",
      input: [{ UserText: { text } }],
      max_output_tokens: 100,
    });
    return run(["call", "model.turn", args, "--socket", this.place.socket("agent"), ...words]);
  }

  async taint(): Promise<unknown> {
    const words = ["sessions", "list", "--json", "--socket", this.place.socket("operator")];
    const { out } = await run(words);
    const { sessions } = JSON.parse(out) as { sessions: { role: string; taint: unknown }[] };
    return sessions.find(({ role }) => role === "agent")?.taint;
  }
}

describe("callgate role model", () => {
  it("lets a granted role take a turn, whose words taint its session as the tool's floor says", async () => {
    const house = await House.open();
    const { status, out, err } = await house.ask("hello");
    expect({ status, err: err.includes("[result: internal, untrusted]") }).toEqual({ status: 0, err: true });
    expect(JSON.parse(out)).toEqual({
      stop_reason: "EndTurn",
      events: [{ TextDelta: { text: "echo: hello" } }],
      usage: { input_tokens: 11, output_tokens: 7, reasoning_output_tokens: null, cached_input_tokens: null },
      transport: "openai-chat",
      provider_response_id: "chatcmpl-1",
    });
    expect(await house.taint()).toMatchObject({ class: "internal", untrusted: true });
  });

  it("is asked nothing by a role without a grant, or above what its grant allows", async () => {
    const none = await House.open(brokerConfig(""));
    expect(await none.ask("hello")).toMatchObject({ status: 3, out: "" });
    expect(none.model.asked).toEqual([]);
    const clean = await House.open(brokerConfig(GRANT.replace("untrusted = true", "untrusted = false")));
    expect((await clean.ask("first")).status).toBe(0); // its answer is untrusted, and so is the session from then on
    expect(await clean.ask("second")).toMatchObject({
      status: 3,
      err: expect.stringContaining("taint_too_high"),
    });
    expect(clean.model.asked).toHaveLength(1);
  });

  it("gives the same call the same turn: from the broker's record, and where that has none from the connector's", async () => {
    // What the broker keeps in memory only is gone with it.
    const house = await House.open(
      brokerConfig(GRANT, 'record = "memory"').replace('effect = "send"', 'effect = "read"'),
    );
    let told = 0;
    house.model.behave = (_, __, say) => {
      told += 1;
      say(`answer ${told}`);
    };
    const words = ["--session", "s", "--call", "7"];
    const first = await house.ask("hello", ...words);
    expect(first.out).toContain("answer 1");
    expect((await house.ask("hello", ...words)).out).toBe(first.out);
    await house.killRole();
    await house.restartBroker();
    await house.startRole();
    expect((await house.ask("hello", ...words)).out).toBe(first.out);
    const other = await house.ask("something else", "--session", "s2", "--call", "7");
    expect(other.out).toContain("answer 2");
    expect(house.model.asked).toHaveLength(2);
  });

  it("waits for a turn that was running when the broker died, and does not start a second", async () => {
    const house = await House.open(
      brokerConfig(GRANT, 'record = "memory"').replace('effect = "send"', 'effect = "read"'),
    );
    let finish = (): void => undefined;
    house.model.behave = (_, __, say) => {
      finish = () => say("once");
    };
    const words = ["--session", "s", "--call", "9"];
    const lost = house.ask("hello", ...words);
    await house.model.askedTimes(1);
    await house.broker.kill();
    expect((await lost).status).toBe(1);
    await house.restartBroker();
    const again = house.ask("hello", ...words);
    await house.connector.event(
      "connector.refused",
      (line) => Number(line["InFlight"] ?? line["ReplayConflict"]) > 0,
    );
    finish();
    expect((await again).out).toContain("once");
    expect(house.model.asked).toHaveLength(1);
  });

  it("says that its connector is down, that a model is not allowed, and what is wrong with arguments", async () => {
    const house = await House.open();
    const wrong = await run(["call", "model.turn", '{"model":"m"}', "--socket", house.place.socket("agent")]);
    expect(wrong).toMatchObject({
      status: 4,
      err: expect.stringContaining("the arguments are no turn: instructions is missing; nothing was started"),
    });
    const args = { model: "other", instructions: "x", input: [], max_output_tokens: 1 };
    const refused = await run([
      "call",
      "model.turn",
      JSON.stringify(args),
      "--socket",
      house.place.socket("agent"),
    ]);
    expect(refused).toMatchObject({ status: 4, err: expect.stringContaining("says: ModelNotAllowed: ") });
    await house.connector.stop();
    expect(await house.ask("hello")).toMatchObject({
      status: 4,
      err: expect.stringContaining("says: Connection: the connector can't be reached"),
    });
  });

  it("does not start without a secret, or with one that everybody can read", async () => {
    const place = new ConnectorPlace('kind = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\n');
    const words = ["role", "model", "--socket", "none.sock", "--caller", "me", "--secret-file"];
    expect(await run([...words, place.path("none")])).toMatchObject({
      status: 2,
      err: expect.stringContaining("ENOENT"),
    });
    expect(await run([...words, place.secret("open", "x".repeat(40), 0o604)])).toMatchObject({
      status: 2,
      err: expect.stringContaining("open to every user"),
    });
    expect(await run([...words, place.secret("short", "short-secret")])).toMatchObject({
      status: 2,
      err: expect.not.stringContaining("short-secret"),
    });
  });
});
