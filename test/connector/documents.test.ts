import { decode as laxDecode, encode as laxEncode } from "@msgpack/msgpack";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ProviderRequest } from "../../src/connector/contract.ts";
import { decode } from "../../src/connector/decode.ts";
import {
  invocationDigest,
  providerRequestDigest,
  replayKey,
  requestDigestWithin,
  sha256,
} from "../../src/connector/digest.ts";
import * as documents from "../../src/connector/documents.ts";
import { encode } from "../../src/connector/encode.ts";
import { fromView, view } from "../../src/connector/json_view.ts";
import type { Node, Shape } from "../../src/connector/shape.ts";
import { documentsOf } from "./arbitraries.ts";

const SHAPES = Object.entries(documents) as readonly (readonly [string, Shape<unknown>])[];
const { PROVIDER_REQUEST } = documents;

const REQUEST: ProviderRequest = {
  schema_id: "gamecult.model.provider_request.v3",
  request_id: "request-0001",
  conversation_id: "conversation-0001",
  model: "m",
  instructions: "Answer.",
  input: [{ UserText: { text: "Hi" } }],
  reasoning_effort: null,
  output_format_name: null,
  tools: [],
  tool_choice: "auto",
  parallel_tool_calls: false,
  output_schema_json: null,
  max_output_tokens: 256,
};

function bytesOf(shape: Shape<unknown>, value: unknown): Buffer {
  const bytes = encode(shape, value);
  if (bytes === undefined) throw new Error("not valid");
  return bytes;
}

/** Depth-first, the node itself among them. */
function nodesBelow(node: Node): readonly Node[] {
  if (node.kind === "map") return [node, ...node.fields.flatMap((one) => nodesBelow(one.node))];
  if (node.kind === "choice") return [node, ...node.cases.flatMap((one) => nodesBelow(one.node))];
  if (node.kind === "list" || node.kind === "optional") return [node, ...nodesBelow(node.of)];
  return [node];
}

/** Maps and lists open at once in the deepest value. */
function containers(node: Node): number {
  if (node.kind === "map") return 1 + Math.max(...node.fields.map((one) => containers(one.node)));
  if (node.kind === "choice") return 1 + Math.max(...node.cases.map((one) => containers(one.node)));
  if (node.kind === "list") return 1 + containers(node.of);
  return node.kind === "optional" ? containers(node.of) : 0;
}

describe.each(SHAPES)("%s", (_name, shape) => {
  it("comes back as it was, from its bytes and from its view, and its bytes are the only ones", () => {
    fc.assert(
      fc.property(documentsOf(shape), (value) => {
        const bytes = bytesOf(shape, value);
        const decoded = decode(shape, bytes);
        const text = JSON.stringify(view(shape, value));
        expect(JSON.stringify(view(shape, decoded)) === text).toBe(true);
        expect(encode(shape, decoded)?.equals(bytes)).toBe(true);
        expect(encode(shape, fromView(shape, JSON.parse(text)))?.equals(bytes)).toBe(true);
        // A library that knows nothing of shapes reads the same, and would write the same bytes.
        if (!text.includes("\ufeff")) expect(bytes.equals(laxEncode(laxDecode(bytes)))).toBe(true);
      }),
    );
  });

  it("changed anywhere is refused, or is the only encoding of another value", () => {
    fc.assert(
      fc.property(
        documentsOf(shape),
        fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 }))),
        (value, changes) => {
          const bytes = bytesOf(shape, value);
          for (const [place, byte] of changes) {
            const changed = Buffer.from(bytes);
            changed[place % bytes.length] = byte;
            const decoded = decode(shape, changed);
            if (decoded !== undefined) expect(encode(shape, decoded)?.equals(changed)).toBe(true);
          }
        },
      ),
    );
  });

  it("cut anywhere, or with a byte more, is refused", () => {
    fc.assert(
      fc.property(documentsOf(shape), fc.nat(), (value, place) => {
        const bytes = bytesOf(shape, value);
        expect(decode(shape, bytes.subarray(0, place % bytes.length))).toBeUndefined();
        expect(decode(shape, Buffer.concat([bytes, Buffer.from([0xc0])]))).toBeUndefined();
      }),
    );
  });

  it("opens eight containers at most, whatever it holds", () => {
    expect(containers(shape.node)).toBeLessThanOrEqual(8);
  });
});

describe("the shapes", () => {
  it("have at most 15 fields a map, whose names take less than 256 bytes: what the codec's short heads can say", () => {
    const maps = SHAPES.flatMap(([, { node }]) => nodesBelow(node)).filter((node) => node.kind === "map");
    expect(maps.length).toBeGreaterThan(10);
    for (const { fields } of maps) expect(fields.length).toBeLessThanOrEqual(15);
  });
});

describe("a length that a peer claims", () => {
  it.each([
    ["four thousand million items", "ddffffffff"],
    ["an array longer than what follows", "dc0100"],
    ["four thousand million entries", "dfffffffff"],
    ["a text of four gigabytes", "dbffffffff"],
    ["a binary of four gigabytes", "c6ffffffff"],
  ])("of %s is refused before anything is made for it", (_what, hex) => {
    const head = Buffer.concat([Buffer.from([0x8d]), ...textsBefore("input"), Buffer.from(hex, "hex")]);
    const before = process.memoryUsage();
    for (let i = 0; i < 1000; i++) expect(decode(PROVIDER_REQUEST, head)).toBeUndefined();
    const after = process.memoryUsage();
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(16 * 1_048_576);
    for (const [, shape] of SHAPES) expect(decode(shape, Buffer.from(hex, "hex"))).toBeUndefined();
  });

  /** The fields of REQUEST before that one, and its key: what follows stands where its value would. */
  function textsBefore(field: string): readonly Uint8Array[] {
    const entries = Object.entries(REQUEST);
    const before = entries.slice(
      0,
      entries.findIndex(([name]) => name === field),
    );
    return [...before.flat().map((text) => laxEncode(text)), laxEncode(field)];
  }
});

describe("a value that is no document", () => {
  it.each([
    ["a lone surrogate", { ...REQUEST, instructions: "\ud800" }],
    ["a field more", { ...REQUEST, more: 1 }],
    ["a field less", (({ input: _, ...less }) => less)(REQUEST)],
    ["undefined in place of null", { ...REQUEST, reasoning_effort: undefined }],
    ["an integer that is not exact", { ...REQUEST, max_output_tokens: 2 ** 53 }],
    ["a negative zero's neighbour", { ...REQUEST, max_output_tokens: -1 }],
    ["half a token", { ...REQUEST, max_output_tokens: 1.5 }],
    ["a bigint", { ...REQUEST, max_output_tokens: 256n }],
    ["two tags in one", { ...REQUEST, input: [{ UserText: { text: "a" }, AssistantText: { text: "b" } }] }],
    ["no tag", { ...REQUEST, input: [{}] }],
    ["a tag of the prototype", { ...REQUEST, input: [{ constructor: { text: "a" } }] }],
    ["an array in place of a map", { ...REQUEST, input: [[]] }],
    ["a schema without a format name", { ...REQUEST, output_schema_json: "{}" }],
    ["an id of 257 bytes in 129 characters", { ...REQUEST, request_id: `${"é".repeat(128)}x` }],
    ["nothing", undefined],
    ["null", null],
    ["a text", "request"],
  ])("because of %s gives no bytes", (_what, value) => {
    expect(encode(PROVIDER_REQUEST, value)).toBeUndefined();
  });

  it("is a text whose 65th array is open, but not its 64th, in quotes or out of them", () => {
    const schema = (depth: number) => `{"a":${"[".repeat(depth)}${"]".repeat(depth)},"b":"[[[\\"[["}`;
    const request = (text: string) => ({ ...REQUEST, output_format_name: "f", output_schema_json: text });
    expect(encode(PROVIDER_REQUEST, request(schema(63)))).toBeDefined();
    expect(encode(PROVIDER_REQUEST, request(schema(64)))).toBeUndefined();
    expect(encode(PROVIDER_REQUEST, request("[".repeat(1_000_000)))).toBeUndefined();
    expect(encode(PROVIDER_REQUEST, request('\ufeff{"a":1}'))).toBeUndefined();
    expect(encode(PROVIDER_REQUEST, request('{"a":1,"a":1e999}'))).toBeDefined();
  });
});

describe("digests", () => {
  it("are of the canonical bytes, and of nothing where there are none", () => {
    expect(providerRequestDigest(REQUEST)).toEqual(sha256(encode(PROVIDER_REQUEST, REQUEST) ?? Buffer.of()));
    expect(providerRequestDigest({ ...REQUEST, model: "" })).toBeUndefined();
    const invocation = {
      schema_id: "gamecult.model.transport_invocation.v3",
      caller_runtime_id: "c",
      expires_at_unix_ms: 1,
      native_request_sha256: Buffer.alloc(32, 7),
      provider_request_sha256: Buffer.alloc(32),
      request: REQUEST,
    } as const;
    expect(invocationDigest(invocation)).toHaveLength(32);
    const bytes = bytesOf(documents.TRANSPORT_INVOCATION as Shape<unknown>, invocation);
    expect(requestDigestWithin(bytes, invocation)).toEqual(providerRequestDigest(REQUEST));
    expect(invocationDigest({ ...invocation, native_request_sha256: Buffer.alloc(32) })).toBeUndefined();
  });

  it("of a caller and a request id are no other pair's, wherever one text ends and the other begins", () => {
    expect(replayKey("ab", "c")).not.toEqual(replayKey("a", "bc"));
    expect(replayKey("ab", "")).not.toEqual(replayKey("", "ab"));
  });
});
