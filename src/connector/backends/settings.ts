// What an operator says of a provider, and the check of it. Invariant: a checked setting names one endpoint at one
// origin; nothing else, no environment variable either, says where a turn goes or what is sent with it.

import { fault, ok, type Result } from "../../base/faults.ts";
import { isLoopbackHost } from "../../base/loopback.ts";

/** Each is an API; `openai-chat` is Chat Completions as local servers speak it. Also the name of the transport. */
export const BACKEND_KINDS = ["anthropic", "openai-responses", "openai-chat"] as const;
export type BackendKind = (typeof BACKEND_KINDS)[number];

/** In which header the key goes: as `Bearer KEY`, or bare. */
export const KEY_HEADERS = ["authorization", "x-api-key"] as const;
export type KeyHeader = (typeof KEY_HEADERS)[number];

/**
 * Reads the provider's key. Asked once a turn, so that a credential that was replaced is seen. Line ends behind the
 * key are taken off. Undefined, an empty text, or a rejection is `CredentialUnavailable`; its error goes nowhere.
 */
export type KeySource = () => Promise<string | undefined>;

export interface BackendSettings {
  readonly kind: BackendKind;
  /**
   * The API's root, to which the SDK adds its path: `https://api.anthropic.com` (+ `/v1/messages`),
   * `https://api.openai.com/v1` (+ `/responses`), `http://127.0.0.1:8080/v1` (+ `/chat/completions`).
   * http or https, without user, query and fragment.
   */
  readonly baseUrl: string;
  /** Null: the server wants none, and none is sent. */
  readonly key: KeySource | null;
  /** Default: `authorization`, as both SDKs send it. */
  readonly keyHeader?: KeyHeader;
  /** Sent with each turn, such as `openai-organization`. For no secret: a header here is not kept out of errors. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default false: http only where the host is 127.0.0.0/8, ::1 or localhost. True sends key and prompts in clear. */
  readonly allowPlainHttp?: boolean;
  /** Until the connection stands, TLS included. Default 10 s. */
  readonly connectTimeoutMs?: number;
  /** Without a byte from the provider, also before its first one. Default 5 min: local servers read prompts slowly. */
  readonly silenceTimeoutMs?: number;
  /** How often a turn that surely did not run is sent again. Default 2. */
  readonly retriesMax?: number;
  /** All waits between attempts together. Default 30 s. */
  readonly retryWaitMsMax?: number;
  /** Of text, arguments and reasoning state of one turn, in bytes. Default 16 MiB. */
  readonly answerBytesMax?: number;
}

/** Settings that hold, with every default filled in. */
export interface CheckedSettings {
  readonly kind: BackendKind;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Where every turn goes. */
  readonly endpoint: URL;
  readonly key: KeySource | null;
  readonly keyHeader: KeyHeader;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly connectTimeoutMs: number;
  readonly silenceTimeoutMs: number;
  readonly retriesMax: number;
  readonly retryWaitMsMax: number;
  readonly answerBytesMax: number;
}

const PATHS: Readonly<Record<BackendKind, string>> = {
  anthropic: "/v1/messages",
  "openai-responses": "/responses",
  "openai-chat": "/chat/completions",
};

const TIMER_MS_MAX = 2 ** 31 - 1;
const RETRIES_MAX = 10;
const ANSWER_BYTES_MAX = 2 ** 30;

/** Written by this program alone: they frame the request, or decide who reads it. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "anthropic-version",
  "authorization",
  "connection",
  "content-length",
  "content-type",
  "cookie",
  "expect",
  "host",
  "keep-alive",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "x-api-key",
]);
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;
const HEADER_VALUE = /^[!-~](?:[ -~]{0,1022}[!-~])?$/;

/** The fault is a sentence that names the setting. */
export function checkSettings(settings: BackendSettings): Result<CheckedSettings> {
  const base = checkBaseUrl(settings.baseUrl, settings.allowPlainHttp ?? false);
  if (!base.ok) return base;
  const headers = checkHeaders(settings.headers ?? {});
  if (!headers.ok) return headers;
  const numbers = checkNumbers(settings);
  if (!numbers.ok) return numbers;
  return ok({
    kind: settings.kind,
    baseUrl: base.value,
    endpoint: new URL(base.value + PATHS[settings.kind]),
    key: settings.key,
    keyHeader: settings.keyHeader ?? "authorization",
    headers: headers.value,
    ...numbers.value,
  });
}

function checkBaseUrl(text: string, allowPlainHttp: boolean): Result<string> {
  if (!URL.canParse(text)) return fault("the base URL is no URL");
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return fault("the base URL must begin with https:// or http://");
  }
  if (url.username !== "" || url.password !== "") return fault("the base URL must hold no user and password");
  if (text.includes("?") || text.includes("#"))
    return fault("the base URL must hold no query and no fragment");
  if (url.protocol === "http:" && !allowPlainHttp && !isLoopbackHost(url.hostname)) {
    return fault("the base URL is http to another machine, which sends key and prompts in clear: use https");
  }
  return ok(url.origin + url.pathname.replace(/\/+$/, ""));
}

function checkHeaders(headers: Readonly<Record<string, string>>): Result<ReadonlyMap<string, string>> {
  const checked = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (!HEADER_NAME.test(name)) return fault("a header's name is no token of 1 to 64 characters");
    if (OWN_HEADERS.has(lower)) return fault(`the header ${lower} is not yours to set`);
    if (checked.has(lower)) return fault(`the header ${lower} is there twice`);
    if (!HEADER_VALUE.test(value))
      return fault(`the header ${lower} is not 1 to 1024 visible ASCII characters`);
    checked.set(lower, value);
  }
  return ok(checked);
}

type Numbers = Pick<
  CheckedSettings,
  "connectTimeoutMs" | "silenceTimeoutMs" | "retriesMax" | "retryWaitMsMax" | "answerBytesMax"
>;

function checkNumbers(settings: BackendSettings): Result<Numbers> {
  const numbers: Numbers = {
    connectTimeoutMs: settings.connectTimeoutMs ?? 10_000,
    silenceTimeoutMs: settings.silenceTimeoutMs ?? 300_000,
    retriesMax: settings.retriesMax ?? 2,
    retryWaitMsMax: settings.retryWaitMsMax ?? 30_000,
    answerBytesMax: settings.answerBytesMax ?? 16 * 2 ** 20,
  };
  const bounds: readonly (readonly [keyof Numbers, number, number])[] = [
    ["connectTimeoutMs", 1, TIMER_MS_MAX],
    ["silenceTimeoutMs", 1, TIMER_MS_MAX],
    ["retriesMax", 0, RETRIES_MAX],
    ["retryWaitMsMax", 0, TIMER_MS_MAX],
    ["answerBytesMax", 1, ANSWER_BYTES_MAX],
  ];
  for (const [name, min, max] of bounds) {
    const value = numbers[name];
    if (!Number.isInteger(value) || value < min || value > max) {
      return fault(`${name} must be a whole number from ${min} to ${max}`);
    }
  }
  return ok(numbers);
}
