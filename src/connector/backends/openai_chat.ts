// The backend for Chat Completions as local servers speak it: llama.cpp, vLLM, Ollama, LM Studio and their like.

import type { Clock } from "../../base/ports.ts";
import type { ProviderBackend } from "../backend.ts";
import { ChatReader } from "./chat_answer.ts";
import { chatParams } from "./chat_request.ts";
import { postChat } from "./openai_sdk.ts";
import type { CheckedSettings } from "./settings.ts";
import { backendOf } from "./turn.ts";

export function openaiChatBackend(settings: CheckedSettings, clock: Clock): ProviderBackend {
  return backendOf(
    {
      transport: "openai-chat",
      headers: {},
      write: chatParams,
      post: postChat,
      reader: (reading) => new ChatReader(reading),
    },
    settings,
    clock,
  );
}
