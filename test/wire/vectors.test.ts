import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseRow, rowBytes } from "../../src/cli/wire_rows.ts";
import { FrameFault } from "../../src/wire/fault.ts";
import { FrameReader } from "../../src/wire/frame.ts";
import { slowDecode } from "./slow_decoder.ts";
import { WIRE_VECTOR_FILES } from "./vector_rows.ts";

function rows(file: string) {
  const text = readFileSync(new URL(`../../fixtures/wire/${file}`, import.meta.url), "utf8");
  return text.trimEnd().split("\n").map(parseRow);
}

describe("the golden vectors of the wire", () => {
  it.each(Object.entries(WIRE_VECTOR_FILES))(
    "%s: every row comes out as the reference has it",
    (file, isMet) => {
      const wrong = rows(file).filter((row) => !isMet(row));
      expect(wrong.map((row) => row["name"])).toEqual([]);
    },
  );

  it("give the slow decoder of the fuzzer the reference's verdicts", () => {
    const wrong = rows("decode.jsonl").filter((row) => {
      const stream = rowBytes(row);
      if (stream.length < 5 || row["outcome"] === "io" || row["outcome"] === "too_large") return false;
      if (row["outcome"] === "empty") return false;
      const verdict = slowDecode(stream.subarray(4, 4 + stream.readUInt32BE(0)));
      return (typeof verdict === "string" ? verdict : "ok") !== row["outcome"];
    });
    expect(wrong.map((row) => row["name"])).toEqual([]);
  });

  it("read byte by byte give the outcomes that they have in one piece", () => {
    const wrong = rows("decode.jsonl").filter((row) => {
      const stream = rowBytes(row);
      return stream.length < 4096 && frameOutcome(stream) !== framing(String(row["outcome"]));
    });
    expect(wrong.map((row) => row["name"])).toEqual([]);
  });
});

/** What the frame around a body that is read, valid or not, comes to. */
function framing(outcome: string): string {
  return outcome === "ok" || outcome === "json" || outcome === "bad_version" ? "body" : outcome;
}

function frameOutcome(stream: Buffer): string {
  const reader = new FrameReader();
  try {
    for (const byte of stream) {
      reader.push(Buffer.of(byte));
      if (reader.next() !== undefined) return "body";
    }
    return reader.end().outcome;
  } catch (error) {
    return error instanceof FrameFault ? error.outcome : "thrown";
  }
}
