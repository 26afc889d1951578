import { expect, it, onTestFinished } from "vitest";
import { connect } from "../../src/client/caller.ts";
import type { ConnectionState } from "../../src/client/endpoint.ts";
import { FakeBroker, QUICK } from "./fake_broker.ts";

async function followed() {
  const broker = await FakeBroker.start();
  onTestFinished(() => broker.remove());
  const states: ConnectionState[] = [];
  let wake = (): void => undefined;
  const connecting = connect({
    to: { path: broker.path },
    reconnect: { ...QUICK, giveUpAfterMs: Number.POSITIVE_INFINITY },
    waitForBroker: true,
    onConnection: (state) => {
      states.push(state);
      wake();
    },
  });
  /** Waits until the latest is so. */
  const until = async (is: (state: ConnectionState) => boolean) => {
    for (let last = states.at(-1); last === undefined || !is(last); last = states.at(-1))
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
  };
  return { broker, states, until, connecting };
}

it("whoever asks for it hears of each connection, and why there is none", async () => {
  const { broker, states, until, connecting } = await followed();
  const caller = await connecting;
  onTestFinished(() => caller.close());
  await broker.accept();
  expect(states).toEqual([{ open: true }]);
  await broker.die();
  await until(({ open }) => !open);
  expect(states[1]).toEqual({ open: false, why: "it hung up" });
  await until((state) => !state.open && state.why !== "it hung up"); // attempts that failed
  await broker.listen();
  await until(({ open }) => open);
  const told = states.length;
  await caller.close();
  expect(states).toHaveLength(told); // our own end is no loss
});

it("why a broker turned us away is told in its own words, escaped", async () => {
  const { broker, until, connecting } = await followed();
  const caller = await connecting;
  onTestFinished(() => caller.close());
  const peer = await broker.accept();
  const body = { code: "internal", detail: "the role is frozen\u202e" } as const;
  peer.send({ v: 1, id: 0n, final: true, msg: { kind: "error", body } });
  peer.end();
  await until((state) => !state.open && state.why === "the role is frozen\\u{202e}");
});
