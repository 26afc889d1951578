import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  type DecodeAnswer,
  decodeRow,
  type EncodeAnswer,
  encodeRow,
  parseLine,
  rowBytes,
} from "../../src/cli/wire.ts";

function rows(file: string) {
  const text = readFileSync(new URL(`../../fixtures/wire/${file}`, import.meta.url), "utf8");
  return text.trimEnd().split("\n").map(parseLine);
}

describe("the golden vectors of the wire", () => {
  it("decode and re-encode as the reference does", () => {
    const wrong: unknown[] = [];
    for (const row of rows("decode.jsonl")) {
      const answer: DecodeAnswer = decodeRow(row);
      const long = row["reencoded_recipe"]
        ? rowBytes(row, "none", "reencoded_recipe").toString("hex")
        : row["reencoded_hex"];
      if (
        answer.outcome !== row["outcome"] ||
        answer.detail !== row["detail"] ||
        answer.reencoded_hex !== long
      ) {
        wrong.push(row["name"]);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("encode as the reference does", () => {
    const wrong: unknown[] = [];
    for (const row of rows("encode.jsonl")) {
      const answer: EncodeAnswer = encodeRow(row);
      const hex = row["outcome"] === "ok" ? rowBytes(row).toString("hex") : null;
      if (answer.outcome !== row["outcome"] || answer.detail !== row["detail"] || answer.hex !== hex)
        wrong.push(row["name"]);
    }
    expect(wrong).toEqual([]);
  });
});
