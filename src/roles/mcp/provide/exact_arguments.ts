// Arguments go to a server as the text that the broker gave: what was decided and approved is what arrives, also where a
// number means more digits than JavaScript keeps. The SDK makes the message of a value, so the value says a token in
// its place, and the text is put where the token stands.
// Invariant: a token is unguessable and held for one call, so no text of a peer's can be taken for one.

import { randomBytes } from "node:crypto";

export interface HeldArguments {
  /** To be given to the SDK as the call's `arguments`: the parsed members, which JSON.stringify writes as the token. */
  readonly value: Readonly<Record<string, unknown>>;
  /** Over HTTP: the answer's stream has ended for good. Whoever still waits for the answer then waits in vain. */
  onStreamEnd: () => void;
  release(): void;
}

interface Held {
  readonly text: string;
  readonly given: HeldArguments;
}

export class ExactArguments {
  readonly #mark = `arguments:${randomBytes(16).toString("hex")}:`;
  readonly #held = new Map<string, Held>();
  #last = 0;

  /** Undefined where the text is no JSON object. */
  hold(text: string): HeldArguments | undefined {
    const value = parseMembers(text);
    if (value === undefined) return undefined;
    this.#last += 1;
    const token = `${this.#mark}${this.#last}`;
    Object.defineProperty(value, "toJSON", { value: () => token, enumerable: false });
    const given = { value, onStreamEnd: () => {}, release: () => void this.#held.delete(token) };
    this.#held.set(token, { text, given });
    return given;
  }

  /** The message as it is sent; undefined: its call was over before that, so it must not be. */
  spliced(json: string): string | undefined {
    const place = this.#placeIn(json);
    if (place === undefined) return json;
    const text = this.#held.get(place.token)?.text;
    if (text === undefined) return undefined;
    return `${json.slice(0, place.start)}${text}${json.slice(place.end)}`;
  }

  /** The call whose message this is, not yet spliced. */
  heldIn(json: string): HeldArguments | undefined {
    const place = this.#placeIn(json);
    return place === undefined ? undefined : this.#held.get(place.token)?.given;
  }

  #placeIn(
    json: string,
  ): { readonly token: string; readonly start: number; readonly end: number } | undefined {
    const start = json.indexOf(`"${this.#mark}`);
    if (start < 0) return undefined;
    const end = json.indexOf('"', start + 1) + 1;
    return { token: json.slice(start + 1, end - 1), start, end };
  }
}

function parseMembers(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>) // any JSON object is one
      : undefined;
  } catch {
    return undefined;
  }
}
