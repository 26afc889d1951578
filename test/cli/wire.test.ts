import { readFileSync } from "node:fs";
import { PassThrough, Readable, Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { LINE_BYTES_MAX, runWire, type WireMode } from "../../src/cli/wire.ts";

/** An output that keeps what it gets, at the pace of one line in a turn of the event loop. */
class Kept extends Writable {
  text = "";
  held = 0;

  constructor(highWaterMark: number) {
    super({ highWaterMark });
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.held = Math.max(this.held, this.writableLength);
    this.text += chunk.toString();
    setImmediate(done);
  }
}

async function run(
  mode: WireMode,
  input: Iterable<string | Buffer>,
): Promise<{ status: number; lines: string[] }> {
  const written: string[] = [];
  const output = new Writable({
    decodeStrings: false,
    write: (chunk: string, _encoding, done) => {
      written.push(chunk);
      done();
    },
  });
  const status = await runWire(mode, Readable.from(input, { objectMode: false }), output);
  return { status, lines: written.join("").split("\n").slice(0, -1) };
}

function fixture(file: string): string {
  return readFileSync(new URL(`../../fixtures/wire/${file}`, import.meta.url), "utf8");
}

function labels(line: string): string {
  const { name, outcome, detail } = JSON.parse(line) as Record<string, unknown>;
  return JSON.stringify([name, outcome, detail]);
}

const FRAME = "0000000131"; // the body is the number 1
const BAD = { outcome: "error", reencoded_hex: null };

describe("callgate wire", () => {
  it.each(["decode", "encode"] as const)("%s answers every line of the vectors, in order", async (mode) => {
    const text = fixture(`${mode}.jsonl`);
    const { status, lines } = await run(mode, [text]);
    const told = text.trimEnd().split("\n");
    expect([status, lines.length]).toEqual([0, told.length]);
    expect(lines.filter((line, i) => labels(line) !== labels(told[i]!))).toEqual([]);
  });

  it("writes compact JSON with its members in a fixed order", async () => {
    const decoded = await run("decode", [`{"hex":"${FRAME}","name":"a"}`]);
    expect(decoded.lines).toEqual(['{"name":"a","outcome":"json","detail":null,"reencoded_hex":null}']);
    const encoded = await run("encode", ['{"envelope":7}\n']);
    expect(encoded.lines).toEqual(['{"name":null,"outcome":"json","detail":null,"hex":null}']);
  });

  it("takes lines in any pieces, CRLF, empty lines and a last line without an end", async () => {
    const text = `\r\n{"name":1,"hex":""}\r\n\n{"name":"é","hex":"00"}\r\n{"name":3,"hex":"00000000"}`;
    const whole = await run("decode", [text]);
    expect(whole.status).toBe(0);
    expect(whole.lines.map((line) => JSON.parse(line).outcome)).toEqual(["closed", "io", "empty"]);
    expect(
      await run(
        "decode",
        [...Buffer.from(text)].map((byte) => Buffer.of(byte)),
      ),
    ).toEqual(whole);
  });

  it.each([
    ["no JSON", '{"hex":', "not a JSON object"],
    ["an array", "[]", "not a JSON object"],
    ["nothing to decode", "{}", '"hex" or "recipe" is missing'],
    ["half a byte", '{"hex":"000"}', '"hex" must be a string of hex digit pairs'],
    ["no hex", '{"hex":"zz"}', '"hex" must be a string of hex digit pairs'],
    [
      "a recipe of too many bytes",
      recipe(16_777_217),
      '"fill_count" must be an integer from 0, for at most 16 MiB',
    ],
  ])("answers a line that is %s, and goes on", async (_, line, sentence) => {
    const { status, lines } = await run("decode", ["\n", `${line}\n`, '{"hex":""}\n']);
    expect(status).toBe(1);
    expect(JSON.parse(lines[0]!)).toEqual({ name: null, ...BAD, detail: `line 2: ${sentence}` });
    expect(JSON.parse(lines[1]!)).toMatchObject({ outcome: "closed" });
  });

  it("answers a line that is not UTF-8, and one that is over the bound", async () => {
    const long = Array.from({ length: 17 }, () => Buffer.alloc(1_048_576, " "));
    const ends = Buffer.from("\n");
    const { status, lines } = await run("decode", [Buffer.from([0xff]), ends, ...long, ends, '{"hex":""}']);
    expect(status).toBe(1);
    expect(lines.map((line) => JSON.parse(line).detail)).toEqual([
      "line 1: not UTF-8",
      "line 2: longer than 16 MiB",
      null,
    ]);
  });

  it("takes a line of exactly the bound, with CRLF", async () => {
    const row = '{"hex":""}';
    const { status } = await run("decode", [Buffer.alloc(LINE_BYTES_MAX - row.length, " "), `${row}\r\n`]);
    expect(status).toBe(0);
  });

  it("keeps the pace of a slow output", async () => {
    const output = new Kept(100);
    const input = Readable.from(
      Array.from({ length: 500 }, () => '{"hex":""}\n'),
      { objectMode: false },
    );
    await runWire("decode", input, output);
    expect(output.text.split("\n")).toHaveLength(501);
    expect(output.held).toBeLessThan(300);
  });

  it.each([
    ["EPIPE", 0],
    ["ENOSPC", 2],
  ])("ends with an output that fails with %s, and reads no more", async (code, status) => {
    const output = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error("write"), { code })),
    });
    const input = new PassThrough();
    input.write('{"hex":""}\n'.repeat(10_000));
    expect(await runWire("decode", input, output)).toBe(status);
    expect(input.destroyed).toBe(true);
  });

  it("ends with an output that is closed already", async () => {
    const output = new PassThrough();
    output.destroy();
    expect(await runWire("decode", Readable.from(['{"hex":""}\n']), output)).toBe(2);
  });

  it("answers an input that can't be read to its end", async () => {
    const output = new Kept(16_384);
    const input = new PassThrough();
    input.write('{"hex":""}\n{"he');
    setImmediate(() => input.destroy(new Error("swordfish")));
    expect(await runWire("encode", input, output)).toBe(1);
    const last = output.text.trimEnd().split("\n").at(-1)!;
    expect(JSON.parse(last)).toEqual({
      name: null,
      outcome: "error",
      detail: "line 2: the input can't be read",
      hex: null,
    });
  });
});

function recipe(count: number): string {
  return JSON.stringify({ recipe: { prefix_hex: "", fill_hex: "00", fill_count: count, suffix_hex: "" } });
}
