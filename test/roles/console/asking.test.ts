import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Asked } from "../../../src/roles/console/api.ts";
import { BrokerLink } from "../../../src/roles/console/broker_link.ts";
import { FakeClock } from "../../broker/fake_clock.ts";
import { FakeBroker, type FakePeer, result } from "../../client/fake_broker.ts";
import { ConsoleRig, effectsOf } from "./rig.ts";

async function asked(rig: ConsoleRig, tool: string, args: object = {}): Promise<Asked> {
  return JSON.parse((await rig.ask(await rig.logIn(), tool, args)).body) as Asked;
}

describe("what the page asks", () => {
  it("comes back as the broker answered it", async () => {
    const rig = await ConsoleRig.start({
      "calls.show": { call: "18446744073709551615", text: "\u202e</script>" },
      "approvals.approve": { status: "failed", message: "conflict: Somebody was faster.\u202e" },
      "grants.add": { status: "denied", reason: "taint_too_high" },
    });
    const shown = await asked(rig, "callgate.calls.show", { session: "s", call: "1" });
    expect(shown).toMatchObject({ status: "result", class: "public", untrusted: false });
    if (shown.status === "result")
      expect(JSON.parse(shown.content)).toEqual({ call: "18446744073709551615", text: "\u202e</script>" });
    expect(await asked(rig, "callgate.approvals.approve")).toEqual({
      status: "failed",
      message: "conflict: Somebody was faster.\\u{202e}",
    });
    expect(await asked(rig, "callgate.grants.add")).toEqual({ status: "denied", reason: "taint_too_high" });
    expect(rig.broker.of("calls.show")).toEqual([{ session: "s", call: "1" }]);
  });

  it.each([
    "callgate.calls.settle",
    "callgate.sessions.open",
    "callgate.tools.announce",
    "callgate.approvals.watch",
    "callgate.sessions.close",
    "write_file",
  ])("is never %s", async (tool) => {
    const rig = await ConsoleRig.start();
    expect((await rig.ask(await rig.logIn(), tool)).status).toBe(404);
    expect(rig.broker.asked.filter((one) => tool.endsWith(one.tool) && one.tool !== "status")).toEqual([]);
  });
});

/** A link to a broker that does only what the test says. */
async function linked() {
  const broker = await FakeBroker.start();
  onTestFinished(() => broker.remove());
  const clock = new FakeClock(1000);
  let wake = (): void => undefined;
  const link = new BrokerLink({
    to: { path: broker.path },
    session: "console",
    effects: effectsOf(clock),
    onChange: () => wake(),
  });
  onTestFinished(() => link.close());
  /** Waits until there is a connection, or none. */
  const until = async (open: boolean) => {
    while (link.state.open !== open)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  };
  link.start();
  const peer: FakePeer = await broker.accept();
  await until(true);
  return { broker, clock, link, peer, until };
}

const APPROVE = "callgate.approvals.approve";

describe("an approval that the broker's death interrupts", () => {
  it("is asked again by the same id when it is back soon, so it is one approval", async () => {
    const { broker, link, peer } = await linked();
    const answer = link.ask(APPROVE, "{}");
    const first = await peer.request();
    await broker.die();
    await broker.listen();
    const again = await (await broker.accept()).request();
    expect([again.session, again.call, again.arguments]).toEqual([
      first.session,
      first.call,
      first.arguments,
    ]);
    await broker.die();
    await broker.listen();
    const last = await broker.accept();
    last.answer((await last.request()).id, result(`{"approved":true}`));
    expect(await answer).toMatchObject({ status: "result", content: `{"approved":true}` });
  });

  it("is given up after a while, told as not known, and not sent when the broker is back at last", async () => {
    const { broker, clock, link, peer, until } = await linked();
    const answer = link.ask(APPROVE, "{}");
    await peer.request();
    await broker.die();
    await until(false);
    while (clock.step(clock.nowMs() + 20_000));
    expect(await answer).toEqual({
      status: "unreachable",
      message: expect.stringContaining("whether this was done is not known"),
    });
    await broker.listen();
    const late = await broker.accept();
    await until(true);
    const status = link.ask("callgate.status", "{}");
    const tools: string[] = [];
    for (let request = await late.request(); ; request = await late.request()) {
      tools.push(request.tool);
      if (request.tool === "callgate.status") {
        late.answer(request.id, result("{}"));
        break;
      }
    }
    expect(await status).toMatchObject({ status: "result" });
    expect(tools).not.toContain(APPROVE);
  });

  it("asked while there is no broker is not taken at all", async () => {
    const { broker, link, until } = await linked();
    await broker.die();
    await until(false);
    expect(await link.ask(APPROVE, "{}")).toMatchObject({
      status: "unreachable",
      message: expect.stringContaining("Nothing was sent"),
    });
    await broker.listen();
    const back = await broker.accept();
    await until(true);
    void link.ask("callgate.status", "{}");
    expect((await back.request()).tool).toBe("callgate.status");
  });
});

describe("a page that leaves", () => {
  it("gives up what it read, and not what it decided", async () => {
    const { link, peer } = await linked();
    const leaving = new AbortController();
    const read = link.ask("callgate.audit.verify", "{}", leaving.signal);
    const decision = link.ask(APPROVE, "{}");
    const asked = [await peer.request(), await peer.request()];
    leaving.abort();
    const cancel = await peer.request();
    expect(cancel.tool).toBe("callgate.calls.cancel");
    expect(JSON.parse(cancel.arguments)).toEqual({
      session: "console",
      call: String(asked.find(({ tool }) => tool === "callgate.audit.verify")?.call),
    });
    expect(await read).toMatchObject({ status: "unreachable" });
    const approval = asked.find(({ tool }) => tool === APPROVE);
    peer.answer(approval!.id, result("{}"));
    expect(await decision).toMatchObject({ status: "result" });
  });

  it("over HTTP too: its read is cancelled at the broker, its approval goes on", async () => {
    const hang = () => new Promise<object>(() => {});
    const rig = await ConsoleRig.start({
      "audit.verify": hang,
      "approvals.approve": hang,
      "calls.cancel": {},
    });
    const login = await rig.logIn();
    const sockets = ["callgate.audit.verify", APPROVE].map((tool) => {
      const socket = connect(rig.port, "127.0.0.1");
      onTestFinished(() => void socket.destroy());
      socket.write(
        `POST /api/ask/${tool} HTTP/1.1\r\n${rig.ownHeaders(login).join("\r\n")}\r\nContent-Length: 2\r\n\r\n{}`,
      );
      return socket;
    });
    const has = (tool: string) => rig.broker.of(tool).length > 0;
    while (!has("audit.verify") || !has("approvals.approve")) await rig.ask(login, "callgate.tools.list");
    for (const socket of sockets) socket.destroy();
    while (!has("calls.cancel")) await rig.ask(login, "callgate.tools.list");
    expect(rig.broker.of("calls.cancel")).toHaveLength(1);
  });
});
