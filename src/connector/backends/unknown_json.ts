// Looks into parsed JSON that nobody vouches for: a provider's stream, an error's body, a state that comes back.

export type JsonRecord = Readonly<Record<string, unknown>>;

/** An object of JSON; undefined: it is something else. */
export function asRecord(value: unknown): JsonRecord | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonRecord)
    : undefined;
}

/** Deeper than anything that is meant, and shallow enough that what was parsed can be written again. */
const DEPTH_MAX = 512;
/** Each takes up to a hundred bytes once it is parsed, though three in the text may do: `{},` again and again. */
const VALUES_MAX = 1_000_000;

/** Parsed, where the text is one of a JSON object that is neither deeper nor of more values than anybody means. */
export function parseRecord(text: string): JsonRecord | undefined {
  if (text.length > DEPTH_MAX && !isModest(text)) return undefined;
  try {
    return asRecord(JSON.parse(text));
  } catch {
    return undefined;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/** Looked at before it is parsed: what memory it would take is decided by whoever wrote it. */
function isModest(text: string): boolean {
  let depth = 0;
  let values = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (quoted) {
      if (unit === BACKSLASH) at++;
      else if (unit === QUOTE) quoted = false;
    } else if (unit === QUOTE) quoted = true;
    else if (unit === 0x7b || unit === 0x5b) {
      if (++depth > DEPTH_MAX || ++values > VALUES_MAX) return false;
    } else if (unit === 0x7d || unit === 0x5d) depth--;
    else if (unit === COMMA && ++values > VALUES_MAX) return false;
  }
  return true;
}

/** An own member; what a prototype has is not there. */
export function member(value: JsonRecord | undefined, name: string): unknown {
  return value !== undefined && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function textMember(value: JsonRecord | undefined, name: string): string | undefined {
  const found = member(value, name);
  return typeof found === "string" ? found : undefined;
}

export function recordMember(value: JsonRecord | undefined, name: string): JsonRecord | undefined {
  return asRecord(member(value, name));
}

/** Empty where there is none. */
export function listMember(value: JsonRecord | undefined, name: string): readonly unknown[] {
  const found = member(value, name);
  return Array.isArray(found) ? found : [];
}
