// How a turn fails: the kind and a sentence for a person, which goes to the caller. Invariant: a message holds our own
// words, a provider's error names, and its text only where it speaks of the request; never a piece of the key.

import { visibleLine } from "../../base/display.ts";
import type { FailureKind } from "../contract.ts";
import { FAILURE_MESSAGE_BYTES_MAX } from "../limits.ts";
import { asRecord, type JsonRecord, member, parseRecord, recordMember, textMember } from "./unknown_json.ts";

export interface Failure {
  readonly failureKind: FailureKind;
  /** 1 to 1024 bytes. */
  readonly message: string;
}

/** `sentence` is cut where it is too long for the contract. */
export function failure(failureKind: FailureKind, sentence: string): Failure {
  return { failureKind, message: cut(sentence) };
}

function cut(text: string): string {
  if (Buffer.byteLength(text) <= FAILURE_MESSAGE_BYTES_MAX) return text;
  const ellipsis = "…";
  const room = FAILURE_MESSAGE_BYTES_MAX - Buffer.byteLength(ellipsis);
  // A character that was cut in half decodes to U+FFFD.
  const start = Buffer.from(text)
    .subarray(0, room)
    .toString("utf8")
    .replace(/\ufffd+$/, "");
  return start + ellipsis;
}

/** A provider's account of what went wrong, as far as it follows a known form. */
export interface ProviderError {
  /** `type` and `code`, where they look like names or statuses. */
  readonly names: readonly string[];
  readonly text: string | undefined;
}

/** More than is shown, so that a key at the edge is seen whole. */
const TEXT_CHARS_READ = 2000;
const ERROR_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/**
 * Of `{"error": {...}}`, `{"error": "text"}`, `{"message": ...}` and `{"detail": "text"}`: Anthropic's and OpenAI's
 * form, and those of the servers that speak theirs.
 */
function readProviderError(value: unknown): ProviderError {
  const root = asRecord(value);
  const error = recordMember(root, "error") ?? root;
  const text = textMember(error, "message") ?? textMember(root, "error") ?? textMember(root, "detail");
  return { names: errorNames(error), text: text?.slice(0, TEXT_CHARS_READ) };
}

function errorNames(error: JsonRecord | undefined): string[] {
  const found = [
    member(error, "type"),
    member(error, "code"),
    member(recordMember(error, "details"), "error_code"),
  ].flatMap((name) => {
    if (typeof name === "string" && ERROR_NAME.test(name) && name !== "error") return [name];
    return typeof name === "number" && Number.isInteger(name) && name >= 400 && name <= 599
      ? [`${name}`]
      : [];
  });
  return [...new Set(found)];
}

const KINDS_BY_NAME: ReadonlyMap<string, FailureKind> = new Map<string, FailureKind>([
  ["authentication_error", "CredentialUnavailable"],
  ["permission_error", "CredentialUnavailable"],
  ["invalid_api_key", "CredentialUnavailable"],
  ["rate_limit_error", "RateLimited"],
  ["billing_error", "RateLimited"],
  ["rate_limit_exceeded", "RateLimited"],
  ["insufficient_quota", "RateLimited"],
  ["slow_down", "RateLimited"],
  ["overloaded_error", "Overloaded"],
  ["server_is_overloaded", "Overloaded"],
  ["service_unavailable_error", "Overloaded"],
  ["unavailable_error", "Overloaded"],
  ["timeout_error", "TimedOut"],
  ["invalid_request_error", "RequestRejected"],
  ["not_found_error", "RequestRejected"],
  ["request_too_large", "RequestRejected"],
  ["invalid_prompt", "RequestRejected"],
  ["bio_policy", "RequestRejected"],
  ["context_length_exceeded", "RequestRejected"],
  ["exceed_context_size_error", "RequestRejected"],
  ["not_supported_error", "RequestRejected"],
]);

/** For an answer that is none: a status other than 200. */
export function statusFailure(status: number, body: string, key: string | undefined): Failure {
  const error = readProviderError(parseRecord(body));
  const kind = kindOfStatus(status);
  const redirect = status >= 300 && status < 400 ? ", a redirect, and none is followed" : "";
  return failure(kind, `the provider answered ${status}${redirect}${providerWords(kind, error, key)}`);
}

/** For an error that came in the stream. Without a known name the provider just says that the turn failed. */
export function streamFailure(value: unknown, key: string | undefined): Failure {
  const error = readProviderError(value);
  const kind = error.names.map(kindOfName).find((found) => found !== undefined) ?? "ProviderFailed";
  return failure(kind, `the provider ended the turn with an error${providerWords(kind, error, key)}`);
}

function kindOfName(name: string): FailureKind | undefined {
  return /^[45]\d\d$/.test(name) ? kindOfStatus(Number(name)) : KINDS_BY_NAME.get(name);
}

function kindOfStatus(status: number): FailureKind {
  if (status === 401 || status === 403) return "CredentialUnavailable";
  if (status === 429 || status === 402) return "RateLimited"; // 402: the account is out of money, a quota too
  if (status === 503 || status === 529) return "Overloaded";
  if (status === 408 || status === 504) return "TimedOut";
  if (status >= 400 && status < 500) return "RequestRejected";
  // A redirect as well: there is no turn where the settings say that it is.
  return status >= 300 ? "ProviderFailed" : "StreamInvalid";
}

const TEXT_CHARS_MAX = 200;

function providerWords(kind: FailureKind, error: ProviderError, key: string | undefined): string {
  const names = error.names.filter((name) => !holdsKey(name, key)).join(", ");
  // Such a text speaks of the request, and whoever asks needs it. Another may speak of the key, the account, others.
  const told = kind === "RequestRejected" && error.text !== undefined && !holdsKey(error.text, key);
  const text = told ? `"${visibleLine(error.text ?? "", TEXT_CHARS_MAX)}"` : "";
  const words = [names, text].filter((part) => part !== "").join(": ");
  return words === "" ? "" : ` (${words})`;
}

/** Short enough that a masked key with its first and last characters is seen as one; long enough to not be a word. */
const KEY_PIECE_CHARS = 6;
const AUTHORIZATION = /\b(?:bearer|authorization|x-api-key|api[ _-]?key)\b/i;

/**
 * Whether a text repeats six characters of the key in a row, or speaks of keys at all: a proxy that shows the headers
 * it got may have written them in a form that no search finds, so such a text is not told.
 */
function holdsKey(text: string, key: string | undefined): boolean {
  if (key === undefined) return false;
  if (AUTHORIZATION.test(text)) return true;
  const [searched, wanted] = [text.toLowerCase(), key.toLowerCase()];
  const length = Math.min(KEY_PIECE_CHARS, wanted.length);
  for (let at = 0; at + length <= wanted.length; at++) {
    if (searched.includes(wanted.slice(at, at + length))) return true;
  }
  return false;
}
