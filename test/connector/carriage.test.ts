import { decode as laxDecode, encode as laxEncode } from "@msgpack/msgpack";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeRequestFrame,
  decodeResponseFrame,
  encodeRequestFrame,
  encodeResponseFrame,
  statusOf,
} from "../../src/connector/carriage.ts";
import { RESULT } from "./golden_values.ts";

const ENVELOPE = Buffer.from([0, 1, 2, 253, 254]); // AAEC/f4=
const REQUEST = encodeRequestFrame("request-0001", ENVELOPE);
const RESPONSE = encodeResponseFrame("request-0001", "accepted", ENVELOPE);

/** The request with members changed, as another implementation writes it. */
function requestWith(changed: Readonly<Record<string, unknown>>): Uint8Array {
  return laxEncode({ ...(laxDecode(REQUEST) as object), ...changed });
}

const ids = fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 });
const envelopes = fc.uint8Array({ minLength: 1, maxLength: 3000 });

describe("a carriage", () => {
  it("of a request says what the contract lists, in its order", () => {
    expect(Object.entries(laxDecode(REQUEST) as object)).toEqual([
      ["schemaVersion", "cultnet.operation_request.v0"],
      ["messageId", "request-0001"],
      ["serviceId", "gamecult.model.connector"],
      ["operation", "invoke"],
      ["payloadSchema", "gamecult.model.transport_envelope.v3"],
      ["payloadEncoding", "messagepack-base64"],
      ["payload", "AAEC/f4="],
    ]);
  });

  it("of a response has the status before the payload", () => {
    expect(Object.keys(laxDecode(RESPONSE) as object)).toEqual([
      "schemaVersion",
      "messageId",
      "serviceId",
      "operation",
      "status",
      "payloadSchema",
      "payloadEncoding",
      "payload",
    ]);
  });

  it("gives back the id, the status and the envelope that it was made of", () => {
    fc.assert(
      fc.property(ids, envelopes, fc.constantFrom("accepted", "rejected"), (messageId, bytes, status) => {
        const envelope = Buffer.from(bytes);
        expect(decodeRequestFrame(encodeRequestFrame(messageId, envelope))).toEqual({ messageId, envelope });
        const response = encodeResponseFrame(messageId, status, envelope);
        expect(decodeResponseFrame(response)).toEqual({ messageId, status, envelope });
      }),
    );
  });

  it("of one direction is none of the other", () => {
    expect(decodeResponseFrame(REQUEST)).toBeUndefined();
    expect(decodeRequestFrame(RESPONSE)).toBeUndefined();
  });

  it("that is cut anywhere, or has a byte more, is none", () => {
    for (let length = 0; length < REQUEST.length; length++)
      expect(decodeRequestFrame(REQUEST.subarray(0, length))).toBeUndefined();
    expect(decodeRequestFrame(Buffer.concat([REQUEST, Buffer.alloc(1)]))).toBeUndefined();
  });

  it("that is accepted with a bit changed is the canonical one for what it then says", () => {
    let accepted = 0;
    for (let bit = 0; bit < RESPONSE.length * 8; bit++) {
      const changed = Buffer.from(RESPONSE);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      const carried = decodeResponseFrame(changed);
      if (carried === undefined) continue;
      accepted += 1;
      const { messageId, status, envelope } = carried;
      expect(encodeResponseFrame(messageId, status, envelope).equals(changed)).toBe(true);
    }
    expect(accepted).toBeGreaterThan(20); // bits of the id and of the payload
  });

  it.each([
    ["no padding", "AAEC/f4"],
    ["too much padding", "AAEC/f4=="],
    ["padding that stands alone", "AAEC===="],
    ["pad bits that are not zero", "AAEC/f5="],
    ["the alphabet for addresses", "AAEC_f4="],
    ["a line end within", "AAEC\n/f4="],
    ["a line end behind", "AAEC/f4=\n"],
    ["a space before", " AAEC/f4="],
    ["a character that is none of it", "AAEC/f4é"],
    ["text behind its padding", "AA==AAEC"],
    ["a single character", "A"],
    ["no byte", "===="],
    ["nothing", ""],
  ])("whose payload has %s is none", (_, payload) => {
    expect(decodeRequestFrame(requestWith({ payload }))).toBeUndefined();
  });

  it("is none with a payload in binary, a member more, or another service", () => {
    expect(decodeRequestFrame(requestWith({}))).toBeDefined();
    expect(decodeRequestFrame(requestWith({ payload: ENVELOPE }))).toBeUndefined();
    expect(decodeRequestFrame(requestWith({ sourceRuntimeId: "x" }))).toBeUndefined();
    expect(decodeRequestFrame(requestWith({ serviceId: "gamecult.model.other" }))).toBeUndefined();
    expect(decodeRequestFrame(requestWith({ messageId: "" }))).toBeUndefined();
  });

  it("is never made of an id or an envelope that it can't have", () => {
    expect(() => encodeRequestFrame("", ENVELOPE)).toThrow(TypeError);
    expect(() => encodeRequestFrame("\ud800", ENVELOPE)).toThrow(TypeError);
    expect(() => encodeResponseFrame("x", "accepted", Buffer.alloc(0))).toThrow(TypeError);
  });

  it("holds the envelope of a view without what lies around it", () => {
    const around = Uint8Array.from([9, 9, ...ENVELOPE, 9]);
    const frame = encodeRequestFrame("request-0001", around.subarray(2, 2 + ENVELOPE.length));
    expect(frame.equals(REQUEST)).toBe(true);
  });

  it("tells a turn that failed as accepted and a refusal as rejected", () => {
    expect(statusOf(RESULT.disposition)).toBe("accepted");
    expect(statusOf({ Refused: "Capacity" })).toBe("rejected");
  });
});
