// `[[callers]]` of the connector's config: who may have turns, of which models, and within which bounds. Their secrets
// are elsewhere; here stands only where.

import { dirname, resolve } from "node:path";
import { payloadBytesForFrame } from "../connector/frame_arithmetic.ts";
import { OUTPUT_TOKENS_MAX, PAYLOAD_BYTES_MIN } from "../connector/limits.ts";
import { FRAME_BYTES_CEILING } from "../connector/service_config.ts";
import { isId } from "../connector/text_rules.ts";
import { FILE_START, type Located, type Position, quote, type Report } from "./config_faults.ts";
import { integer, list, readTable, type TableRead, text } from "./config_shape.ts";
import type { TomlTable } from "./config_toml.ts";
import { isCredentialName, type SecretSource, sourceOf } from "./connector_secret_source.ts";

export interface CallerConfig {
  readonly id: string;
  readonly at: Position;
  readonly secret: SecretSource;
  /** Exactly these, as a request names them. */
  readonly allowedModels: readonly string[];
  readonly maxConcurrentRequests: number;
  /** Of a ciphertext in either direction. */
  readonly maxPayloadBytes: number;
  readonly maxOutputTokens: number;
}

const CONCURRENT_DEFAULT = 4;
const PAYLOAD_BYTES_DEFAULT = 1_048_576;
/** What fits the largest frame that the service takes. */
const PAYLOAD_BYTES_MAX = payloadBytesForFrame(FRAME_BYTES_CEILING) ?? PAYLOAD_BYTES_MIN;

const ID_WORDS = "1 to 256 bytes without control characters and without a space at an edge";
const id = text(ID_WORDS, isId);

const CALLER_SHAPE = {
  id,
  secret_file: text("the path of a file", (path) => !path.includes("\0")),
  secret_credential: text("the name of a credential", isCredentialName),
  allowed_models: list(id, "a list of models", "name the models that it may ask for"),
  max_concurrent_requests: integer(1, 10_000),
  max_payload_bytes: integer(PAYLOAD_BYTES_MIN, PAYLOAD_BYTES_MAX),
  max_output_tokens: integer(1, OUTPUT_TOKENS_MAX),
} as const;

const SECRET_ITSELF = "a secret is never in this file: secret_file names the file that holds it";

const CALLER_RULES = {
  name: "a caller",
  shape: CALLER_SHAPE,
  required: ["id", "allowed_models", "max_output_tokens"],
  elsewhere: new Map([
    ["secret", SECRET_ITSELF],
    ["connection_secret", SECRET_ITSELF],
    ["caller_runtime_id", "its name here is id"],
  ]),
} as const;

/** Those without a fault; each fault is reported where it stands. */
export function readCallers(
  callers: Located<readonly TomlTable[]> | undefined,
  path: string,
  report: Report,
): readonly CallerConfig[] {
  if (callers === undefined || callers.value.length === 0)
    report(
      callers?.at ?? FILE_START,
      "no caller is configured, so nobody could have a turn; add [[callers]]",
    );
  const read = (callers?.value ?? []).map((one) => readCaller(one, path, report));
  const found = read.filter((one) => one !== undefined);
  const seen = new Set<string>();
  for (const { id: name, at } of found) {
    if (seen.has(name)) report(at, `two callers have the id ${quote(name)}; give each its own`);
    seen.add(name);
  }
  return found;
}

function readCaller(from: TomlTable, path: string, report: Report): CallerConfig | undefined {
  const caller = readTable(from, CALLER_RULES, report);
  const { fields } = caller;
  const secret = secretOf(caller, path, report);
  if (fields.id === undefined || fields.allowed_models === undefined) return undefined;
  if (fields.max_output_tokens === undefined || secret === undefined) return undefined;
  return {
    id: fields.id.value,
    at: fields.id.at,
    secret,
    allowedModels: fields.allowed_models.value.map(({ value }) => value),
    maxConcurrentRequests: fields.max_concurrent_requests?.value ?? CONCURRENT_DEFAULT,
    maxPayloadBytes: fields.max_payload_bytes?.value ?? PAYLOAD_BYTES_DEFAULT,
    maxOutputTokens: fields.max_output_tokens.value,
  };
}

function secretOf(
  { at, fields, keys }: TableRead<typeof CALLER_SHAPE>,
  path: string,
  report: Report,
): SecretSource | undefined {
  const given = ["secret_file", "secret_credential"].filter((key) => keys.has(key));
  if (given.length === 1) return sourceOf(absolute(fields.secret_file, path), fields.secret_credential);
  report(
    at,
    given.length === 0
      ? "a caller needs secret_file or secret_credential: where its connection secret is"
      : "a caller has one secret: give secret_file or secret_credential, not both",
  );
  return undefined;
}

/** A path of the config starts at the config's directory. */
export function absolute(file: Located<string> | undefined, path: string): Located<string> | undefined {
  return file === undefined ? undefined : { value: resolve(dirname(path), file.value), at: file.at };
}
