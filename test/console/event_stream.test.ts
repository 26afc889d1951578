import { describe, expect, it } from "vitest";
import { EventReader, type ServerEvent } from "../../src/roles/console/page/event_stream.ts";

function read(...pieces: readonly string[]): readonly ServerEvent[] {
  const reader = new EventReader();
  return pieces.flatMap((piece) => reader.take(piece));
}

const STREAM =
  ': hello\r\n\r\nevent: status\r\ndata: {"a":1}\r\n\r\nevent:two\ndata:one\ndata: \ndata:  three\n\ndata\n\n';
const EVENTS = [
  { event: "status", data: '{"a":1}' },
  { event: "two", data: "one\n\n three" },
  { event: "message", data: "" },
];

describe("the reader of server-sent events", () => {
  it("gives the same events wherever the text is cut", () => {
    expect(read(STREAM)).toEqual(EVENTS);
    expect(read(...STREAM)).toEqual(EVENTS);
    for (let at = 0; at <= STREAM.length; at += 1)
      expect(read(STREAM.slice(0, at), STREAM.slice(at))).toEqual(EVENTS);
  });

  it("takes each of the three line ends", () => {
    for (const end of ["\n", "\r\n", "\r"]) {
      const text = ["event: a", "data: 1", "", "data: 2", "", ""].join(end);
      expect(read(`${text}`, ":\n")).toEqual([
        { event: "a", data: "1" },
        { event: "message", data: "2" },
      ]);
    }
  });

  it("gives nothing for comments, names alone, other fields, and an event that has not ended", () => {
    expect(read(": heartbeat\n\n", "event: lonely\n\n", "id: 1\nretry: 5\n\n", "data: cut")).toEqual([]);
  });

  it("gives up on an event that does not end, on one line or many", () => {
    const piece = "x".repeat(1_000_000);
    expect(() => read("data: ", ...Array.from({ length: 20 }, () => piece))).toThrow("without an end");
    expect(() => read(...Array.from({ length: 20 }, () => `data: ${piece}\n`))).toThrow("without an end");
  });
});
