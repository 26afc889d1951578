import { describe, expect, it } from "vitest";
import {
  type FollowPorts,
  followAudit,
  type Place,
  type Start,
  type Told,
} from "../../../src/roles/traces/follow.ts";
import type { Span } from "../../../src/roles/traces/otlp.ts";
import { placeText, readPlace } from "../../../src/roles/traces/place_text.ts";

// Following an audit that a test writes record by record, page by page.

const DISPATCH = {
  kind: "dispatch",
  role: "agent",
  session: "s",
  tool: "t",
  provider: "p",
  decision: "allow",
};
const OUTCOME = { kind: "outcome", role: "agent", session: "s", tool: "t", status: "result" };

class Chain {
  readonly #records: string[] = [];
  #first = 1;
  readonly #name: string;

  constructor(name = "a") {
    this.#name = name;
  }

  add(...records: readonly object[]): this {
    for (const record of records) {
      const seq = this.#first + this.#records.length;
      const hash = `${this.#name}${seq}`.padStart(64, "0").replace(/[^0-9a-f]/g, "f");
      this.#records.push(
        JSON.stringify({ hash, record: { seq: String(seq), at_ms: 1000 + seq, ...record } }),
      );
    }
    return this;
  }

  /** A call that ran. */
  call(id: number): this {
    return this.add({ ...DISPATCH, call: String(id) }, { ...OUTCOME, call: String(id) });
  }

  remove(count: number): void {
    this.#records.splice(0, count);
    this.#first += count;
  }

  get head(): bigint {
    return BigInt(this.#first + this.#records.length - 1);
  }

  page(from: bigint, lines: number) {
    const at = Math.max(0, Number(from) - this.#first);
    const taken = this.#records.slice(at, at + lines);
    return { lines: taken, more: at + taken.length < this.#records.length };
  }
}

interface World {
  chain: Chain;
  readonly sent: Span[];
  readonly places: Place[];
  readonly said: string[];
  readonly told: Told;
  /** What happens at each pause; after the last the following stops. */
  readonly pauses: (() => void)[];
  readonly ports: FollowPorts;
  follow(start: Start): ReturnType<typeof followAudit>;
}

function world(chain: Chain, more: Partial<FollowPorts> = {}, lines = 100): World {
  const stop = new AbortController();
  const one: World = {
    chain,
    sent: [],
    places: [],
    said: [],
    told: { taken: 0, dropped: 0, missed: 0n },
    pauses: [],
    ports: {
      page: async (from) => one.chain.page(from, lines),
      head: async () => one.chain.head,
      send: async (spans) => {
        one.sent.push(...spans);
        return { ok: true, value: { taken: spans.length, dropped: 0 } };
      },
      save: async (place) => {
        one.places.push(place);
        return { ok: true, value: undefined };
      },
      pause: async () => {
        const next = one.pauses.shift();
        if (next === undefined) stop.abort();
        else next();
      },
      say: (sentence) => void one.said.push(sentence),
      ...more,
    },
    follow: (start) => followAudit(start, one.ports, one.told, stop.signal),
  };
  return one;
}

function calls({ sent }: World): readonly unknown[] {
  return sent
    .filter(({ name }) => name === "execute_tool t")
    .map((span) => span.attributes["gen_ai.tool.call.id"]);
}

/** A place as a file hands it on. */
function saved(place: Place | undefined): Start {
  const read = place === undefined ? undefined : readPlace(placeText(place));
  if (read === undefined) throw new Error("no place was saved");
  return { at: "place", place: read };
}

describe("following begins", () => {
  it("with what is still to come", async () => {
    const one = world(new Chain().call(1));
    one.pauses.push(() => one.chain.call(2));
    await one.follow({ at: "end" });
    expect(calls(one)).toEqual(["2"]);
  });

  it("at a record, in pages", async () => {
    const chain = new Chain();
    for (let id = 1; id <= 50; id += 1) chain.call(id);
    const one = world(chain, {}, 7);
    await one.follow({ at: "record", seq: 21n });
    expect(calls(one)).toEqual(Array.from({ length: 40 }, (_, at) => String(at + 11)));
    expect(one.told.taken).toBe(80);
  });

  it("with an audit that is empty", async () => {
    const one = world(new Chain());
    one.pauses.push(() => one.chain.call(1));
    await one.follow({ at: "end" });
    expect(calls(one)).toEqual(["1"]);
  });
});

describe("a place that was saved", () => {
  it("neither loses nor repeats, whichever record the process ended after", async () => {
    const whole = new Chain()
      .call(1)
      .add({ ...DISPATCH, call: "2" })
      .call(3)
      .add({ ...OUTCOME, call: "2" })
      .call(4);
    for (let records = 1; records <= 8; records += 1) {
      const before = world(new Chain());
      const cut = whole.page(1n, records).lines;
      const first = world(before.chain, {
        page: async (from) => ({ lines: cut.slice(Number(from) - 1), more: false }),
      });
      await first.follow({ at: "record", seq: 1n });
      const second = world(whole);
      await second.follow(saved(first.places.at(-1)));
      expect([...calls(first), ...calls(second)].toSorted()).toEqual(["1", "2", "3", "4"]);
    }
  });

  it("is there from the beginning, so that what comes while nobody follows is told of later", async () => {
    const one = world(new Chain().call(1));
    await one.follow({ at: "end" });
    one.chain.call(2);
    const next = world(one.chain);
    await next.follow(saved(one.places.at(-1)));
    expect(calls(next)).toEqual(["2"]);
  });

  it("is not moved on before the spans were taken", async () => {
    const one = world(new Chain().call(1), {
      send: async () => ({ ok: false, fault: "the collector does not take spans here: HTTP 404" }),
    });
    expect(await one.follow({ at: "record", seq: 1n })).toMatchObject({ ok: false });
    expect(one.places).toEqual([]);
  });

  it("that can't be saved ends it", async () => {
    const one = world(new Chain().call(1), { save: async () => ({ ok: false, fault: "ENOSPC" }) });
    expect(await one.follow({ at: "record", seq: 1n })).toEqual({ ok: false, fault: "ENOSPC" });
  });

  it.each([
    "",
    "{}",
    "null",
    `{"form":2,"seq":"1","hash":"${"0".repeat(64)}","open":[]}`,
    `{"form":1,"seq":"0","hash":"${"0".repeat(64)}","open":[]}`,
    '{"form":1,"seq":"1","hash":"x","open":[]}',
    `{"form":1,"seq":"1","hash":"${"0".repeat(64)}","open":[{}]}`,
    `{"form":1,"seq":"1","hash":"${"0".repeat(64)}"`,
  ])("is refused where it is none: %s", (text) => {
    expect(readPlace(text)).toBeUndefined();
  });
});

describe("an audit", () => {
  it("of which records were removed before they were read is gone on with, and that is said", async () => {
    const one = world(new Chain().call(1));
    one.pauses.push(() => {
      one.chain.call(2).call(3);
      one.chain.remove(4);
    });
    await one.follow({ at: "end" });
    expect(calls(one)).toEqual(["3"]);
    expect(one.told.missed).toBe(2n);
    expect(one.said).toEqual([
      "following the audit from record 3 on",
      "2 audit records were removed before they were read",
    ]);
  });

  it("that is another one (a backup was put back) is followed from its end, and calls that were open are told of", async () => {
    const one = world(new Chain("a").add({ ...DISPATCH, call: "1" }));
    one.pauses.push(() => {
      one.chain = new Chain("b").call(7);
    });
    one.pauses.push(() => one.chain.call(8));
    await one.follow({ at: "record", seq: 1n });
    expect(calls(one)).toEqual(["1", "8"]);
    expect(one.sent[0]?.error).toBe("outcome_unknown");
    expect(one.said[1]).toContain("another one than before");
  });

  it("that is shorter than before is another one too", async () => {
    const one = world(new Chain("a").call(1).call(2));
    one.pauses.push(() => {
      one.chain = new Chain("a").call(1);
    });
    one.pauses.push(() => one.chain.call(9));
    await one.follow({ at: "end" });
    expect(calls(one)).toEqual(["9"]);
  });

  it("that can't be read now is asked again", async () => {
    let asked = 0;
    const one = world(new Chain().call(1));
    const { page } = one.ports;
    const late = world(one.chain, {
      page: async (from) => {
        asked += 1;
        return asked < 3 ? "later" : page(from);
      },
    });
    late.pauses.push(
      () => undefined,
      () => undefined,
    );
    await late.follow({ at: "record", seq: 1n });
    expect(calls(late)).toEqual(["1"]);
  });

  it("with a line that is no record ends it", async () => {
    const one = world(new Chain(), { page: async () => ({ lines: ["nonsense"], more: false }) });
    expect(await one.follow({ at: "record", seq: 1n })).toMatchObject({ ok: false });
  });
});
