// How many bytes a frame has (spec: connector, 5.1), so that bounds can be chosen and checked before anything is
// sealed. Pure numbers: sizes are exact for every whole number up to 2^53 - 1, and nothing loops over them. Lengths
// of identities are UTF-8 bytes; a payload is a ciphertext with its tag, a frame has no length prefix.

import { IDENTITY_BYTES_MAX, INTEGER_MAX } from "./limits.ts";

/** An envelope's keys, schema id and nonce with their headers, and the header of the map. */
const ENVELOPE_FIXED_BYTES = 122;
const REQUEST_FIXED_BYTES = 201;
const RESPONSE_FIXED_BYTES = 218;
const INVOCATION_KIND_BYTES = 11;
const RESULT_KIND_BYTES = 7;

/** The longest value, and how long the header before it is. In order; the last has no end that matters. */
type Header = readonly [valueBytesMax: number, headerBytes: number];
const STR_HEADERS: readonly Header[] = [
  [31, 1],
  [255, 2],
  [65_535, 3],
  [INTEGER_MAX, 5],
];
const BIN_HEADERS: readonly Header[] = [
  [255, 2],
  [65_535, 3],
  [INTEGER_MAX, 5],
];

/** Bytes of the request frame whose ciphertext has `payloadBytes`. @throws RangeError for what is no size */
export function requestFrameBytes(
  requestIdBytes: number,
  callerIdBytes: number,
  payloadBytes: number,
): number {
  const around = envelopeAround(requestIdBytes, callerIdBytes, INVOCATION_KIND_BYTES);
  return frameBytes(REQUEST_FIXED_BYTES + strBytes(requestIdBytes), around, payloadBytes);
}

/** Bytes of the response frame whose ciphertext has `payloadBytes`. @throws RangeError for what is no size */
export function responseFrameBytes(
  requestIdBytes: number,
  callerIdBytes: number,
  payloadBytes: number,
): number {
  const around = envelopeAround(requestIdBytes, callerIdBytes, RESULT_KIND_BYTES);
  return frameBytes(RESPONSE_FIXED_BYTES + strBytes(requestIdBytes), around, payloadBytes);
}

/**
 * The frame bound that lets every payload of that many bytes pass, either way and whatever the identities are: the
 * response's, which is always the larger. Monotone. @throws RangeError for what is no size
 */
export function frameBytesForPayload(payloadBytes: number): number {
  return responseFrameBytes(IDENTITY_BYTES_MAX, IDENTITY_BYTES_MAX, payloadBytes);
}

/** The largest payload that surely passes that frame bound; undefined where none does. @throws RangeError for what is no size */
export function payloadBytesForFrame(frameBytesMax: number): number | undefined {
  checkSize(frameBytesMax);
  const fixedBytes = RESPONSE_FIXED_BYTES + strBytes(IDENTITY_BYTES_MAX);
  const textBytes = valueWithin(frameBytesMax - fixedBytes, STR_HEADERS);
  if (textBytes === undefined) return undefined;
  const envelopeBytes = Math.floor(textBytes / 4) * 3;
  const around = envelopeAround(IDENTITY_BYTES_MAX, IDENTITY_BYTES_MAX, RESULT_KIND_BYTES);
  return valueWithin(envelopeBytes - around, BIN_HEADERS);
}

/** Bytes of an envelope beside its encoded ciphertext. */
function envelopeAround(requestIdBytes: number, callerIdBytes: number, kindBytes: number): number {
  return ENVELOPE_FIXED_BYTES + strBytes(callerIdBytes) + strBytes(requestIdBytes) + kindBytes;
}

/** `beside`: of the frame beside the encoded base64 text of the envelope; `around`: of the envelope beside the payload. */
function frameBytes(beside: number, around: number, payloadBytes: number): number {
  checkSize(payloadBytes);
  // In thirds, and small terms first: a sum on the way may be past what a number holds exactly.
  const rest = payloadBytes % 3;
  const wholeThirds = (payloadBytes - rest) / 3;
  const others = around + headerOf(payloadBytes, BIN_HEADERS) + rest;
  const textBytes = 4 * (wholeThirds + Math.ceil(others / 3));
  return beside + headerOf(textBytes, STR_HEADERS) + textBytes;
}

function strBytes(valueBytes: number): number {
  checkSize(valueBytes);
  return valueBytes + headerOf(valueBytes, STR_HEADERS);
}

function headerOf(valueBytes: number, headers: readonly Header[]): number {
  return headers.find(([valueBytesMax]) => valueBytes <= valueBytesMax)?.[1] ?? 5;
}

/** The longest value that with its header takes at most that many bytes. */
function valueWithin(encodedBytes: number, headers: readonly Header[]): number | undefined {
  const fitting = headers.map(([valueBytesMax, headerBytes]) =>
    Math.min(valueBytesMax, encodedBytes - headerBytes),
  );
  const longest = Math.max(...fitting);
  // A longer header than its value needs is no shortest form, but then the shorter one has the better candidate.
  return longest < 0 ? undefined : longest;
}

function checkSize(bytes: number): void {
  if (!Number.isSafeInteger(bytes) || bytes < 0)
    throw new RangeError("a size must be a whole number of bytes from 0 to 2^53 - 1");
}
