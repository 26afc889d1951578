import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TransportEnvelope } from "../../src/connector/contract.ts";
import { decode } from "../../src/connector/decode.ts";
import { ENVELOPE_HEAD, TRANSPORT_ENVELOPE } from "../../src/connector/documents.ts";
import { encode } from "../../src/connector/encode.ts";
import { open, type Seal, seal } from "../../src/connector/envelope.ts";
import { connectionKey, secretFromFileBytes, secretFromFileText } from "../../src/connector/secret.ts";

const SECRET = "a-connection-secret-0123456789abcdef";
const key = keyOf(SECRET);
const PLAINTEXT = Buffer.from("what nobody else may read");
const SEAL: Seal = {
  key,
  caller: "caller-alpha",
  requestId: "request-0001",
  kind: "Invocation",
  nonce: Buffer.alloc(12, 9),
};

function keyOf(secret: string): Buffer {
  const made = connectionKey(secret);
  if (!made.ok) throw new Error(made.fault);
  return made.value;
}

function opened(envelope: Uint8Array, by: Uint8Array = key): Buffer | undefined {
  const decoded = decode(TRANSPORT_ENVELOPE, envelope);
  return decoded === undefined ? undefined : open(decoded, by);
}

function envelopeOf(given: Seal = SEAL): TransportEnvelope {
  const decoded = decode(TRANSPORT_ENVELOPE, seal(given, PLAINTEXT));
  if (decoded === undefined) throw new Error("no envelope was sealed");
  return decoded;
}

describe("an envelope", () => {
  it("is bound by the 128 bytes that the contract prints", () => {
    const { nonce: _, ciphertext: __, ...head } = envelopeOf();
    expect(encode(ENVELOPE_HEAD, head)?.toString("hex")).toBe(
      "84a9736368656d615f6964d92467616d6563756c742e6d6f64656c2e7472616e73706f72745f656e76656c6f70652e" +
        "7633b163616c6c65725f72756e74696d655f6964ac63616c6c65722d616c706861aa726571756573745f6964ac7265" +
        "71756573742d30303031ac6d6573736167655f6b696e64aa496e766f636174696f6e",
    );
  });

  it("opens to what was sealed, for any ids, kind, nonce and content", () => {
    const seals = fc.record({
      caller: fc.stringMatching(/^[!-~é東]{1,80}$/),
      requestId: fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 }),
      kind: fc.constantFrom("Invocation" as const, "Result" as const),
      nonce: fc.uint8Array({ minLength: 12, maxLength: 12 }),
    });
    fc.assert(
      fc.property(seals, fc.uint8Array({ minLength: 1, maxLength: 70_000 }), (given, plaintext) => {
        const envelope = seal({ key, ...given }, plaintext);
        expect(opened(envelope)?.equals(plaintext)).toBe(true);
      }),
    );
  });

  it("does not open with any one bit of it changed", () => {
    const envelope = seal(SEAL, PLAINTEXT);
    const openedWith: number[] = [];
    for (let bit = 0; bit < envelope.length * 8; bit++) {
      const changed = Buffer.from(envelope);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      if (opened(changed) !== undefined) openedWith.push(bit);
    }
    expect(opened(envelope)?.equals(PLAINTEXT)).toBe(true);
    expect(openedWith).toEqual([]);
  });

  it("does not open with any one bit of the key changed", () => {
    const envelope = envelopeOf();
    for (let bit = 0; bit < key.length * 8; bit++) {
      const other = Buffer.from(key);
      other[bit >> 3]! ^= 1 << (bit & 7);
      expect(open(envelope, other)).toBeUndefined();
    }
  });

  it.each([
    { to: "another caller", change: { caller_runtime_id: "caller-beta" } },
    { to: "another request", change: { request_id: "request-0002" } },
    { to: "the other direction", change: { message_kind: "Result" } },
    { to: "an id that no envelope can have", change: { request_id: "" } },
  ] as const)("that was moved to $to does not open", ({ change }) => {
    expect(open({ ...envelopeOf(), ...change }, key)).toBeUndefined();
  });

  it("whose ciphertext is cut or lengthened does not open", () => {
    const envelope = envelopeOf();
    for (let length = 0; length < envelope.ciphertext.length; length++)
      expect(open({ ...envelope, ciphertext: envelope.ciphertext.subarray(0, length) }, key)).toBeUndefined();
    const longer = Buffer.concat([envelope.ciphertext, Buffer.alloc(1)]);
    expect(open({ ...envelope, ciphertext: longer }, key)).toBeUndefined();
  });

  it.each([
    { of: "no content", given: SEAL, plaintext: Buffer.alloc(0) },
    { of: "a caller that is no id", given: { ...SEAL, caller: " x" }, plaintext: PLAINTEXT },
    { of: "an empty request id", given: { ...SEAL, requestId: "" }, plaintext: PLAINTEXT },
    { of: "half a character", given: { ...SEAL, requestId: "\ud800" }, plaintext: PLAINTEXT },
    { of: "a nonce of another length", given: { ...SEAL, nonce: Buffer.alloc(16) }, plaintext: PLAINTEXT },
  ])("is never made of $of", ({ given, plaintext }) => {
    expect(() => seal(given, plaintext)).toThrow(TypeError);
  });
});

describe("a connection secret", () => {
  it("gives its SHA-256 as the key", () => {
    expect(keyOf("s".repeat(32)).toString("hex")).toBe(
      "8fd6a6a78f5857d7ba1cfe9033bffeec86da2ba6a4bd60a6f833209d9d3e390d",
    );
  });

  it.each([
    ["31 bytes", "s".repeat(31), "31 bytes"],
    ["1025 bytes", "s".repeat(1025), "1025 bytes"],
    ["15 characters of 2 bytes", "é".repeat(15), "30 bytes"],
    ["a control character", `${"s".repeat(32)}\0s`, "control character"],
    ["a C1 control character", `${"s".repeat(32)}\u0085s`, "control character"],
    ["a line end", `${"s".repeat(32)}\n`, "control character"],
    ["a space at its start", ` ${"s".repeat(32)}`, "space at an edge"],
    ["a no-break space at its end", `${"s".repeat(32)}\u00a0`, "space at an edge"],
    ["half a character", `${"s".repeat(32)}\ud800`, "well-formed"],
  ])("of %s is refused", (_, secret, says) => {
    const made = connectionKey(secret);
    expect(made.ok ? "accepted" : made.fault).toContain(says);
  });

  it("of 32 bytes in fewer characters, and of 1024 bytes, is taken; a fault quotes nothing of a secret", () => {
    expect(connectionKey("é".repeat(16)).ok).toBe(true);
    expect(connectionKey("s".repeat(1024)).ok).toBe(true);
    const made = connectionKey(` canary${"s".repeat(40)}`);
    expect(made.ok ? "" : made.fault).not.toContain("canary");
  });

  it("in a file loses the line ends behind it, and nothing else", () => {
    expect(secretFromFileText("secret\r\n\n\r")).toBe("secret");
    expect(secretFromFileText("\n a\nb \n")).toBe("\n a\nb ");
    expect(secretFromFileText("\r\n")).toBe("");
  });

  it("in a file that is not UTF-8 is refused, not repaired", () => {
    expect(secretFromFileBytes(Buffer.from([0x61, 0xff])).ok).toBe(false);
    expect(secretFromFileBytes(Buffer.from("\ufeffé\n"))).toEqual({ ok: true, value: "\ufeffé" });
  });
});
