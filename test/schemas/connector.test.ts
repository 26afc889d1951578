import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Json } from "../../src/base/json.ts";
import { parseJson } from "../../src/base/json.ts";
import { compileSchema } from "../../src/policy/schema_compile.ts";
import { SCHEMAS, schemaFiles } from "./connector_schemas.ts";

interface Row {
  readonly id: string;
  readonly document: string;
  readonly expect: { readonly view?: Readonly<Record<string, unknown>> };
}

const VECTORS = new URL("../../fixtures/connector/vectors/documents.jsonl", import.meta.url);
const rows = readFileSync(VECTORS, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Row)
  .filter((row) => row.expect.view !== undefined);

function strict(value: unknown): Json {
  const parsed = parseJson(JSON.stringify(value), { depth: 512, nodes: 2_000_000, integerDigits: 400 });
  if (!parsed.ok) throw new Error(parsed.fault.message);
  return parsed.value;
}

async function checkOf(file: string) {
  const compiled = await compileSchema(
    strict(JSON.parse(readFileSync(new URL(file, SCHEMAS), "utf8"))),
    "object",
  );
  if (!compiled.ok) throw new Error(JSON.stringify(compiled));
  return (value: unknown) => compiled.value.check(strict(value)) === undefined;
}

describe("the schemas of the connector's documents", () => {
  it("are those of the definitions that the codec reads (npm run schemas rewrites them)", () => {
    expect(readdirSync(SCHEMAS).sort()).toEqual([...schemaFiles().keys()].sort());
    for (const [file, text] of schemaFiles()) {
      expect(readFileSync(new URL(file, SCHEMAS), "utf8"), file).toBe(text);
    }
  });

  it("admit the view of every valid document among the vectors, and none with a field more, less or of another type", async () => {
    const documents = new Set(rows.map(({ document }) => document));
    expect(documents.size).toBe(5);
    for (const document of documents) {
      const admits = await checkOf(`gamecult.model.${document}.v3.schema.json`);
      for (const { id, expect: expected } of rows.filter((row) => row.document === document)) {
        const view = expected.view ?? {};
        expect(admits(view), id).toBe(true);
        expect(admits({ ...view, more: 1 }), id).toBe(false);
        for (const name of Object.keys(view)) {
          const { [name]: _, ...less } = view;
          expect(admits(less), `${id} without ${name}`).toBe(false);
          expect(admits({ ...view, [name]: 1.5 }), `${id} with another ${name}`).toBe(false);
        }
      }
    }
  });

  it("of the messages that carry them admit what the contract shows, and no status of another word", async () => {
    const admits = await checkOf("cultnet.operation_response.v0.schema.json");
    const response = {
      schemaVersion: "cultnet.operation_response.v0",
      messageId: "request-0001",
      serviceId: "gamecult.model.connector",
      operation: "invoke",
      status: "accepted",
      payloadSchema: "gamecult.model.transport_envelope.v3",
      payloadEncoding: "messagepack-base64",
      payload: "AA==",
    };
    expect(admits(response)).toBe(true);
    expect(admits({ ...response, status: "ok" })).toBe(false);
    expect(admits({ ...response, schemaVersion: "cultnet.operation_request.v0" })).toBe(false);
  });
});
