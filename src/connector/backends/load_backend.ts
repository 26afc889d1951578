// The one way to a backend. A provider's SDK is loaded when a backend of its kind is made, and not before; it is big.

import { fault, type Result } from "../../base/faults.ts";
import type { Clock } from "../../base/ports.ts";
import type { ProviderBackend } from "../backend.ts";
import { type BackendSettings, type CheckedSettings, checkSettings } from "./settings.ts";

export interface BackendEffects {
  /** For timeouts and for the waits between attempts. */
  readonly clock: Clock;
}

/** Opens no connection and reads no key. The fault is a sentence that names the setting which does not hold. */
export async function loadBackend(
  settings: BackendSettings,
  effects: BackendEffects,
): Promise<Result<ProviderBackend>> {
  const checked = checkSettings(settings);
  if (!checked.ok) return fault(checked.fault);
  return { ok: true, value: await loadKind(checked.value, effects) };
}

async function loadKind(settings: CheckedSettings, effects: BackendEffects): Promise<ProviderBackend> {
  switch (settings.kind) {
    case "anthropic":
      return (await import("./anthropic.ts")).anthropicBackend(settings, effects.clock);
    case "openai-responses":
      return (await import("./openai_responses.ts")).openaiResponsesBackend(settings, effects.clock);
    case "openai-chat":
      return (await import("./openai_chat.ts")).openaiChatBackend(settings, effects.clock);
  }
}
