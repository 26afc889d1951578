// Whatever a provider sends, a turn is one that the kit accepts: nothing is thrown, and events and outcome encode.

import { afterAll, beforeAll, expect, it } from "vitest";
import type { ProviderTurn } from "../../../src/connector/backend.ts";
import { TRANSPORT_RESULT } from "../../../src/connector/documents.ts";
import { encode } from "../../../src/connector/encode.ts";
import { type Random, randomOf } from "../../seeded.ts";
import { backend, invocation, KINDS, streams, TestProvider, take } from "./rig.ts";
import { STREAMS } from "./streams.ts";

const TIMES = 300;
const SEED = 20261201;

const provider = new TestProvider();
beforeAll(() => provider.start());
afterAll(() => provider.stop());

/** As the kit does it: numbered events and a receipt around the outcome. */
function isValid({ events, outcome }: ProviderTurn): boolean {
  const { caller_runtime_id, native_request_sha256, provider_request_sha256, request } = invocation();
  const { request_id, model } = request;
  const receipt = {
    schema_id: "gamecult.model.transport_receipt.v3",
    request_id,
    caller_runtime_id,
    native_request_sha256,
    provider_request_sha256,
    model,
    transport: "test",
    outcome,
  };
  const numbered = events.map((payload, sequence) => ({ sequence, payload }));
  const result = {
    schema_id: "gamecult.model.transport_result.v3",
    request_id,
    caller_runtime_id,
    disposition: { Transported: { events: numbered, receipt } },
  };
  return encode(TRANSPORT_RESULT, result) !== undefined;
}

const ODD: readonly unknown[] = [
  null,
  true,
  -1,
  2 ** 60,
  1e308,
  "",
  " ",
  "\ud800",
  "x".repeat(300),
  "a\u0000b",
  "__proto__",
  [],
  {},
  [null],
  { type: "text" },
  "tool_use",
];

const oneOf = <T>(from: readonly T[], random: Random): T => from[random(from.length)] as T;

/** One value somewhere in it becomes another, or goes. */
function changed(value: unknown, random: Random): unknown {
  if (typeof value !== "object" || value === null || random(4) === 0) return oneOf(ODD, random);
  const entries = Object.entries(value);
  if (entries.length === 0) return oneOf(ODD, random);
  const [name, old] = oneOf(entries, random);
  const gone = random(8) === 0;
  const others = entries.flatMap(([one, kept]) => {
    if (one !== name) return [[one, kept] as const];
    return gone ? [] : [[one, changed(old, random)] as const];
  });
  return Array.isArray(value) ? others.map(([, one]) => one) : Object.fromEntries(others);
}

function mutated(stream: string, random: Random): string {
  const messages = stream.split("\n\n");
  for (let times = 1 + random(3); times > 0; times--) {
    const at = random(messages.length);
    const data = /^((?:event: .*\n)?data: )(\{.*\})$/.exec(messages[at] ?? "");
    const way = random(6);
    if (way === 0) messages.splice(at, 1);
    else if (way === 1) messages.splice(at, 0, oneOf(messages, random));
    else if (way === 2) messages[at] = (messages[at] ?? "").slice(random(40));
    else if (data !== null)
      messages[at] = data[1] + JSON.stringify(changed(JSON.parse(data[2] ?? ""), random));
  }
  return messages.join("\n\n");
}

it.each(KINDS)(
  "a stream of %s with anything changed in it gives a turn that the kit accepts",
  async (kind) => {
    const random = randomOf(SEED);
    const one = await backend({ kind, baseUrl: provider.baseUrl(kind) });
    const outcomes = new Map<string, number>();
    for (let times = 0; times < TIMES; times++) {
      const stream = mutated(STREAMS[kind], random);
      provider.answers = [streams(stream)];
      const turn = await take(one);
      if (!isValid(turn)) expect.fail(`${stream}\n${JSON.stringify(turn)}`);
      const outcome = Object.keys(turn.outcome)[0] ?? "";
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
    // Some do no harm, and some do: else nothing would have been tried.
    expect([...outcomes.keys()].sort()).toEqual(["Completed", "Failed"]);
  },
);
