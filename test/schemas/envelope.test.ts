import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Json, parseJson } from "../../src/base/json.ts";
import { parseRow, type Row, rowBytes } from "../../src/cli/wire_rows.ts";
import { compileSchema } from "../../src/policy/schema_compile.ts";

function read(file: string): string {
  return readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
}

/** As the strict parser has it; undefined where the text is no JSON, or a member is given twice. */
function strict(text: string): Json | undefined {
  const parsed = parseJson(text, { depth: 512, nodes: 2_000_000, integerDigits: 400 });
  return parsed.ok ? parsed.value : undefined;
}

const schema = await compileSchema(strict(read("schemas/envelope.schema.json")) ?? null, "object");
const check = (body: Json) => (schema.ok ? schema.value.check(body) : { message: "the schema is refused" });

/** The body of the first frame, as text; undefined where it is not all there or no UTF-8. */
function bodyText(row: Row): string | undefined {
  const stream = rowBytes(row);
  if (stream.length < 5) return undefined;
  const body = stream.subarray(4, 4 + stream.readUInt32BE(0));
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
}

const rows = read("fixtures/wire/decode.jsonl").trimEnd().split("\n").map(parseRow);

/** The bodies of an outcome that a schema can be asked about. */
function bodiesOf(outcome: string) {
  return rows
    .filter((row) => row["outcome"] === outcome)
    .flatMap((row) => {
      const text = bodyText(row);
      const value = text === undefined ? undefined : strict(text);
      return text === undefined || value === undefined ? [] : [{ name: row["name"], text, value }];
    });
}

/** A number that is in range and not written as the wire wants it: gone once the text is parsed. */
const SPELLING = /[:,[]\s*(?:-0|-?[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+))\s*[,}\]]/;

describe("schemas/envelope.schema.json", () => {
  it("compiles, and is closed at the top", () => {
    expect(schema).toMatchObject({ ok: true, value: { closed: true } });
  });

  it("admits every body that decodes", () => {
    const texts = rows.filter((row) => row["outcome"] === "ok");
    const bodies = bodiesOf("ok");
    expect(bodies.length).toBe(texts.length);
    expect(bodies.filter(({ value }) => check(value) !== undefined).map(({ name }) => name)).toEqual([]);
  });

  it("refuses every body of another version", () => {
    const bodies = bodiesOf("bad_version");
    expect(bodies.length).toBeGreaterThan(5);
    expect(bodies.filter(({ value }) => check(value) === undefined).map(({ name }) => name)).toEqual([]);
  });

  it("refuses every other body that is JSON, but for numbers spelled in another way", () => {
    const bodies = bodiesOf("json");
    expect(bodies.length).toBeGreaterThan(2000);
    const admitted = bodies.filter(({ value }) => check(value) === undefined);
    expect(admitted.filter(({ text }) => !SPELLING.test(text)).map(({ name }) => name)).toEqual([]);
    expect(admitted.length).toBeGreaterThan(0);
  });

  it("tells the last u64 from the number behind it", () => {
    const body = (id: string) =>
      strict(
        `{"v":1,"id":${id},"final":true,"msg":{"kind":"error","body":{"code":"internal","detail":""}}}`,
      ) ?? null;
    expect(check(body("18446744073709551615"))).toBeUndefined();
    expect(check(body("18446744073709551616"))).toBeDefined();
  });
});
