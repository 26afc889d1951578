// The arguments of a `tools/call` as the client wrote them. A JavaScript parser rounds 9007199254740993, and the broker
// must decide on what was written: so the text itself goes on, as the one member of an object that takes its place.
// Invariant: whatever a client sends as arguments is replaced where it is an object, so nothing of its looks like ours.

const EXACT = "exact text";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = new Set([0x7b, 0x5b]);
const CLOSE = new Set([0x7d, 0x5d]);
const SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);
const COMMA = 0x2c;

/** `text` is one JSON document, `message` what JSON.parse makes of it. Anything but a `tools/call` comes back as it is. */
export function withExactArguments(message: unknown, text: string): unknown {
  if (!isMembers(message) || message["method"] !== "tools/call" || !isMembers(message["params"]))
    return message;
  const { params } = message;
  if (!isMembers(params["arguments"])) return message;
  const span = memberText(memberText(text, "params"), "arguments");
  return { ...message, params: { ...params, arguments: { [EXACT]: span } } };
}

/** The text of a JSON object; undefined where what was sent is none. Without arguments it is `{}`. */
export function exactArguments(given: unknown): string | undefined {
  if (given === undefined) return "{}";
  const text = isMembers(given) ? given[EXACT] : undefined;
  return typeof text === "string" ? text : undefined;
}

type Members = Readonly<Record<string, unknown>>;

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text of an object's member of that name: of several the last, as JSON.parse has it. `object` is valid JSON. */
function memberText(object: string, name: string): string {
  let found = "{}";
  let at = skipSpace(object, 0) + 1;
  for (;;) {
    at = skipSpace(object, at);
    if (object.charCodeAt(at) !== QUOTE) return found;
    const nameEnd = skipString(object, at);
    const isIt = JSON.parse(object.slice(at, nameEnd)) === name;
    const start = skipSpace(object, skipSpace(object, nameEnd) + 1);
    const end = skipValue(object, start);
    if (isIt) found = object.slice(start, end);
    at = skipSpace(object, end);
    if (object.charCodeAt(at) === COMMA) at += 1;
  }
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (SPACE.has(text.charCodeAt(at))) at += 1;
  return at;
}

function skipString(text: string, from: number): number {
  let at = from + 1;
  for (; text.charCodeAt(at) !== QUOTE; at += 1) {
    if (text.charCodeAt(at) === BACKSLASH) at += 1;
    if (at >= text.length) return text.length;
  }
  return at + 1;
}

function skipValue(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; ) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = skipString(text, at);
    else {
      if (CLOSE.has(unit)) depth -= 1;
      if (depth < 0 || (depth === 0 && (unit === COMMA || SPACE.has(unit)))) return at;
      if (OPEN.has(unit)) depth += 1;
      at += 1;
    }
    if (depth === 0 && (unit === QUOTE || CLOSE.has(unit))) return at;
  }
  return text.length;
}
