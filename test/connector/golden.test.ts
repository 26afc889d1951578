import { createDecipheriv, createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { decode as laxDecode } from "@msgpack/msgpack";
import { beforeAll, describe, expect, it } from "vitest";
import { encodeRequestFrame, encodeResponseFrame } from "../../src/connector/carriage.ts";
import { openResponse, sealRequest } from "../../src/connector/client_exchange.ts";
import { decode } from "../../src/connector/decode.ts";
import {
  ENVELOPE_HEAD,
  TRANSPORT_ENVELOPE,
  TRANSPORT_INVOCATION,
  TRANSPORT_RESULT,
} from "../../src/connector/documents.ts";
import { encode } from "../../src/connector/encode.ts";
import { seal } from "../../src/connector/envelope.ts";
import { fromView, view } from "../../src/connector/json_view.ts";
import { connectionKey } from "../../src/connector/secret.ts";
import type { Shape } from "../../src/connector/shape.ts";
import {
  CALLER,
  GOLDEN_DOCUMENTS,
  INVOCATION,
  REQUEST_ID,
  REQUEST_NONCE,
  RESPONSE_NONCE,
  RESULT,
  SECRET,
} from "./golden_values.ts";

// What is pinned in fixtures/connector/golden. CALLGATE_REGENERATE=1 writes it anew, and then holds it all the same.

const DIRECTORY = resolve(import.meta.dirname, "../../fixtures/connector/golden");
const REGENERATES = process.env["CALLGATE_REGENERATE"] === "1";

const key = keyOf(SECRET);

function keyOf(secret: string): Buffer {
  const made = connectionKey(secret);
  if (!made.ok) throw new Error(made.fault);
  return made.value;
}

function encoded<T>(shape: Shape<T>, value: unknown): Buffer {
  const bytes = encode(shape, value);
  if (bytes === undefined) throw new Error("no valid document");
  return bytes;
}

const SEALS = {
  request: { kind: "Invocation", nonce: REQUEST_NONCE, plaintext: encoded(TRANSPORT_INVOCATION, INVOCATION) },
  response: { kind: "Result", nonce: RESPONSE_NONCE, plaintext: encoded(TRANSPORT_RESULT, RESULT) },
} as const;

function envelopeOf({ kind, nonce, plaintext }: (typeof SEALS)[keyof typeof SEALS]): Buffer {
  return seal({ key, caller: CALLER, requestId: REQUEST_ID, kind, nonce }, plaintext);
}

function associatedData(kind: "Invocation" | "Result"): Buffer {
  return encoded(ENVELOPE_HEAD, {
    schema_id: "gamecult.model.transport_envelope.v3",
    caller_runtime_id: CALLER,
    request_id: REQUEST_ID,
    message_kind: kind,
  });
}

const ENVELOPES = [
  { name: "transport_envelope_invocation", bytes: envelopeOf(SEALS.request) },
  { name: "transport_envelope_result", bytes: envelopeOf(SEALS.response) },
].map(({ name, bytes }) => ({ name, shape: TRANSPORT_ENVELOPE, value: decode(TRANSPORT_ENVELOPE, bytes) }));

const DOCUMENTS = [...GOLDEN_DOCUMENTS, ...ENVELOPES] as typeof GOLDEN_DOCUMENTS;

const FRAMES: Readonly<Record<string, Buffer>> = {
  "sealed_request.frame": encodeRequestFrame(REQUEST_ID, envelopeOf(SEALS.request)),
  "sealed_response.frame": encodeResponseFrame(REQUEST_ID, "accepted", envelopeOf(SEALS.response)),
};

/** What the frames were sealed with, for whoever wants to make them too. */
const SEALED = {
  connection_secret: SECRET,
  key: key.toString("hex"),
  request: {
    nonce: REQUEST_NONCE.toString("hex"),
    associated_data: associatedData("Invocation").toString("hex"),
    plaintext: "transport_invocation.msgpack",
  },
  response: {
    nonce: RESPONSE_NONCE.toString("hex"),
    associated_data: associatedData("Result").toString("hex"),
    plaintext: "transport_result.msgpack",
  },
};

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
const path = (name: string) => join(DIRECTORY, name);
const read = (name: string) => readFileSync(path(name));
const readJson = (name: string): unknown => JSON.parse(read(name).toString());

function writeAll(): void {
  mkdirSync(DIRECTORY, { recursive: true });
  for (const { name, shape, value } of DOCUMENTS) {
    writeFileSync(path(`${name}.msgpack`), encoded(shape, value));
    writeFileSync(path(`${name}.json`), json(view(shape, value)));
  }
  for (const [name, frame] of Object.entries(FRAMES)) writeFileSync(path(name), frame);
  writeFileSync(path("sealed.json"), json(SEALED));
}

beforeAll(() => {
  if (REGENERATES) writeAll();
});

describe("a golden document", () => {
  it.each(DOCUMENTS)("$name is encoded as it is pinned, byte for byte", ({ name, shape, value }) => {
    expect(encoded(shape, value).toString("hex")).toBe(read(`${name}.msgpack`).toString("hex"));
  });

  it.each(DOCUMENTS)("$name reads as its JSON view, which leads back to its bytes", ({ name, shape }) => {
    const bytes = read(`${name}.msgpack`);
    const shown = readJson(`${name}.json`);
    expect(view(shape, decode(shape, bytes))).toEqual(shown);
    expect(encoded(shape, fromView(shape, shown)).equals(bytes)).toBe(true);
  });

  it.each(DOCUMENTS)("$name says the same to another implementation of MessagePack", ({ name, shape }) => {
    expect(view(shape, laxDecode(read(`${name}.msgpack`)))).toEqual(readJson(`${name}.json`));
  });
});

describe("a golden frame", () => {
  it.each(Object.entries(FRAMES))("%s is sealed as it is pinned, byte for byte", (name, frame) => {
    expect(frame.toString("hex")).toBe(read(name).toString("hex"));
  });

  it.each(["request", "response"] as const)("the %s opens with nothing but what sealed.json tells", (way) => {
    const sealed = readJson("sealed.json") as typeof SEALED;
    const { payload } = laxDecode(read(`sealed_${way}.frame`)) as { payload: string };
    const { nonce, ciphertext } = laxDecode(Buffer.from(payload, "base64")) as Record<string, Uint8Array>;
    const hashed = createHash("sha256").update(sealed.connection_secret).digest();
    expect(hashed.toString("hex")).toBe(sealed.key);
    expect(Buffer.from(nonce!).toString("hex")).toBe(sealed[way].nonce);
    const decipher = createDecipheriv("aes-256-gcm", hashed, nonce!, { authTagLength: 16 });
    decipher.setAAD(Buffer.from(sealed[way].associated_data, "hex")).setAuthTag(ciphertext!.subarray(-16));
    const plaintext = Buffer.concat([decipher.update(ciphertext!.subarray(0, -16)), decipher.final()]);
    expect(plaintext.equals(read(sealed[way].plaintext))).toBe(true);
  });

  it("is what a client sends, and the answer to it", () => {
    const sealed = sealRequest(INVOCATION, { key, frameBytesMax: 6808 }, () => REQUEST_NONCE);
    if (!sealed.ok) throw new Error(sealed.fault.sentence);
    expect(sealed.value.frame.equals(read("sealed_request.frame"))).toBe(true);
    const result = openResponse(read("sealed_response.frame"), sealed.value.asked, key);
    expect(result.ok && view(TRANSPORT_RESULT, result.value)).toEqual(readJson("transport_result.json"));
  });
});

it("no other file is in the directory", () => {
  const claimed = DOCUMENTS.flatMap(({ name }) => [`${name}.msgpack`, `${name}.json`]);
  const all = [...claimed, ...Object.keys(FRAMES), "README.md", "sealed.json"];
  expect(readdirSync(DIRECTORY).sort()).toEqual(all.sort());
});
