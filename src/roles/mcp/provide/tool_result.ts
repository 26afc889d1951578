// What a server gave for a call, as the content of the broker's result: its own JSON again, once it is seen to be a result
// of a call at all. Whoever reads it treats it as untrusted.

import { fault, ok, type Result } from "../../../base/faults.ts";
import { jsonText } from "./server_json.ts";

type Members = Readonly<Record<string, unknown>>;

export function resultContent(result: Members): Result<string> {
  const { content, structuredContent, isError } = result;
  if (content === undefined && structuredContent === undefined) return fault("it has no content");
  if (content !== undefined && !Array.isArray(content)) return fault("its content is no list");
  if ((content as readonly unknown[] | undefined)?.some((block) => !isBlock(block)))
    return fault("its content holds something that has no type");
  if (isError !== undefined && typeof isError !== "boolean")
    return fault("its isError is neither true nor false");
  const text = jsonText(result);
  return text === undefined ? fault("it is nested too deep") : ok(text);
}

function isBlock(block: unknown): boolean {
  return typeof block === "object" && block !== null && typeof (block as Members)["type"] === "string";
}
