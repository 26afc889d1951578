// The one file that knows @anthropic-ai/sdk. Its types say what a request and a stream look like; its client writes
// the call. Every default that it takes from the environment or the disk is set here: key, address, profile, log,
// traces. What it says in headers is not sent. It gets no key.

import Anthropic from "@anthropic-ai/sdk";
import type { SdkFetch } from "./turn.ts";

export type MessageParams = Anthropic.MessageCreateParamsStreaming;
export type MessageParam = Anthropic.MessageParam;
export type ContentBlock = Anthropic.ContentBlockParam;
export type AnthropicTool = Anthropic.Tool;
export type AnthropicEffort = NonNullable<NonNullable<MessageParams["output_config"]>["effort"]>;
export type StreamEventType = Anthropic.RawMessageStreamEvent["type"];
export type AnthropicStop = Anthropic.StopReason;

const silent = (): void => {};
const NO_LOG = { error: silent, warn: silent, info: silent, debug: silent };
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Not `messages.create`, which warns on the console of models that it calls old. */
export async function postMessages(
  params: MessageParams,
  fetch: SdkFetch,
  baseURL: string,
): Promise<unknown> {
  const client = new Anthropic({
    apiKey: "not-used",
    baseURL,
    webhookKey: null,
    logLevel: "off",
    logger: NO_LOG,
    openTelemetry: false,
    maxRetries: 0,
    timeout: TIMER_MS_MAX,
    fetch,
  });
  return await client.post("/v1/messages", { body: params, stream: true }).asResponse();
}
