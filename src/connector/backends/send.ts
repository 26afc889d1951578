// A turn's request to its one endpoint, until there is a stream to read or nothing more to try. Invariant: the key
// goes into its header here and nowhere else, and the request goes to the settings' endpoint alone.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { Clock } from "../../base/ports.ts";
import { type AnswerBody, type Exchange, exchange } from "./exchange.ts";
import { type Failure, failure, statusFailure } from "./failure.ts";
import { askedWaitMs, wait, waitForConnectionMs, waitForStatusMs } from "./retry.ts";
import type { CheckedSettings } from "./settings.ts";

/** Of an answer that is an error: more than a sentence for a person needs. */
const ERROR_BYTES_MAX = 64 * 1024;

export interface TurnRequest {
  /** JSON. */
  readonly body: string;
  /** What the API wants beside the settings' headers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly key: string | undefined;
}

/** The body of a 200 that says it is an event stream. */
export async function send(
  request: TurnRequest,
  settings: CheckedSettings,
  clock: Clock,
  signal: AbortSignal,
): Promise<Result<AnswerBody, Failure>> {
  let waitLeftMs = settings.retryWaitMsMax;
  for (let attempt = 0; ; attempt++) {
    const outcome = await sendOnce(request, settings, clock, signal, attempt);
    if (outcome.body !== undefined) return ok(outcome.body);
    const { waitMs } = outcome;
    if (waitMs === undefined || attempt >= settings.retriesMax || waitMs > waitLeftMs)
      return fault(outcome.failure);
    waitLeftMs -= waitMs;
    if (!(await wait(waitMs, clock, signal))) return fault(outcome.failure);
  }
}

type Outcome =
  | { readonly body: AnswerBody }
  | { readonly body?: undefined; readonly failure: Failure; readonly waitMs: number | undefined };

async function sendOnce(
  request: TurnRequest,
  settings: CheckedSettings,
  clock: Clock,
  signal: AbortSignal,
  attempt: number,
): Promise<Outcome> {
  const { endpoint: url, connectTimeoutMs, silenceTimeoutMs } = settings;
  const headers = headersOf(request, settings);
  const sent = await exchange(
    { url, headers, body: request.body, connectTimeoutMs, silenceTimeoutMs },
    clock,
    signal,
  );
  if (!sent.ok) {
    const waitMs = sent.fault.again ? waitForConnectionMs(attempt) : undefined;
    return { failure: sent.fault.failure, waitMs };
  }
  const { status, header, body } = sent.value;
  if (status === 200) return checkStream(sent.value);
  const waitMs = waitForStatusMs(status, header, attempt, clock);
  const words = await readErrorBody(body);
  return { failure: withWait(statusFailure(status, words, request.key), header, clock), waitMs };
}

function headersOf({ headers, key }: TurnRequest, settings: CheckedSettings): Record<string, string> {
  const bearer = settings.keyHeader === "authorization";
  return {
    ...Object.fromEntries(settings.headers),
    ...headers,
    accept: "text/event-stream",
    "accept-encoding": "identity",
    "content-type": "application/json",
    ...(key === undefined ? {} : { [settings.keyHeader]: bearer ? `Bearer ${key}` : key }),
  };
}

/** A server that knows no streaming, or that packs what it was asked not to pack, is told apart from a broken one. */
function checkStream({ header, body }: Exchange): Outcome {
  const encoding = header("content-encoding");
  const type = header("content-type");
  const packed = encoding !== undefined && encoding !== "identity";
  if (!packed && (type === undefined || /^text\/event-stream\b/i.test(type))) return { body };
  body.close();
  const why = packed ? "in an encoding it was not asked for" : "with something else than an event stream";
  return { failure: failure("StreamInvalid", `the provider answered 200 ${why}`), waitMs: undefined };
}

/** As much as is there and may be read; an error's account of itself may break off. */
async function readErrorBody(body: AnswerBody): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  while (bytes < ERROR_BYTES_MAX) {
    const chunk = await body.next();
    if (!chunk.ok || chunk.value === null) break;
    chunks.push(chunk.value);
    bytes += chunk.value.length;
  }
  body.close();
  return Buffer.concat(chunks).subarray(0, ERROR_BYTES_MAX).toString("utf8");
}

function withWait(told: Failure, header: Exchange["header"], clock: Clock): Failure {
  const asked = askedWaitMs(header, clock);
  if (asked === undefined) return told;
  return failure(told.failureKind, `${told.message}; it asks for a wait of ${Math.ceil(asked / 1000)} s`);
}
