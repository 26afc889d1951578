// Looks into parsed JSON that nobody vouches for: a provider's stream, an error's body, a state that comes back.

export type JsonRecord = Readonly<Record<string, unknown>>;

/** An object of JSON; undefined: it is something else. */
export function asRecord(value: unknown): JsonRecord | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonRecord)
    : undefined;
}

/** Parsed, where the text is one of a JSON object. */
export function parseRecord(text: string): JsonRecord | undefined {
  try {
    return asRecord(JSON.parse(text));
  } catch {
    return undefined;
  }
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
