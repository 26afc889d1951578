// The course of a turn, the same for every API: write the request, read the key, send, read the stream, settle.
// An API is a dialect: what it wants to be asked, and how its stream is read. Invariant: nothing thrown here, or in
// an SDK, carries the key or content out of the turn; what came before a failure is kept.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { Clock } from "../../base/ports.ts";
import type { ProviderBackend, ProviderTurn } from "../backend.ts";
import type { EventPayload, ProviderRequest, StopReason, TransportInvocation, Usage } from "../contract.ts";
import { isId } from "../text_rules.ts";
import { Answer } from "./answer.ts";
import { CallIds } from "./call_ids.ts";
import { EventStreamReader, type StreamMessage } from "./event_stream.ts";
import type { AnswerBody } from "./exchange.ts";
import { type Failure, failure } from "./failure.ts";
import type { StateOwner } from "./reasoning_state.ts";
import { send } from "./send.ts";
import type { CheckedSettings } from "./settings.ts";

export interface Dialect<Params> {
  /** Told in receipts, and as the provider of reasoning state. */
  readonly transport: string;
  /** What the API wants beside the general headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** A request that the API can't express is a failure here. */
  write(request: ProviderRequest, owner: StateOwner): Result<Params, Failure>;
  /** By the SDK, which calls `fetch` once; rejects where that does. */
  post(params: Params, fetch: SdkFetch, baseUrl: string): Promise<unknown>;
  /** A reader for one stream. */
  reader(reading: Reading): AnswerReader;
}

/** What a reader needs of its turn. */
export interface Reading {
  readonly answer: Answer;
  readonly ids: CallIds;
  readonly owner: StateOwner;
  /** To keep it out of what a provider says of its errors. */
  readonly key: string | undefined;
}

export interface AnswerReader {
  /** Undefined: go on. Anything else ends the turn. */
  take(message: StreamMessage): Failure | Ending | undefined;
  /** The stream ended, and no message had ended the turn. */
  end(): Failure | Ending;
}

/** How the provider ended the turn; the answer says whether that fits what came. */
export interface Ending {
  readonly stop: StopReason;
  readonly usage: Usage;
  /** Null where it is no id of the contract. */
  readonly responseId: unknown;
}

/** As an SDK calls it. Neither its headers nor its signal is used: both may hold what the environment said. */
export type SdkFetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** What ends a stream that goes on and says nothing, as a multiple of the largest answer. */
const STREAM_FACTOR = 16;
const MESSAGE_FACTOR = 4;

export function backendOf<Params>(
  dialect: Dialect<Params>,
  settings: CheckedSettings,
  clock: Clock,
): ProviderBackend {
  return {
    transport: dialect.transport,
    execute: (invocation, signal) => runTurn(dialect, settings, clock, invocation, signal),
  };
}

async function runTurn<Params>(
  dialect: Dialect<Params>,
  settings: CheckedSettings,
  clock: Clock,
  invocation: TransportInvocation,
  signal: AbortSignal,
): Promise<ProviderTurn> {
  const { request } = invocation;
  const owner = { provider: dialect.transport, model: request.model, origin: settings.endpoint.origin };
  const params = dialect.write(request, owner);
  if (!params.ok) return failed([], params.fault);
  const key = await readKey(settings);
  if (!key.ok) return failed([], key.fault);
  const body = await post(dialect, params.value, settings, key.value, clock, signal);
  if (!body.ok) return failed([], body.fault);
  const answer = new Answer(settings.answerBytesMax);
  const ids = new CallIds(invocation.provider_request_sha256);
  const reader = dialect.reader({ answer, ids, owner, key: key.value });
  const end = await readAnswer(body.value, reader, settings.answerBytesMax);
  return "failureKind" in end ? failed(answer.prefix(), end) : completed(answer, end);
}

const KEY = /^[!-~]{1,8192}$/;

async function readKey({ key }: CheckedSettings): Promise<Result<string | undefined, Failure>> {
  if (key === null) return ok(undefined);
  const text = await Promise.resolve()
    .then(key)
    .catch(() => undefined);
  const plain = text?.replace(/[\r\n]+$/, "");
  if (plain === undefined || plain === "") return unavailable("could not be read");
  return KEY.test(plain) ? ok(plain) : unavailable("is not one line of visible ASCII characters");
}

function unavailable(why: string): { readonly ok: false; readonly fault: Failure } {
  return fault(failure("CredentialUnavailable", `the provider's key ${why}; nothing was sent`));
}

/** The SDK writes the call; what is sent of it is its body, to the one endpoint. */
async function post<Params>(
  dialect: Dialect<Params>,
  params: Params,
  settings: CheckedSettings,
  key: string | undefined,
  clock: Clock,
  signal: AbortSignal,
): Promise<Result<AnswerBody, Failure>> {
  let outcome: Result<AnswerBody, Failure> | undefined;
  const fetch: SdkFetch = async (url, init) => {
    if (outcome !== undefined || url !== settings.endpoint.href || typeof init?.body !== "string") {
      throw new Error("the SDK wants something else than one request to the endpoint");
    }
    outcome = await send({ body: init.body, headers: dialect.headers, key }, settings, clock, signal);
    return new Response(null, { status: 200 });
  };
  await dialect.post(params, fetch, settings.baseUrl);
  if (outcome === undefined) throw new Error("the SDK sent nothing");
  return outcome;
}

async function readAnswer(
  body: AnswerBody,
  reader: AnswerReader,
  answerBytesMax: number,
): Promise<Failure | Ending> {
  const stream = new EventStreamReader(MESSAGE_FACTOR * answerBytesMax);
  let bytesLeft = STREAM_FACTOR * answerBytesMax;
  try {
    for (;;) {
      const chunk = await body.next();
      if (!chunk.ok) return chunk.fault;
      if (chunk.value === null) return reader.end();
      bytesLeft -= chunk.value.length;
      if (bytesLeft < 0)
        return failure("StreamInvalid", "the provider's stream is larger than any answer may be");
      const end = takeAll(stream, reader, chunk.value);
      if (end !== undefined) return end;
    }
  } finally {
    body.close();
  }
}

function takeAll(
  stream: EventStreamReader,
  reader: AnswerReader,
  chunk: Uint8Array,
): Failure | Ending | undefined {
  const { messages, failure: broken } = stream.push(chunk);
  for (const message of messages) {
    const end = reader.take(message);
    if (end !== undefined) return end;
  }
  return broken;
}

function completed(answer: Answer, { stop, usage, responseId }: Ending): ProviderTurn {
  const finished = answer.finish(stop);
  if (!finished.ok) return failed(answer.prefix(), finished.fault);
  const { events, stopReason } = finished.value;
  const provider_response_id = isId(responseId) ? responseId : null;
  return { events, outcome: { Completed: { provider_response_id, stop_reason: stopReason, usage } } };
}

function failed(events: readonly EventPayload[], { failureKind, message }: Failure): ProviderTurn {
  return { events, outcome: { Failed: { failure_kind: failureKind, message } } };
}
