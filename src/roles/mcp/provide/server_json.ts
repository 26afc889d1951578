// What a server sent, as JSON text again. Parsing knows no depth; writing does, and throws where there is too much of it.

/** Undefined: it is nested too deep to be written. `value` came out of JSON. */
export function jsonText(value: object): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
