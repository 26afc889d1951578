// The backend for OpenAI's Responses API, and for servers that speak it. Nothing is stored at the provider.

import type { Clock } from "../../base/ports.ts";
import type { ProviderBackend } from "../backend.ts";
import { postResponses } from "./openai_sdk.ts";
import { ResponsesReader } from "./responses_answer.ts";
import { responsesParams } from "./responses_request.ts";
import type { CheckedSettings } from "./settings.ts";
import { backendOf } from "./turn.ts";

export function openaiResponsesBackend(settings: CheckedSettings, clock: Clock): ProviderBackend {
  return backendOf(
    {
      transport: "openai-responses",
      headers: {},
      write: responsesParams,
      post: postResponses,
      reader: (reading) => new ResponsesReader(reading),
    },
    settings,
    clock,
  );
}
