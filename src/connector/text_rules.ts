// What a text of a document may hold (spec: connector, 2.1). That it is well-formed Unicode is the codec's to
// know; here stands what each type asks beyond that, over the text and its length in bytes of UTF-8.

import { isJsonObjectText } from "./json_check.ts";
import { FAILURE_MESSAGE_BYTES_MAX, IDENTITY_BYTES_MAX, JSON_DEPTH_MAX, NAME_BYTES_MAX } from "./limits.ts";

export interface TextRule {
  /** As the contract names the type. */
  readonly name: string;
  /** None is empty. */
  readonly bytesMax: number;
  /** What a JSON Schema can say of it, for the `u` flag; it counts characters, so the bound in bytes is ours. */
  readonly pattern?: string;
  readonly says: string;
  fits(text: string): boolean;
}

const CONTROL = "\\u0000-\\u001f\\u007f-\\u009f";
const EDGE = `${CONTROL}\\u0020\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000`;
/** No control character anywhere, no space at an edge. Also what a connection secret keeps to. */
const PLAIN_TEXT = `^[^${EDGE}](?:[^${CONTROL}]*[^${EDGE}])?$`;
const PLAIN = new RegExp(PLAIN_TEXT, "u");
const NAME_TEXT = "^[A-Za-z0-9_-]+$";
const NAME = new RegExp(NAME_TEXT);
const CALL_ID_TEXT = "^[!-~]+$";
const CALL_ID = new RegExp(CALL_ID_TEXT);

export const ID: TextRule = {
  name: "id",
  bytesMax: IDENTITY_BYTES_MAX,
  pattern: PLAIN_TEXT,
  says: "1 to 256 bytes, no control character, no space at an edge",
  fits: isPlain,
};

export const NAME_RULE: TextRule = {
  name: "name",
  bytesMax: NAME_BYTES_MAX,
  pattern: NAME_TEXT,
  says: "1 to 64 letters, digits, _ and -",
  fits: (text) => NAME.test(text),
};

export const CALL_ID_RULE: TextRule = {
  name: "call_id",
  bytesMax: NAME_BYTES_MAX,
  pattern: CALL_ID_TEXT,
  says: "1 to 64 visible ASCII characters",
  fits: (text) => CALL_ID.test(text),
};

export const CONTENT: TextRule = {
  name: "content",
  bytesMax: Number.POSITIVE_INFINITY,
  says: "not empty",
  fits: () => true,
};

/** Holds an id that may itself be malformed. */
export const ECHO: TextRule = { ...CONTENT, name: "echo", says: "not empty; may be no id" };

export const FAILURE_MESSAGE: TextRule = {
  ...CONTENT,
  name: "failure_message",
  bytesMax: FAILURE_MESSAGE_BYTES_MAX,
  says: "1 to 1024 bytes",
};

export const JSON_OBJECT: TextRule = {
  name: "json",
  bytesMax: Number.POSITIVE_INFINITY,
  says: "text of a JSON object (RFC 8259), at most 64 objects and arrays deep",
  fits: (text) => isJsonObjectText(text, JSON_DEPTH_MAX),
};

/** Of an id or a secret, whatever its length. */
export function isPlain(text: string): boolean {
  return PLAIN.test(text);
}

/** Whether a text is an id: for values that come from elsewhere than a document. */
export function isId(text: unknown): text is string {
  if (typeof text !== "string" || !text.isWellFormed()) return false;
  return Buffer.byteLength(text) <= ID.bytesMax && ID.fits(text);
}
