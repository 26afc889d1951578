// What makes two calls of a session the same one asked again: the tool, and arguments that are equal once parsed.

import { createHash } from "node:crypto";
import { parseJsonObject } from "../../../base/json.ts";
import { canonicalText } from "../../../base/json_canonical.ts";
import { ARGUMENTS_LIMITS } from "../../../base/limits.ts";

/** Arguments that the broker would not take are equal by their bytes alone. */
export function callKey(tool: string, argumentsText: string): string {
  const parsed = parseJsonObject(argumentsText, ARGUMENTS_LIMITS);
  const text = parsed.ok ? canonicalText(parsed.value) : `!${argumentsText}`;
  return createHash("sha256").update(`${tool}\n${text}`).digest("base64url");
}
