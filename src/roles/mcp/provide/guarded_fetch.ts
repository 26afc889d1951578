// How a server over HTTP is asked: with the arguments as their text, and with a bound on what it may answer. A stream of
// events may go on for ever, but no event may be longer than a message.

import { MESSAGE_BYTES_MAX } from "./child_transport.ts";
import type { ExactArguments } from "./exact_arguments.ts";

export interface GuardedFetchSettings {
  readonly exact: ExactArguments;
  readonly fetch?: typeof fetch;
  /** Of one event, or of an answer that is no stream. */
  readonly bytesMax?: number;
}

export function guardedFetch({
  exact,
  fetch: ask = fetch,
  bytesMax = MESSAGE_BYTES_MAX,
}: GuardedFetchSettings): typeof fetch {
  return async (input, init) => {
    const text = typeof init?.body === "string" ? init.body : undefined;
    const held = text === undefined ? undefined : exact.heldIn(text);
    const body = text === undefined ? undefined : exact.spliced(text);
    if (text !== undefined && body === undefined) throw new Error("the call is over");
    const response = await ask(input, body === undefined ? init : { ...init, body });
    if (response.body === null) return response;
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const ended = () => void setTimeout(() => held?.onStreamEnd(), ENDED_AFTER_MS);
    const bounded = response.body.pipeThrough(
      isStream ? boundedEvents(bytesMax, ended) : boundedWhole(bytesMax),
    );
    return asOf(response, bounded);
  };
}

/** Until what came last is read. */
const ENDED_AFTER_MS = 1000;

function asOf(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers, url, redirected, type } = response;
  const guarded = new Response(body, { status, statusText, headers });
  // The SDK looks where an answer came from, which a Response of ours would not say.
  for (const [name, value] of Object.entries({ url, redirected, type }))
    Object.defineProperty(guarded, name, { value });
  return guarded;
}

function boundedWhole(bytesMax: number): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  return new TransformStream({
    transform(chunk, controller) {
      bytes += chunk.length;
      if (bytes > bytesMax) controller.error(new Error(`an answer of more than ${bytesMax} bytes`));
      else controller.enqueue(chunk);
    },
  });
}

const LINE_FEED = 0x0a;
const RETURN = 0x0d;
const ID_FIELD = [..."id:"].map((character) => character.charCodeAt(0));

/** Events end with an empty line. `ended`: it is over, and had no event with an id, after which one could go on. */
function boundedEvents(bytesMax: number, ended: () => void): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  let column = 0;
  let idChars = 0;
  let isResumable = false;
  return new TransformStream({
    transform(chunk, controller) {
      for (const byte of chunk) {
        bytes = byte === LINE_FEED && column === 0 ? 0 : bytes + 1;
        if (bytes > bytesMax) return controller.error(new Error(`an event of more than ${bytesMax} bytes`));
        if (byte === RETURN) continue;
        if (byte === LINE_FEED) column = idChars = 0;
        else {
          if (idChars === column && byte === ID_FIELD[column]) idChars += 1;
          if (idChars === ID_FIELD.length) isResumable = true;
          column += 1;
        }
      }
      controller.enqueue(chunk);
    },
    flush() {
      if (!isResumable) ended();
    },
  });
}
