import { expect, it } from "vitest";
import { openNotifier } from "../../src/host/sd_notify.ts";

const EAGAIN = -11;
const ENOENT = -2;

/** A manager that hears, or does not for a while; its timers run when they are told to. */
function scene(env: NodeJS.ProcessEnv) {
  const heard: string[] = [];
  const logged: string[] = [];
  const timers = new Set<{ readonly ms: number; readonly task: () => void }>();
  const scene = {
    env,
    heard,
    logged,
    addresses: [] as Buffer[],
    outcome: 0,
    pass(ms: number) {
      for (const timer of [...timers]) if (timer.ms === ms) timer.task();
    },
    intervals: () => [...timers].map(({ ms }) => ms),
    open: () =>
      openNotifier({
        env,
        pid: 7,
        log: (_, event, fields) => void logged.push(`${event} ${String(fields["why"])}`),
        open: async (address) => {
          scene.addresses.push(Buffer.from(address));
          return (message) => {
            if (scene.outcome === 0) heard.push(Buffer.from(message).toString());
            return scene.outcome;
          };
        },
        every: (ms, task) => {
          const timer = { ms, task };
          timers.add(timer);
          return () => timers.delete(timer);
        },
        monotonicUsec: () => 42n,
      }),
  };
  return scene;
}

const withSocket = (more: NodeJS.ProcessEnv = {}) => scene({ NOTIFY_SOCKET: "/run/systemd/notify", ...more });

it("tells ready, a reload around its own ready, and stopping with the time that it may take", async () => {
  const manager = withSocket();
  const told = await manager.open();
  told.ready("all is well");
  told.reloading();
  told.ready("all is  well\nstill");
  told.stopping(13_000, "draining");
  expect(manager.heard).toEqual([
    "READY=1\nSTATUS=all is well",
    "RELOADING=1\nMONOTONIC_USEC=42",
    "READY=1\nSTATUS=all is well still",
    "STOPPING=1\nEXTEND_TIMEOUT_USEC=13000000\nSTATUS=draining",
  ]);
});

it("a reload that ends while the daemon stops does not tell it as ready again", async () => {
  const manager = withSocket();
  const told = await manager.open();
  told.ready("");
  told.reloading();
  told.stopping(1, "");
  told.ready("");
  told.reloading();
  expect(manager.heard.at(-1)).toMatch(/^STOPPING=1/);
});

it("a status is told when it changes, and not again", async () => {
  const manager = withSocket();
  const told = await manager.open();
  told.ready("one");
  told.status("one");
  told.status("two");
  told.status("two");
  expect(manager.heard.slice(1)).toEqual(["STATUS=two"]);
});

it("what the manager has no room for is tried again, in its order", async () => {
  const manager = withSocket();
  const told = await manager.open();
  manager.outcome = EAGAIN;
  told.ready("one");
  told.status("a line that nobody waits for");
  told.reloading();
  expect(manager.heard).toEqual([]);
  manager.outcome = 0;
  manager.pass(50);
  expect(manager.heard.map((text) => text.split("\n")[0])).toEqual(["READY=1", "RELOADING=1"]);
  expect(manager.intervals()).not.toContain(50);
});

it("a manager that is gone is told of in the log once, and nothing is held up", async () => {
  const manager = withSocket();
  const told = await manager.open();
  manager.outcome = ENOENT;
  told.ready("one");
  told.status("two");
  told.stopping(1, "three");
  expect(manager.logged).toEqual(["daemon.unheard sendto failed (errno 2)"]);
});

it("the watchdog is fed at half of its time, for this process only", async () => {
  const ours = withSocket({ WATCHDOG_USEC: "15000000", WATCHDOG_PID: "7" });
  await ours.open();
  ours.pass(7500);
  expect(ours.heard).toEqual(["WATCHDOG=1"]);
  for (const env of [{ WATCHDOG_USEC: "15000000", WATCHDOG_PID: "8" }, { WATCHDOG_USEC: "0" }, {}]) {
    const others = withSocket(env);
    await others.open();
    expect(others.intervals()).toEqual([10_000]); // the start's own
  }
});

it("a long start asks for more time until it is ready", async () => {
  const manager = withSocket();
  const told = await manager.open();
  manager.pass(10_000);
  expect(manager.heard).toEqual(["EXTEND_TIMEOUT_USEC=40000000"]);
  told.ready("");
  expect(manager.intervals()).toEqual([]);
});

it("no child inherits the manager's variables", async () => {
  const manager = withSocket({ WATCHDOG_USEC: "1", WATCHDOG_PID: "7", PATH: "/bin" });
  await manager.open();
  expect(manager.env).toEqual({ PATH: "/bin" });
});

it("an abstract name begins with a NUL and has none at its end; a path has one there", async () => {
  const abstract = scene({ NOTIFY_SOCKET: "@/org/x" });
  await abstract.open();
  expect(abstract.addresses[0]?.subarray(2).toString()).toBe("\0/org/x");
  const path = withSocket();
  await path.open();
  expect(path.addresses[0]?.subarray(2).toString()).toBe("/run/systemd/notify\0");
});

it.each(["vsock:2:1234", "relative", `/${"x".repeat(108)}`])(
  "%s is no socket to tell anything",
  async (name) => {
    const manager = scene({ NOTIFY_SOCKET: name });
    (await manager.open()).ready("");
    expect(manager.heard).toEqual([]);
    expect(manager.logged).toHaveLength(1);
  },
);

it("without a manager nothing is opened, and nothing is said", async () => {
  const manager = scene({});
  (await manager.open()).ready("");
  expect([manager.addresses, manager.logged]).toEqual([[], []]);
});

it("without koffi it is said once, and the rest goes on", async () => {
  const logged: string[] = [];
  const told = await openNotifier({
    env: { NOTIFY_SOCKET: "/run/systemd/notify" },
    pid: 7,
    log: (_, event) => void logged.push(event),
    open: async () => undefined,
  });
  told.ready("");
  told.stopping(1, "");
  expect(logged).toEqual(["daemon.unheard"]);
});
