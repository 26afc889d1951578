// `[backend]` of the connector's config: which provider's interface answers turns, where it is, and where its key is.
// The key itself is read at each turn, so that it can be replaced while the daemon runs.

import type { Result } from "../base/faults.ts";
import {
  BACKEND_KINDS,
  type BackendKind,
  type BackendSettings,
  checkSettings,
  KEY_HEADERS,
} from "../connector/backends/settings.ts";
import { FILE_START, type Located, type Position, quote, type Report } from "./config_faults.ts";
import {
  duration,
  flag,
  integer,
  oneOf,
  type Reader,
  readTable,
  type TableRead,
  table,
  text,
} from "./config_shape.ts";
import type { TomlTable } from "./config_toml.ts";
import { absolute } from "./connector_callers.ts";
import { isCredentialName, type SecretSource, sourceOf } from "./connector_secret_source.ts";

export interface BackendConfig {
  /** All but how the key is read. */
  readonly settings: Omit<BackendSettings, "key">;
  /** undefined: none is sent, as local servers need none. */
  readonly key: SecretSource | undefined;
  readonly at: Position;
}

const BASE_URLS: Readonly<Partial<Record<BackendKind, string>>> = {
  anthropic: "https://api.anthropic.com",
  "openai-responses": "https://api.openai.com/v1",
};

/** Where each API looks for a key. */
const KEY_HEADER_DEFAULTS = {
  anthropic: "x-api-key",
  "openai-responses": "authorization",
  "openai-chat": "authorization",
} as const;

const ANSWER_BYTES_MAX = 1_073_741_824;

const BACKEND_SHAPE = {
  kind: oneOf(BACKEND_KINDS),
  base_url: text('a URL such as "https://api.example.com/v1"'),
  credential: text("the name of a credential", isCredentialName),
  credential_file: text("the path of a file", (path) => !path.includes("\0")),
  key_header: oneOf(KEY_HEADERS),
  headers: table,
  allow_plain_http: flag,
  connect_timeout: duration("100ms", "5m"),
  silence_timeout: duration("1s", "1d"),
  retries: integer(0, 10),
  retry_wait: duration("0s", "1h"),
  max_answer_bytes: integer(1024, ANSWER_BYTES_MAX),
} as const;

const KEY_ITSELF = "a key is never in this file: credential_file names the file that holds it";

const BACKEND_RULES = {
  name: "[backend]",
  shape: BACKEND_SHAPE,
  required: ["kind"],
  elsewhere: new Map([
    ["key", KEY_ITSELF],
    ["api_key", KEY_ITSELF],
    ["url", "the provider's address is base_url"],
  ]),
} as const;

type Backend = TableRead<typeof BACKEND_SHAPE>;

/** undefined: reported. */
export function readBackend(
  backend: Located<TomlTable> | undefined,
  path: string,
  report: Report,
): BackendConfig | undefined {
  if (backend === undefined) {
    report(FILE_START, "no backend is configured; add [backend] with its kind");
    return undefined;
  }
  const read = readTable(backend.value, BACKEND_RULES, report);
  const kind = read.fields.kind?.value;
  if (kind === undefined) return undefined;
  checkKey(read, kind, report);
  const baseUrl = read.fields.base_url?.value ?? BASE_URLS[kind];
  if (baseUrl === undefined) {
    if (!read.keys.has("base_url"))
      report(read.at, `${kind} needs base_url, where the server is: "http://127.0.0.1:8080/v1"`);
    return undefined;
  }
  const settings = settingsOf(read, kind, baseUrl, report);
  const checked = checkSettings({ ...settings, key: null });
  if (!checked.ok) report(read.fields.base_url?.at ?? read.at, checked.fault);
  const key = sourceOf(absolute(read.fields.credential_file, path), read.fields.credential);
  return { settings, key, at: read.at };
}

function checkKey({ at, keys }: Backend, kind: BackendKind, report: Report): void {
  const given = ["credential", "credential_file"].filter((name) => keys.has(name));
  if (given.length > 1) report(at, "a backend has one key: give credential or credential_file, not both");
  if (given.length === 0 && kind !== "openai-chat")
    report(at, `${kind} needs a key: credential or credential_file says where it is`);
}

function settingsOf(
  { fields }: Backend,
  kind: BackendKind,
  baseUrl: string,
  report: Report,
): Omit<BackendSettings, "key"> {
  const optional = {
    headers: fields.headers && headersOf(fields.headers.value, report),
    allowPlainHttp: fields.allow_plain_http?.value,
    connectTimeoutMs: fields.connect_timeout?.value,
    silenceTimeoutMs: fields.silence_timeout?.value,
    retriesMax: fields.retries?.value,
    retryWaitMsMax: fields.retry_wait?.value,
    answerBytesMax: fields.max_answer_bytes?.value,
  };
  const given = Object.entries(optional).filter(([, value]) => value !== undefined);
  const keyHeader = fields.key_header?.value ?? KEY_HEADER_DEFAULTS[kind];
  return { kind, baseUrl, keyHeader, ...Object.fromEntries(given) };
}

const headerValue: Reader<string> = text();

function headersOf(from: TomlTable, report: Report): Readonly<Record<string, string>> {
  const headers: [string, string][] = [];
  for (const [name, { value }] of from.entries) {
    const read = headerValue(value, `the header ${quote(name)}`, report);
    if (read !== undefined) headers.push([name, read]);
  }
  return Object.fromEntries(headers);
}

/**
 * The settings with their key, which is read at each turn: a file that was replaced is seen at once. `onFault` is told each time
 * that it can't be read; the turn itself then says only that there is no key.
 */
export function withKey(
  { settings, key }: BackendConfig,
  readKey: (source: SecretSource) => Promise<Result<string>>,
  onFault: (sentence: string) => void,
): BackendSettings {
  if (key === undefined) return { ...settings, key: null };
  return {
    ...settings,
    key: async () => {
      const read = await readKey(key);
      if (!read.ok) onFault(read.fault);
      return read.ok ? read.value : undefined;
    },
  };
}
