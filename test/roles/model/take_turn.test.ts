import { describe, expect, it } from "vitest";
import { ConnectorError, sent, unsent } from "../../../src/connector/client_error.ts";
import type { Refusal, TransportInvocation, TransportResult } from "../../../src/connector/contract.ts";
import { invocationOf } from "../../../src/connector/invocation.ts";
import { type TurnSettings, takeTurn } from "../../../src/roles/model/take_turn.ts";
import { expiriesOf, gridStepOf } from "../../../src/roles/model/turn_request.ts";
import { errorText } from "../../../src/roles/model/turn_words.ts";

// Against a connector that answers as it was told, at times that the test has.

const START_MS = 1_800_000_000_000;
const SETTINGS: TurnSettings = {
  horizonMs: 300_000,
  lookBackMs: 86_400_000,
  patienceMs: 60_000,
  turnMsMax: 600_000,
};

const REQUEST = {
  request_id: "callgate/1/agent:s",
  conversation_id: "agent:s",
  model: "m",
  instructions: "i",
  input: [],
  reasoning_effort: null,
  output_format_name: null,
  tools: [],
  tool_choice: "auto",
  parallel_tool_calls: true,
  output_schema_json: null,
  max_output_tokens: 1,
} as const;

const at = (expiresAtUnixMs: number) => invocationOf({ caller: "c", expiresAtUnixMs, request: REQUEST });

function refused(refusal: Refusal): TransportResult {
  return {
    schema_id: "gamecult.model.transport_result.v3",
    request_id: REQUEST.request_id,
    caller_runtime_id: "c",
    disposition: { Refused: refusal },
  };
}

const DONE = refused("Malformed"); // an answer that stands, whatever it says

type Answer = TransportResult | Error;

/** `answer` is asked with each invocation; a pause lets its time pass at once. */
class Rig {
  nowMs = START_MS;
  readonly asked: number[] = [];
  readonly stop = new AbortController();
  readonly #answer: (invocation: TransportInvocation, times: number) => Answer;

  constructor(answer: (invocation: TransportInvocation, times: number) => Answer) {
    this.#answer = answer;
  }

  take(settings: Partial<TurnSettings> = {}) {
    return takeTurn(at, { ...SETTINGS, ...settings }, this.#effects(), this.stop.signal);
  }

  #effects() {
    return {
      nowMs: () => this.nowMs,
      pause: async (ms: number) => {
        this.nowMs += ms;
      },
      execute: async (invocation: TransportInvocation) => {
        this.asked.push(invocation.expires_at_unix_ms);
        const answer = this.#answer(invocation, this.asked.length);
        if (answer instanceof Error) throw answer;
        return answer;
      },
    };
  }
}

describe("a turn", () => {
  it("is asked for once where it is answered", async () => {
    const rig = new Rig(() => DONE);
    expect(await rig.take()).toEqual({ ok: true, value: DONE });
    expect(rig.asked).toHaveLength(1);
  });

  it("whose id is taken is looked for under the expiries of earlier attempts, latest first", async () => {
    const [firstExpiry] = expiriesOf(START_MS - 3_600_000, gridStepOf(SETTINGS.horizonMs), 0);
    const rig = new Rig(({ expires_at_unix_ms }) =>
      expires_at_unix_ms === firstExpiry ? DONE : refused("ReplayConflict"),
    );
    expect(await rig.take()).toEqual({ ok: true, value: DONE });
    expect(rig.asked.at(-1)).toBe(firstExpiry);
    expect(rig.asked).toEqual(rig.asked.toSorted((a, b) => b - a));
    expect(rig.asked.length).toBeLessThanOrEqual(25);
  });

  it("that nobody asked for so within the look-back is a conflict, after a bounded number of questions", async () => {
    const rig = new Rig(() => refused("ReplayConflict"));
    expect(await rig.take()).toEqual({ ok: true, value: refused("ReplayConflict") });
    expect(rig.asked).toHaveLength(577);
    const short = new Rig(() => refused("ReplayConflict"));
    await short.take({ lookBackMs: 1000 });
    expect(short.asked.length).toBeLessThanOrEqual(2);
  });

  it("is still looked for where an earlier expiry is over and has no record", async () => {
    const rig = new Rig((asked, times) => {
      if (asked.expires_at_unix_ms >= START_MS) return refused("ReplayConflict");
      return times < 8 ? refused("Expired") : DONE;
    });
    expect(await rig.take()).toEqual({ ok: true, value: DONE });
    expect(rig.asked).toHaveLength(8);
  });

  it("whose earlier expiry is refused though it is not over ends there", async () => {
    const rig = new Rig((_, times) => (times === 1 ? refused("ReplayConflict") : refused("Expired")));
    expect(await rig.take()).toEqual({ ok: true, value: refused("Expired") });
    expect(rig.asked).toHaveLength(2);
  });

  it("that runs is waited for under the same invocation, beyond all patience", async () => {
    const rig = new Rig((_, times) => (times < 100 ? refused("InFlight") : DONE));
    expect(await rig.take()).toEqual({ ok: true, value: DONE });
    expect(rig.nowMs - START_MS).toBeGreaterThan(SETTINGS.patienceMs);
    expect(new Set(rig.asked).size).toBe(1);
  });

  it("that runs for longer than a turn may is given up, and told so", async () => {
    const rig = new Rig(() => refused("InFlight"));
    expect(await rig.take()).toEqual({ ok: true, value: refused("InFlight") });
    expect(rig.nowMs - START_MS).toBeLessThan(SETTINGS.turnMsMax + 5000);
  });

  it("that finds no place is asked for again for as long as there is patience", async () => {
    const free = new Rig((_, times) => (times < 5 ? refused("Capacity") : DONE));
    expect(await free.take()).toEqual({ ok: true, value: DONE });
    const full = new Rig(() => refused("Capacity"));
    expect(await full.take()).toEqual({ ok: true, value: refused("Capacity") });
    expect(full.nowMs - START_MS).toBeLessThan(SETTINGS.patienceMs + 5000);
    const now = new Rig(() => refused("Capacity"));
    await now.take({ patienceMs: 0 });
    expect(now.asked).toHaveLength(1);
  });

  it("that waited for a place longer than its expiry gets a new one: it never ran", async () => {
    const rig: Rig = new Rig(({ expires_at_unix_ms }, times) => {
      if (expires_at_unix_ms < rig.nowMs) return refused("Expired");
      return times < 10 ? refused("Capacity") : DONE;
    });
    expect(await rig.take({ horizonMs: 2000 })).toEqual({ ok: true, value: DONE });
    expect(new Set(rig.asked).size).toBeGreaterThan(1);
  });

  it("outside its time for another reason is told so at once", async () => {
    const rig = new Rig(() => refused("Expired"));
    expect(await rig.take()).toEqual({ ok: true, value: refused("Expired") });
    expect(rig.asked).toHaveLength(1);
  });

  it.each(["Connection", "NoAnswer", "Timeout"] as const)(
    "whose answer was lost (%s) is fetched with the same invocation",
    async (code) => {
      const rig = new Rig((_, times) => (times < 6 ? new ConnectorError(sent(code, "lost")) : DONE));
      expect(await rig.take()).toEqual({ ok: true, value: DONE });
      expect(new Set(rig.asked).size).toBe(1);
    },
  );

  it("of a connector that stays away ends with why, after its patience", async () => {
    const gone = new ConnectorError(unsent("Connection", "none"));
    const rig = new Rig(() => gone);
    expect(await rig.take()).toEqual({ ok: false, fault: gone });
    expect(rig.nowMs - START_MS).toBeLessThan(SETTINGS.patienceMs + 5000);
  });

  it.each([
    ["whose answer was lost", () => new ConnectorError(sent("NoAnswer", "lost"))],
    ["that was running", () => refused("InFlight")],
  ])("%s before its connector stayed away may have run, and is told so", async (_, first) => {
    const rig = new Rig((_invocation, times) =>
      times === 1 ? first() : new ConnectorError(unsent("Connection", "none")),
    );
    const taken = await rig.take();
    if (taken.ok || taken.fault === "aborted") throw new Error("it has an error");
    expect(taken.fault).toMatchObject({ code: "Connection", message: "Connection: none", mayHaveRun: true });
    expect(errorText(taken.fault)).toContain("the model may have run");
  });

  it("that was answered by somebody else is not asked for again", async () => {
    const forged = new ConnectorError(sent("Authentication", "forged"));
    const rig = new Rig(() => forged);
    expect(await rig.take()).toEqual({ ok: false, fault: forged });
    expect(rig.asked).toHaveLength(1);
  });

  it("that nobody waits for any more is not asked for again", async () => {
    const rig: Rig = new Rig(() => {
      rig.stop.abort(new Error("left"));
      return new Error("left");
    });
    expect(await rig.take()).toEqual({ ok: false, fault: "aborted" });
    const during: Rig = new Rig((_, times) => {
      if (times === 3) during.stop.abort();
      return refused("InFlight");
    });
    expect(await during.take()).toEqual({ ok: true, value: refused("InFlight") });
    expect(during.asked).toHaveLength(3);
  });
});
