// `model.turn` as it is announced, and as an owner pins it in a config: what it does, and the JSON Schema of its
// arguments, made of the shape that they are checked against.

import { jsonSchema } from "../../connector/json_schema.ts";
import { TURN, TURN_DEFAULTS } from "./turn_arguments.ts";

export const MODEL_TOOL = "model.turn";

export interface ModelToolDefinition {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly annotations: Readonly<Record<string, unknown>>;
}

export function modelToolDefinition(prefix = ""): ModelToolDefinition {
  return {
    name: `${prefix}${MODEL_TOOL}`,
    description:
      "One turn of a language model. `input` is the whole transcript, oldest first; nothing is kept between turns. The result is a JSON object with `stop_reason`, `events` (put back into the next turn's `input`: a TextDelta as AssistantText, others as they are) and `usage`.",
    schema: turnSchema(),
    annotations: { readOnlyHint: false, openWorldHint: true },
  };
}

/** Closed. What may be left out is not required. */
export function turnSchema(): Readonly<Record<string, unknown>> {
  const { $schema, $id, title, $comment, ...schema } = jsonSchema(TURN.node, "callgate:model.turn");
  const optional = new Set(Object.keys(TURN_DEFAULTS));
  const required = (schema["required"] as readonly string[]).filter((name) => !optional.has(name));
  return withoutLookaround({ ...schema, required }) as Readonly<Record<string, unknown>>;
}

/** A broker's patterns run in linear time, so they have no look-around; the role looks again itself. */
function withoutLookaround(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutLookaround);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(
    ([name, member]) => name !== "pattern" || typeof member !== "string" || !member.includes("(?!"),
  );
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutLookaround(member)]));
}
