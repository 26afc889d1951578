// The arguments of `model.turn`: a provider's request in its JSON view, without what the role itself knows (its schema,
// its ids), and with defaults where a request has a usual one. Parsed strictly; a fault names a place, never a value.

import { fault, ok, type Result } from "../../base/faults.ts";
import { jsonText, parseJsonObject } from "../../base/json.ts";
import { ARGUMENTS_LIMITS } from "../../base/limits.ts";
import type { ProviderRequest } from "../../connector/contract.ts";
import { sha256 } from "../../connector/digest.ts";
import { PROVIDER_REQUEST } from "../../connector/documents.ts";
import { explainValue } from "../../connector/explain_value.ts";
import { fromView } from "../../connector/json_view.ts";
import type { MapNode, Shape } from "../../connector/shape.ts";

/** What the role fills in. */
const OWN = ["schema_id", "request_id", "conversation_id"] as const;

export type Turn = Omit<ProviderRequest, (typeof OWN)[number]>;

/** The request's own shape, so that the two can't differ. */
export const TURN: Shape<Turn> = { node: withoutOwn(PROVIDER_REQUEST) };

/** Of members that may be left out. */
export const TURN_DEFAULTS = {
  reasoning_effort: null,
  output_format_name: null,
  tools: [],
  tool_choice: "auto",
  parallel_tool_calls: true,
  output_schema_json: null,
} as const;

export interface ParsedTurn {
  readonly turn: Turn;
  /** Of the canonical text of the arguments: 32 bytes. */
  readonly digest: Buffer;
}

/** The fault is a sentence for the caller. */
export function parseTurn(text: string): Result<ParsedTurn> {
  const parsed = parseJsonObject(text, ARGUMENTS_LIMITS);
  if (!parsed.ok) return fault("the arguments are not one strict JSON object");
  const given: unknown = JSON.parse(text); // strict JSON is JSON
  const turn = fromView(TURN, { ...TURN_DEFAULTS, ...(given as object) });
  const wrong = explainValue(TURN, turn);
  if (wrong !== undefined) return fault(`the arguments are no turn: ${wrong}`);
  const digest = sha256(Buffer.from(jsonText(parsed.value)));
  return ok({ turn: turn as Turn, digest }); // nothing was wrong with it
}

function withoutOwn(shape: Shape<ProviderRequest>): MapNode {
  if (shape.node.kind !== "map") throw new Error("a provider's request is a map");
  const fields = shape.node.fields.filter(({ name }) => !OWN.some((own) => own === name));
  return { ...shape.node, name: "Turn", fields };
}
