import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { CallStates, STATE_KEY_BYTES } from "../../../../src/roles/mcp/serve/request_state.ts";

const key = randomBytes(STATE_KEY_BYTES);
let nowMs = 1_000;
const settings = { key, session: "mcp-a", random: randomBytes, nowMs: () => nowMs };

describe("what a client carries between two rounds", () => {
  it("names the call again, for the same call and session", () => {
    const states = new CallStates(settings);
    const call = 18_446_744_073_709_551_615n;
    expect(new CallStates(settings).open(states.seal({ call, round: 3 }, "k"), "k")).toEqual({
      call,
      round: 3,
    });
    expect(states.seal({ call, round: 3 }, "k")).not.toContain(call.toString(16));
  });

  it("opens for no other call, session, key or time, and changed in no bit", () => {
    const states = new CallStates(settings);
    const sealed = states.seal({ call: 7n, round: 1 }, "k");
    expect(states.open(sealed, "l")).toBeUndefined();
    expect(new CallStates({ ...settings, session: "mcp-b" }).open(sealed, "k")).toBeUndefined();
    expect(
      new CallStates({ ...settings, key: randomBytes(STATE_KEY_BYTES) }).open(sealed, "k"),
    ).toBeUndefined();
    const bytes = Buffer.from(sealed, "base64url");
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const other = Buffer.from(bytes);
      other[bit >> 3] = other[bit >> 3]! ^ (1 << (bit & 7));
      expect(states.open(other.toString("base64url"), "k")).toBeUndefined();
    }
    for (const text of [
      "",
      "x",
      sealed.slice(1),
      `${sealed}A`,
      "A".repeat(sealed.length),
      "ü".repeat(sealed.length),
    ])
      expect(states.open(text, "k")).toBeUndefined();
    nowMs += 86_400_000;
    expect(states.open(sealed, "k")).toBeUndefined();
  });
});
