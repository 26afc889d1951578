import { expect, it } from "vitest";
import { boundedLine, LOG_LINE_BYTES_MAX } from "../../src/host/log_line.ts";

const line = (fields: object) => `${JSON.stringify({ level: "info", time: "t", event: "e", ...fields })}\n`;

it("a line that fits stays the bytes it is", () => {
  const usual = line({ roles: ["a", "b"] });
  expect(boundedLine(usual)).toBe(usual);
});

it("a line that the journal would cut in two is one line of JSON still, and says how long it was", () => {
  const long = line({
    roles: Array.from({ length: 2000 }, (_, i) => `role-${i}-${"é".repeat(20)}`),
    why: "x".repeat(9000),
  });
  const short = boundedLine(long);
  expect(Buffer.byteLength(short)).toBeLessThanOrEqual(LOG_LINE_BYTES_MAX);
  expect(short.endsWith("}\n")).toBe(true);
  const told = JSON.parse(short) as Record<string, unknown>;
  expect(told).toMatchObject({ level: "info", time: "t", event: "e", cut_bytes: Buffer.byteLength(long) });
  expect(told["roles"]).toHaveLength(20);
});

it("one whose shortened members are too long keeps what it is called by", () => {
  const members = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`member${i}`, "x".repeat(1000)]));
  expect(Object.keys(JSON.parse(boundedLine(line(members))) as object)).toEqual([
    "level",
    "time",
    "event",
    "cut_bytes",
  ]);
});
