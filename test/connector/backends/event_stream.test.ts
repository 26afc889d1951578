import { describe, expect, it } from "vitest";
import { EventStreamReader, type StreamMessage } from "../../../src/connector/backends/event_stream.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

function readAll(pieces: readonly Uint8Array[], charsMax = 1000): StreamMessage[] {
  const reader = new EventStreamReader(charsMax);
  return pieces.flatMap((piece) => {
    const { messages, failure } = reader.push(piece);
    expect(failure).toBeUndefined();
    return [...messages];
  });
}

const TEXT =
  "\ufeff: note\nevent: a\ndata: one\ndata:two\nid: 7\n\n\ndata\n\nevent: lost\n\nevent: b\ndata: ß🙂\n\ndata: cut";
const MESSAGES = [
  { event: "a", data: "one\ntwo" },
  { event: "", data: "" },
  { event: "b", data: "ß🙂" },
];

describe("an event stream", () => {
  it("is read the same whole, byte by byte, and with every kind of line end", () => {
    for (const end of ["\n", "\r\n", "\r"]) {
      const all = bytes(TEXT.replaceAll("\n", end));
      expect(readAll([all])).toEqual(MESSAGES);
      expect(readAll([...all].map((_, at) => all.subarray(at, at + 1)))).toEqual(MESSAGES);
    }
  });

  it("is read the same wherever it is cut in two", () => {
    const all = bytes(TEXT.replaceAll("\n", "\r\n"));
    for (let cut = 0; cut <= all.length; cut++) {
      expect(readAll([all.subarray(0, cut), all.subarray(cut)])).toEqual(MESSAGES);
    }
  });

  it("ends where a message is larger than allowed, in one line or in many, told or not", () => {
    for (const text of ["data: ", "data: x\n", ": never told\n", "x"]) {
      const reader = new EventStreamReader(100);
      let failure = reader.push(bytes("data: first\n\n")).failure;
      expect(failure).toBeUndefined();
      for (let times = 0; times < 200; times++) failure ??= reader.push(bytes(text)).failure;
      expect(failure?.failureKind).toBe("StreamInvalid");
    }
  });

  it("gives what came before the bytes that are no UTF-8", () => {
    const reader = new EventStreamReader(100);
    expect(reader.push(bytes("data: first\n\n")).messages).toHaveLength(1);
    expect(reader.push(new Uint8Array([0x64, 0xff])).failure?.failureKind).toBe("StreamInvalid");
  });
});
