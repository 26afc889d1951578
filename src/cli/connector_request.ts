// What `callgate connector call` asks: a whole request out of a file, or one made of a prompt and options.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { visibleLine } from "../base/display.ts";
import type { ProviderRequest } from "../connector/contract.ts";
import { PROVIDER_REQUEST } from "../connector/documents.ts";
import { explainValue } from "../connector/explain_value.ts";
import { fromView } from "../connector/json_view.ts";
import { TURN_DEFAULTS } from "../roles/model/turn_arguments.ts";
import { UsageFault } from "./call.ts";
import { type Flags, textOf } from "./command_row.ts";
import { codeOf } from "./replace_file.ts";

/** @throws UsageFault */
export function requestOf(prompt: string | undefined, flags: Flags): ProviderRequest {
  const file = textOf(flags, "request");
  if (file !== undefined && prompt !== undefined)
    throw new UsageFault("--request has the whole request, so no prompt goes with it");
  const members = file === undefined ? promptRequest(prompt, flags) : readRequest(file);
  const requestId = textOf(flags, "requestId") ?? members["request_id"] ?? newRequestId();
  const request = fromView(PROVIDER_REQUEST, {
    schema_id: "gamecult.model.provider_request.v3",
    conversation_id: requestId,
    ...TURN_DEFAULTS,
    ...members,
    request_id: requestId,
  });
  const wrong = explainValue(PROVIDER_REQUEST, request);
  if (wrong !== undefined) throw new UsageFault(`this is no request: ${wrong}`);
  return request as ProviderRequest; // nothing was wrong with it
}

type Members = Readonly<Record<string, unknown>>;

function promptRequest(prompt: string | undefined, flags: Flags): Members {
  if (prompt === undefined)
    throw new UsageFault("say what to ask: a prompt, `-` for standard input, or --request FILE");
  const model = textOf(flags, "model");
  if (model === undefined) throw new UsageFault("say which model: --model NAME");
  const text = prompt === "-" ? readText(0, "standard input") : prompt;
  return {
    model,
    instructions: textOf(flags, "instructions"),
    input: [{ UserText: { text } }],
    max_output_tokens: flags["maxOutputTokens"],
  };
}

function readRequest(file: string): Members {
  const text = readText(file === "-" ? 0 : file, visibleLine(JSON.stringify(file), 300));
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Members;
  } catch {
    // said below
  }
  throw new UsageFault("--request must name a file with one JSON object: a request in its JSON view");
}

function readText(from: string | 0, named: string): string {
  try {
    return readFileSync(from, "utf8");
  } catch (error) {
    throw new UsageFault(`${named} can't be read (${codeOf(error)})`);
  }
}

/** Nobody else's: an id that is used again fetches the old answer. */
function newRequestId(): string {
  return `cli-${randomBytes(12).toString("hex")}`;
}
