// The order of checks, one row against every later one; and what a turn's end comes to, however its backend behaves.

import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { ProviderTurn } from "../../src/connector/backend.ts";
import type { Disposition, TransportInvocation } from "../../src/connector/contract.ts";
import type { MemoryReplay } from "../../src/connector/replay_memory.ts";
import type { CallerConfig } from "../../src/connector/service_config.ts";
import { wallClock } from "../../src/host/clock.ts";
import { turnOf } from "./fake_backend.ts";
import {
  ALPHA,
  BETA,
  bytesOf,
  envelopeOf,
  frameOf,
  HORIZON_MS,
  invocation,
  RETENTION_MS,
  request,
  resultOf,
  ServiceRig,
  START_MS,
  type Wanted,
  wordsOf,
} from "./service_rig.ts";

/** Makes what a frame is built of break one row; all that break different rows can be put together. */
interface Attempt {
  caller: CallerConfig;
  wanted: Wanted;
  /** In the envelope. */
  requestId: string;
  messageId: string | undefined;
  key: Buffer | undefined;
  digest: Uint8Array | undefined;
  cut: boolean;
}

interface Row {
  readonly name: string;
  readonly told: string;
  /** Before the frame comes. */
  readonly prepare?: (rig: ServiceRig) => Promise<unknown>;
  readonly breaks: (attempt: Attempt) => void;
}

const STRANGER: CallerConfig = { ...ALPHA, caller_runtime_id: "caller-nobody" };
const LONG = "x".repeat(20_000);

/** From row 4 on; rows 7 and 10 are one against the other by the id that they break. */
const ROWS: readonly Row[] = [
  {
    name: "4: another message id",
    told: "dropped binding",
    breaks: (attempt) => {
      attempt.messageId = "request-0002";
    },
  },
  {
    name: "5: a stranger",
    told: "dropped caller",
    breaks: (attempt) => {
      attempt.caller = STRANGER;
    },
  },
  {
    name: "6: another key",
    told: "dropped authentication",
    breaks: (attempt) => {
      attempt.key = randomBytes(32);
    },
  },
  {
    name: "7: no id",
    told: "refused Malformed",
    breaks: (attempt) => {
      attempt.requestId = "ends in a space ";
    },
  },
  {
    name: "8: a long payload",
    told: "refused PayloadOverBound",
    breaks: (attempt) => {
      attempt.wanted = { ...attempt.wanted, instructions: LONG };
    },
  },
  {
    name: "9: no invocation",
    told: "refused Malformed",
    breaks: (attempt) => {
      attempt.cut = true;
    },
  },
  {
    name: "10: another's request id",
    told: "refused IdentitySubstitution",
    breaks: (attempt) => {
      if (attempt.requestId === "request-0001") attempt.requestId = "request-0009";
    },
  },
  {
    name: "11: another request's digest",
    told: "refused ProviderDigestSubstitution",
    breaks: (attempt) => {
      attempt.digest = Buffer.alloc(32, 9);
    },
  },
  {
    name: "12: an id that is taken",
    told: "refused ReplayConflict",
    prepare: (rig) => rig.ask({ conversation_id: "another" }),
    breaks: () => undefined,
  },
  {
    name: "16: expired",
    told: "refused Expired",
    breaks: (attempt) => {
      attempt.wanted = { ...attempt.wanted, expiresAtUnixMs: START_MS - 1 };
    },
  },
  {
    name: "17: another model",
    told: "refused ModelNotAllowed",
    breaks: (attempt) => {
      attempt.wanted = { ...attempt.wanted, model: "fake-Echo" };
    },
  },
  {
    name: "18: too many tokens",
    told: "refused OutputTokensOverBound",
    breaks: (attempt) => {
      attempt.wanted = { ...attempt.wanted, max_output_tokens: ALPHA.max_output_tokens + 1 };
    },
  },
  {
    name: "19: no capacity",
    told: "refused Capacity",
    prepare: async (rig) => {
      await rig.begin({ request_id: "running-1" });
      await rig.begin({ request_id: "running-2" });
    },
    breaks: () => undefined,
  },
];

function build(rows: readonly Row[]): Buffer {
  const attempt: Attempt = {
    caller: ALPHA,
    wanted: {},
    requestId: "request-0001",
    messageId: undefined,
    key: undefined,
    digest: undefined,
    cut: false,
  };
  for (const row of rows) row.breaks(attempt);
  const asked = invocation(attempt.wanted);
  const bytes = bytesOf({
    ...asked,
    provider_request_sha256: attempt.digest ?? asked.provider_request_sha256,
  });
  const plaintext = attempt.cut ? bytes.subarray(0, -1) : bytes;
  const { caller, requestId, messageId, key } = attempt;
  return frameOf(plaintext, {
    caller,
    requestId,
    ...(messageId === undefined ? {} : { messageId }),
    ...(key === undefined ? {} : { key }),
  });
}

/** With why it was dropped, which nobody outside can see. */
async function told(rig: ServiceRig, frame: Buffer): Promise<string> {
  const words = await rig.tell(frame);
  return words === "dropped" ? `dropped ${[...rig.service.figures.dropped.keys()].join(" ")}` : words;
}

const PAIRS = ROWS.flatMap((first, i) => ROWS.slice(i + 1).map((second) => [first, second] as const));

describe("of two rows that fail", () => {
  it.each(PAIRS.map(([a, b]) => [a.name, b.name, a, b] as const))(
    "%s comes before %s",
    async (_, __, a, b) => {
      const rig = await ServiceRig.open({ max_frame_bytes: 60_000 });
      // What takes an id comes before what takes the capacity for it.
      for (const row of [a, b]) await row.prepare?.(rig);
      const calls = rig.fake.calls;
      expect(await told(rig, build([a, b]))).toBe(a.told);
      expect(rig.fake.calls).toBe(calls);
    },
  );

  it.each(ROWS.map((row) => [row.name, row] as const))("%s decides alone too", async (_, row) => {
    const rig = await ServiceRig.open({ max_frame_bytes: 60_000 });
    await row.prepare?.(rig);
    expect(await told(rig, build([row]))).toBe(row.told);
  });

  it("none, the turn runs", async () => {
    const rig = await ServiceRig.open();
    expect(await rig.tell(build([]))).toBe("Completed");
    expect(rig.fake.calls).toBe(1);
  });
});

describe("a record comes before what may have changed since", () => {
  it.each<[string, Wanted, (rig: ServiceRig) => unknown]>([
    ["its expiry", {}, (rig) => rig.clock.jump(HORIZON_MS)],
    ["its model's leave", {}, (rig) => rig.open({ callers: [{ ...ALPHA, allowed_models: ["fake-tool"] }] })],
    ["its bound", {}, (rig) => rig.open({ callers: [{ ...ALPHA, max_output_tokens: 1 }] })],
    [
      "its capacity",
      {},
      (rig) => rig.begin({ request_id: "r2" }).then(() => rig.begin({ request_id: "r3" })),
    ],
  ])("%s", async (_, wanted, change) => {
    const rig = await ServiceRig.open();
    const first = await rig.deliver(request(wanted));
    await change(rig);
    const calls = rig.fake.calls;
    expect(await rig.deliver(request(wanted))).toEqual(first);
    expect(rig.fake.calls).toBe(calls);
  });
});

describe("a caller's key that was replaced", () => {
  it("leaves what ran indeterminate, never runs it again, and gives it back with the old key", async () => {
    const rig = await ServiceRig.open();
    const first = await rig.deliver(request());
    const rotated = { ...ALPHA, connection_secret: "alpha-another-secret-0123456789abcdefghij" };
    await rig.open({ callers: [rotated] });
    expect(await rig.tell(request())).toBe("dropped");
    expect(await rig.tell(request({ caller: rotated }), rotated)).toBe("refused Indeterminate");
    await rig.open();
    expect(await rig.deliver(request())).toEqual(first);
    expect(rig.fake.calls).toBe(1);
  });
});

describe("a turn", () => {
  it("that runs refuses the same invocation and another one under its id, and is replayed byte for byte after", async () => {
    const rig = await ServiceRig.open();
    const { reply } = await rig.begin();
    expect(await rig.ask()).toBe("refused InFlight");
    expect(await rig.ask({ instructions: "Be long." })).toBe("refused ReplayConflict");
    rig.fake.releaseAll();
    const first = await reply;
    expect(wordsOf(first)).toBe("Completed");
    expect(await rig.deliver(request())).toEqual(first);
    expect(rig.fake.calls).toBe(1);
  });

  it("of a process that ended in it is indeterminate until its record may go, and expired then", async () => {
    const rig = await ServiceRig.open();
    await rig.begin();
    await rig.open();
    expect(await rig.ask()).toBe("refused Indeterminate");
    rig.clock.jump(60_000 + RETENTION_MS);
    expect(await rig.service.prune()).toBe(0);
    expect(await rig.ask()).toBe("refused Indeterminate");
    rig.clock.jump(1);
    expect(await rig.service.prune()).toBe(1);
    expect(await rig.ask()).toBe("refused Expired");
    expect(rig.fake.calls).toBe(1);
  });

  it("does not run again although its record is gone and the clock was set back to before its expiry", async () => {
    const rig = await ServiceRig.open();
    expect(await rig.ask()).toBe("Completed");
    rig.clock.jump(2 * RETENTION_MS);
    expect(await rig.service.prune()).toBe(1);
    const { store, fake } = rig;
    const later = new ServiceRig(); // a process on a machine whose clock is where it was
    later.store = store;
    await later.open();
    expect(await later.ask()).toBe("refused Expired");
    expect(await later.ask({ expiresAtUnixMs: START_MS + 60_001 })).toBe("Completed");
    expect(fake.calls).toBe(1);
  });

  it("runs where the clock was an hour ahead and was put right, as it does after a start without a network", async () => {
    let wallMs = START_MS + 3_600_000;
    const rig = new ServiceRig();
    const clock = wallClock(() => wallMs);
    await rig.open({}, clock);
    expect(await rig.ask({ request_id: "ahead", expiresAtUnixMs: wallMs + 60_000 })).toBe("Completed");
    wallMs = START_MS;
    expect(await rig.ask({ request_id: "right" })).toBe("Completed");
    expect(await rig.ask({ request_id: "early", expiresAtUnixMs: wallMs - 1 })).toBe("refused Expired");
  });

  it("keeps its record while it runs, however long that is", async () => {
    const rig = await ServiceRig.open();
    const { reply } = await rig.begin();
    rig.clock.jump(10 * RETENTION_MS);
    expect(await rig.service.prune()).toBe(0);
    expect(await rig.ask()).toBe("refused InFlight");
    rig.fake.releaseAll();
    expect(wordsOf(await reply)).toBe("Completed");
    expect(await rig.service.prune()).toBe(1);
  });

  it("leaves the store to others: many that may go do, beside those that run", async () => {
    const rig = await ServiceRig.open();
    for (let i = 0; i < 600; i += 1) await rig.ask({ request_id: `r${i}` });
    await rig.begin({ request_id: "running" });
    rig.clock.jump(10 * RETENTION_MS);
    expect(await rig.service.prune()).toBe(600);
  });
});

const THEN = "then";

/** A backend of values that no type would let through. */
const HOSTILE: readonly (readonly [string, () => unknown])[] = [
  [
    "throws at once",
    () => {
      throw new Error("canary");
    },
  ],
  ["rejects", () => Promise.reject(new Error("canary"))],
  ["rejects with nothing", () => Promise.reject(undefined)],
  ["returns nothing", () => undefined],
  ["returns a word that the kit uses itself", () => "abandoned"],
  [
    "returns events that are none",
    () => ({ events: "text", outcome: { Failed: { failure_kind: "Overloaded", message: "m" } } }),
  ],
  [
    "has a getter that throws",
    () => ({
      get events() {
        throw new Error("canary");
      },
    }),
  ],
  ["has an outcome that is no outcome", () => ({ events: [], outcome: { Refused: "Expired" } })],
  ["has half a character in a text", () => turn([{ TextDelta: { text: "\ud83d" } }])],
  ["has an empty text", () => turn([{ TextDelta: { text: "" } }])],
  ["calls no tool and says so", () => turn([], "ToolCalls")],
  ["calls a tool and ends its turn", () => turn([{ ToolCall: { call_id: "c", name: "n", arguments: "a" } }])],
  ["tells of more reasoning than output", () => turn([], "EndTurn", { reasoning_output_tokens: 9 })],
  ["has a member too many", () => turn([{ TextDelta: { text: "a", more: "canary" } }])],
  [
    "has a thenable that throws",
    () => ({
      get [THEN]() {
        throw new Error("canary");
      },
    }),
  ],
  [
    "has a revoked proxy",
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return { events: proxy, outcome: proxy };
    },
  ],
];

function turn(events: readonly unknown[], stop_reason = "EndTurn", usage: object = {}): unknown {
  const counted = {
    input_tokens: 1,
    output_tokens: 1,
    reasoning_output_tokens: null,
    cached_input_tokens: null,
    ...usage,
  };
  return { events, outcome: { Completed: { provider_response_id: null, stop_reason, usage: counted } } };
}

async function withBackend(
  execute: (invocation: TransportInvocation, signal: AbortSignal) => unknown,
  config = {},
) {
  const rig = new ServiceRig();
  rig.backend = { transport: "fake_v1", execute: execute as never };
  await rig.open(config);
  return rig;
}

function transportedOf(disposition: Disposition) {
  if (!("Transported" in disposition)) throw new Error("refused");
  return disposition.Transported;
}

describe("a backend that", () => {
  it.each(HOSTILE)("%s is a fault of the backend, recorded, without its words", async (_, execute) => {
    let calls = 0;
    const rig = await withBackend(() => {
      calls += 1;
      return execute();
    });
    const reply = await rig.deliver(request());
    const { events, receipt } = transportedOf(resultOf(reply!).disposition);
    expect(events).toEqual([]);
    expect(receipt.outcome).toEqual({
      Failed: { failure_kind: "BackendFault", message: "the provider backend failed" },
    });
    expect(await rig.deliver(request())).toEqual(reply);
    expect(calls).toBe(1);
    expect(JSON.stringify(rig.lines)).not.toContain("canary");
  });

  it("changes the invocation can't bind its answer to another", async () => {
    const rig = await withBackend((asked) => {
      const open = asked as { request: { model: string; request_id: string }; caller_runtime_id: string };
      const said = turnOf(asked);
      open.request.model = "another";
      open.request.request_id = "another";
      open.caller_runtime_id = "another";
      asked.native_request_sha256.fill(1);
      return said;
    });
    const result = resultOf((await rig.deliver(request()))!);
    const { receipt } = transportedOf(result.disposition);
    expect(result.request_id).toBe("request-0001");
    expect(receipt).toMatchObject({ request_id: "request-0001", model: "fake-echo" });
    expect(Buffer.from(receipt.native_request_sha256)).toEqual(
      Buffer.from(invocation().native_request_sha256),
    );
  });

  it("changes its turn after it gave it changes nothing of what is replayed", async () => {
    const events: unknown[] = [{ TextDelta: { text: "first" } }];
    const rig = await withBackend(() => turn(events));
    const reply = await rig.deliver(request());
    events.push({ TextDelta: { text: "second" } });
    expect(transportedOf(resultOf(reply!).disposition).events).toHaveLength(1);
    expect(await rig.deliver(request())).toEqual(reply);
  });

  it("answers differently each time it is looked at never gets an invalid result sealed", async () => {
    let looked = 0;
    const rig = await withBackend(() => ({
      events: [
        {
          TextDelta: {
            get text() {
              looked += 1;
              return looked % 2 === 1 ? "a" : "";
            },
          },
        },
      ],
      get outcome() {
        looked += 1;
        return looked < 4
          ? turnOf(invocation()).outcome
          : { Failed: { failure_kind: "Overloaded", message: "m" } };
      },
    }));
    expect(["Completed", "Failed BackendFault", "Failed Overloaded"]).toContain(await rig.ask());
  });

  it("is over its limit is told so, its turn is timed out once and for all, and what it says later is discarded", async () => {
    let signal: AbortSignal | undefined;
    let finish: (turn: unknown) => void = () => undefined;
    let entered: () => void = () => undefined;
    const isIn = new Promise<void>((resolve) => {
      entered = resolve;
    });
    const rig = await withBackend(
      (_, given) => {
        signal = given;
        entered();
        return new Promise((resolve) => {
          finish = resolve;
        });
      },
      { execution_limit_ms: 5000 },
    );
    const asked = rig.deliver(request());
    await isIn;
    expect(signal?.aborted).toBe(false);
    while (rig.clock.step(START_MS + 4999));
    expect(signal?.aborted).toBe(false);
    while (rig.clock.step(START_MS + 5000));
    const reply = await asked;
    expect(signal?.aborted).toBe(true);
    expect(transportedOf(resultOf(reply!).disposition).receipt.outcome).toEqual({
      Failed: { failure_kind: "TimedOut", message: "the provider backend exceeded the execution limit" },
    });
    finish(turn([{ TextDelta: { text: "late" } }]));
    expect(await rig.deliver(request())).toEqual(reply);
  });

  it("fails after its limit raises nothing that nobody handles", async () => {
    let fail: (error: Error) => void = () => undefined;
    let entered: () => void = () => undefined;
    const isIn = new Promise<void>((resolve) => {
      entered = resolve;
    });
    const rig = await withBackend(
      () => {
        entered();
        return new Promise((_, reject) => {
          fail = reject;
        });
      },
      { execution_limit_ms: 10 },
    );
    const asked = rig.tell(request());
    await isIn;
    while (rig.clock.step(START_MS + 10));
    expect(await asked).toBe("Failed TimedOut");
    fail(new Error("late"));
    await new Promise((resolve) => setImmediate(resolve)); // an unhandled rejection would fail the run
  });

  it("ends in time leaves no timer behind", async () => {
    const rig = await ServiceRig.open({ execution_limit_ms: 5000 });
    expect(await rig.ask()).toBe("Completed");
    expect(rig.clock.timers).toBe(0);
  });

  it("says more than the payload bound allows gives a result too large, at exactly one byte over", async () => {
    const textOf = (bytes: number) => turn([{ TextDelta: { text: "x".repeat(bytes) } }]) as ProviderTurn;
    let bytes = 3000;
    const rig = await withBackend(() => textOf(bytes), { callers: [{ ...ALPHA, max_payload_bytes: 4096 }] });
    const reply = await rig.deliver(request({ request_id: "r0" }));
    const around = envelopeOf(reply!).ciphertext.length - 3000;
    bytes = 4096 - around;
    expect(await rig.ask({ request_id: "r1" })).toBe("Completed");
    bytes += 1;
    expect(await rig.ask({ request_id: "r2" })).toBe("Failed ResultTooLarge");
  });
});

describe("a store that", () => {
  it("can't write the claim: nothing runs, nothing is answered, and the same invocation runs when it can", async () => {
    const rig = await ServiceRig.open();
    const store = rig.store as MemoryReplay;
    const activate = store.activate.bind(store);
    store.activate = async () => false;
    expect(await rig.ask()).toBe("dropped");
    expect(rig.fake.calls).toBe(0);
    expect(rig.service.figures.running).toBe(0);
    store.activate = activate;
    expect(await rig.ask()).toBe("Completed");
  });

  it("can't write the outcome: nothing is answered, and the request is indeterminate for good", async () => {
    const rig = await ServiceRig.open();
    const store = rig.store as MemoryReplay;
    const complete = store.complete.bind(store);
    store.complete = async () => false;
    expect(await rig.ask()).toBe("dropped");
    store.complete = complete;
    expect(await rig.ask()).toBe("refused Indeterminate");
    expect(rig.service.figures.running).toBe(0);
    expect(rig.fake.calls).toBe(1);
  });

  it.each(["activate", "complete"] as const)(
    "throws in %s is no end of the service, and its words go nowhere",
    async (what) => {
      const rig = await ServiceRig.open();
      const store = rig.store as MemoryReplay;
      const real = store[what].bind(store) as never;
      store[what] = async () => {
        throw new Error("canary");
      };
      expect(await rig.ask()).toBe("dropped");
      store[what] = real;
      expect(await rig.ask({ request_id: "another" })).toBe("Completed");
      expect(JSON.stringify(rig.lines)).not.toContain("canary");
    },
  );

  it("finds a record damaged answers nothing and runs nothing", async () => {
    const rig = await ServiceRig.open();
    (rig.store as MemoryReplay).find = () => "damaged" as never;
    expect(await rig.ask()).toBe("dropped");
    expect(rig.fake.calls).toBe(0);
    expect([...rig.service.figures.dropped]).toEqual([["record_damaged", 1]]);
  });

  it("holds the claim's write holds the backend, and the request is in flight meanwhile", async () => {
    const rig = await ServiceRig.open();
    const store = rig.store as MemoryReplay;
    const activate = store.activate.bind(store);
    let written: () => void = () => undefined;
    const waits = new Promise<void>((resolve) => {
      written = resolve;
    });
    store.activate = async (...record) => {
      await waits;
      return activate(...record);
    };
    const first = rig.ask();
    expect(await rig.ask()).toBe("refused InFlight");
    expect(await rig.ask({ conversation_id: "another" })).toBe("refused ReplayConflict");
    expect(rig.fake.calls).toBe(0);
    written();
    expect(await first).toBe("Completed");
  });
});

describe("replies", () => {
  it("that are larger than a frame may be are not sent, and count as such", async () => {
    const rig = await ServiceRig.open();
    const requestId = "x".repeat(8000);
    expect(await rig.tell(frameOf(Buffer.from("x"), { requestId }))).toBe("dropped");
    expect([...rig.service.figures.dropped]).toEqual([["reply_size", 1]]);
  });

  it("to 16 callers at once are each their own, and each turn runs once", async () => {
    const callers = Array.from({ length: 16 }, (_, i) => ({
      ...ALPHA,
      caller_runtime_id: `caller-${i}`,
      connection_secret: `secret-of-caller-number-${i}-0123456789abcdef`,
    }));
    const rig = await ServiceRig.open({ callers });
    const told = await Promise.all(
      callers.flatMap((caller) =>
        [0, 1].map(async (n) => {
          const wanted = {
            caller,
            request_id: `r${n}`,
            input: [{ UserText: { text: `${caller.caller_runtime_id} ${n}` } }],
          };
          const reply = await rig.deliver(request(wanted));
          const { events } = transportedOf(resultOf(reply!, caller).disposition);
          return events[0]?.payload;
        }),
      ),
    );
    expect(told).toEqual(
      callers.flatMap(({ caller_runtime_id: id }) =>
        [0, 1].map((n) => ({ TextDelta: { text: `echo:${id} ${n}` } })),
      ),
    );
    expect(rig.fake.calls).toBe(32);
  });
});

describe("the log", () => {
  it("has one line in ten seconds however many frames are dropped, with how many", async () => {
    const rig = await ServiceRig.open();
    for (let i = 0; i < 1000; i += 1) await rig.deliver(randomBytes(40));
    while (rig.clock.step(START_MS + 10_000));
    await rig.deliver(randomBytes(40));
    const lines = rig.lines.filter(({ event }) => event === "connector.dropped");
    expect(lines.map(({ carriage }) => carriage)).toEqual([1, 999]);
    await rig.service.close();
    expect(rig.lines.at(-1)).toMatchObject({ event: "connector.dropped", carriage: 1 });
  });
});

describe("a service that ends", () => {
  it("lets what runs end, and takes nothing more meanwhile", async () => {
    const rig = await ServiceRig.open();
    const { reply } = await rig.begin();
    const drained = rig.service.drain(60_000);
    expect(await rig.ask({ request_id: "another" })).toBe("dropped");
    rig.fake.releaseAll();
    await drained;
    expect(wordsOf(await reply)).toBe("Completed");
    await rig.service.close();
  });

  it("gives up what runs for longer than it waits, tells the backend so, and leaves it indeterminate", async () => {
    let signal: AbortSignal | undefined;
    const rig = await withBackend((_, given) => {
      signal = given;
      return new Promise(() => undefined);
    });
    const asked = rig.tell(request());
    const drained = rig.service.drain(1000);
    while (rig.clock.step(START_MS + 1000));
    await drained;
    expect(await asked).toBe("dropped");
    expect(signal?.aborted ?? true).toBe(true);
    await rig.open();
    expect(await rig.ask()).toBe("refused Indeterminate");
  });
});

describe("two callers", () => {
  it("have ids of their own: the same id of another caller is another request", async () => {
    const rig = await ServiceRig.open();
    expect(await rig.ask()).toBe("Completed");
    expect(await rig.ask({ caller: BETA })).toBe("Completed");
    expect(rig.fake.calls).toBe(2);
  });
});
