// The backend for Anthropic's Messages API, and for servers that speak it.

import type { Clock } from "../../base/ports.ts";
import type { ProviderBackend } from "../backend.ts";
import { AnthropicReader } from "./anthropic_answer.ts";
import { anthropicParams } from "./anthropic_request.ts";
import { postMessages } from "./anthropic_sdk.ts";
import type { CheckedSettings } from "./settings.ts";
import { backendOf } from "./turn.ts";

/** That of the SDK, whose types these files are written against; a test holds the two together. */
export const ANTHROPIC_VERSION = "2026-10-21";

export function anthropicBackend(settings: CheckedSettings, clock: Clock): ProviderBackend {
  return backendOf(
    {
      transport: "anthropic",
      headers: { "anthropic-version": ANTHROPIC_VERSION },
      write: anthropicParams,
      post: postMessages,
      reader: (reading) => new AnthropicReader(reading),
    },
    settings,
    clock,
  );
}
