import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Origin, otlpText, type Span } from "../../../src/roles/traces/otlp.ts";
import { SPAN } from "./span.ts";

// The encoder, held against OpenTelemetry's own library (fixtures/otlp/README.md).

const FIXTURES = new URL("../../../fixtures/otlp/", import.meta.url);

function fixture(name: string): unknown {
  return JSON.parse(readFileSync(new URL(name, FIXTURES), "utf8"));
}

const ORIGIN: Origin = { resource: {}, scope: { name: "s", version: "1" } };

describe("spans as OTLP's JSON", () => {
  it("mean what OpenTelemetry's library makes of the same spans", () => {
    const { resource, scope, spans } = fixture("spans.json") as Origin & { readonly spans: readonly Span[] };
    expect(JSON.parse(otlpText({ resource, scope }, spans))).toEqual(fixture("request.json"));
  });

  it("have nanoseconds as exact decimal strings", () => {
    const text = otlpText(ORIGIN, [{ ...SPAN, startMs: 1_796_056_684_684, endMs: 1_796_056_684_685 }]);
    expect(text).toContain(
      '"startTimeUnixNano":"1796056684684000000","endTimeUnixNano":"1796056684685000000"',
    );
  });

  it("leave out what is undefined, and stay well-formed whatever a name holds", () => {
    const text = otlpText(ORIGIN, [{ ...SPAN, attributes: { gone: undefined, half: "\ud800", nul: "\0" } }]);
    expect(text).not.toContain("gone");
    expect(text.isWellFormed()).toBe(true);
    expect(text).toContain("\\u0000");
  });
});
