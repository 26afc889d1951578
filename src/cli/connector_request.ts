// What `callgate connector call` asks: a whole request out of a file, or one made of a prompt and options.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { visibleLine } from "../base/display.ts";
import { parseJsonObject } from "../base/json.ts";
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
  if (file !== undefined) refuseBeside(prompt, flags);
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

/** What a request made of a prompt has beside it, and a request in a file has itself. */
const PROMPT_OPTIONS = [
  ["model", "--model"],
  ["instructions", "--instructions"],
  ["maxOutputTokens", "--max-output-tokens"],
] as const;

/** Else it would be left out of account in silence, and one of these is a bound. */
function refuseBeside(prompt: string | undefined, flags: Flags): void {
  const given = PROMPT_OPTIONS.filter(([name]) => flags[name] !== undefined).map(([, option]) => option);
  const [what] = [...(prompt === undefined ? [] : ["prompt"]), ...given];
  if (what !== undefined) throw new UsageFault(`--request has the whole request, so no ${what} goes with it`);
}

const INSTRUCTIONS_DEFAULT = "Answer the user.";
const OUTPUT_TOKENS_DEFAULT = 1024;

type Members = Readonly<Record<string, unknown>>;

function promptRequest(prompt: string | undefined, flags: Flags): Members {
  if (prompt === undefined)
    throw new UsageFault("say what to ask: a prompt, `-` for standard input, or --request FILE");
  const model = textOf(flags, "model");
  if (model === undefined) throw new UsageFault("say which model: --model NAME");
  const text = prompt === "-" ? readText(0, "standard input") : prompt;
  return {
    model,
    instructions: textOf(flags, "instructions") ?? INSTRUCTIONS_DEFAULT,
    input: [{ UserText: { text } }],
    max_output_tokens: flags["maxOutputTokens"] ?? OUTPUT_TOKENS_DEFAULT,
  };
}

/** More than any request's bound lets through. */
const REQUEST_LIMITS = { depth: 128, nodes: 2_000_000, integerDigits: 20 };

function readRequest(file: string): Members {
  const named = file === "-" ? "standard input" : visibleLine(JSON.stringify(file), 300);
  const text = readText(file === "-" ? 0 : file, named);
  const parsed = parseJsonObject(text, REQUEST_LIMITS);
  if (parsed.ok) return JSON.parse(text) as Members; // strict JSON is JSON
  const { message, offset } = parsed.fault;
  const line = text.slice(0, offset).split("\n").length;
  throw new UsageFault(`${named} is no request in its JSON view: line ${line}: ${message}`);
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
