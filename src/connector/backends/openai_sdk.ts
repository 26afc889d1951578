// The one file that knows openai's SDK, for both of its APIs. Its types say what a request and a stream look like; its
// client writes the call. Every default that it takes from the environment is set here. What it says in headers is
// not sent. It gets no key.

import OpenAI from "openai";
import type { SdkFetch } from "./turn.ts";

export type ResponseParams = OpenAI.Responses.ResponseCreateParamsStreaming;
export type ResponseInputItem = OpenAI.Responses.ResponseInputItem;
export type ResponseEventType = OpenAI.Responses.ResponseStreamEvent["type"];
export type ChatParams = OpenAI.Chat.ChatCompletionCreateParamsStreaming;
export type ChatMessage = OpenAI.Chat.ChatCompletionMessageParam;
export type ChatFinish = NonNullable<OpenAI.Chat.ChatCompletionChunk.Choice["finish_reason"]>;
export type OpenAIEffort = NonNullable<OpenAI.ReasoningEffort>;

const silent = (): void => {};
const NO_LOG = { error: silent, warn: silent, info: silent, debug: silent };
const TIMER_MS_MAX = 2 ** 31 - 1;

export function postResponses(params: ResponseParams, fetch: SdkFetch, baseURL: string): Promise<unknown> {
  return post("/responses", params, fetch, baseURL);
}

export function postChat(params: ChatParams, fetch: SdkFetch, baseURL: string): Promise<unknown> {
  return post("/chat/completions", params, fetch, baseURL);
}

async function post(path: string, body: object, fetch: SdkFetch, baseURL: string): Promise<unknown> {
  const client = new OpenAI({
    apiKey: "not-used",
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    baseURL,
    logLevel: "off",
    logger: NO_LOG,
    maxRetries: 0,
    timeout: TIMER_MS_MAX,
    fetch,
  });
  return await client.post(path, { body, stream: true }).asResponse();
}
