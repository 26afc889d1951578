// Which schemas are published in schemas/connector, by the name of what they describe: one for each document, and for
// the two messages that carry them. A test holds the files against these; `npm run schemas` rewrites them.

import {
  OPERATION_REQUEST,
  OPERATION_RESPONSE,
  PROVIDER_REQUEST,
  TRANSPORT_ENVELOPE,
  TRANSPORT_INVOCATION,
  TRANSPORT_RECEIPT,
  TRANSPORT_RESULT,
} from "./documents.ts";
import { type JsonSchema, jsonSchema } from "./json_schema.ts";
import type { Node } from "./shape.ts";

const PUBLISHED: Readonly<Record<string, { readonly node: Node }>> = {
  "gamecult.model.provider_request.v3": PROVIDER_REQUEST,
  "gamecult.model.transport_invocation.v3": TRANSPORT_INVOCATION,
  "gamecult.model.transport_result.v3": TRANSPORT_RESULT,
  "gamecult.model.transport_receipt.v3": TRANSPORT_RECEIPT,
  "gamecult.model.transport_envelope.v3": TRANSPORT_ENVELOPE,
  "cultnet.operation_request.v0": OPERATION_REQUEST,
  "cultnet.operation_response.v0": OPERATION_RESPONSE,
};

/** From the name of a document, which is its schema's id and its file's name, to its schema. */
export function publishedSchemas(): ReadonlyMap<string, JsonSchema> {
  return new Map(
    Object.entries(PUBLISHED).map(([name, { node }]) => [name, jsonSchema(node, name)] as const),
  );
}
