// Who is logged in. A link's token opens one login, once, within its time; a login is a cookie and a key that are
// good together only, until it is ended or twelve hours are over. Invariant: only digests are kept, and
// everything is bounded.

import { type Digest, digestOf, isSame, newSecret } from "../tokens/secrets.ts";
import type { ConsoleEffects } from "./effects.ts";

export const TOKEN_MS = 600_000;
export const LOGIN_MS = 43_200_000;
/** Links that were printed and not used; the oldest goes. */
const TOKENS_MAX = 4;
/** The oldest login is ended for a new one. */
export const LOGINS_MAX = 16;
/** Wrong tokens within a minute, after which no token is looked at until it is over. */
export const WRONG_TOKENS_MAX = 20;
const WRONG_TOKENS_MS = 60_000;

export interface Link {
  readonly token: string;
  readonly expiresAtMs: number;
}

export interface Login {
  /** Aborted when it ends, by whatever. */
  readonly ended: AbortSignal;
}

interface Kept extends Login {
  readonly cookie: Digest;
  readonly key: Digest;
  readonly expiresAtMs: number;
  readonly end: () => void;
}

/** What the browser is given; both at once, and never again. */
export interface OpenedLogin {
  readonly cookie: string;
  readonly key: string;
}

export class Logins {
  readonly #effects: ConsoleEffects;
  #tokens: { readonly digest: Digest; readonly expiresAtMs: number }[] = [];
  #logins: Kept[] = [];
  #wrong = { sinceMs: Number.NEGATIVE_INFINITY, count: 0 };

  constructor(effects: ConsoleEffects) {
    this.#effects = effects;
  }

  newLink(): Link {
    const token = newSecret(this.#effects.random);
    const expiresAtMs = this.#effects.nowMs() + TOKEN_MS;
    this.#tokens = [...this.#tokens, { digest: digestOf(token), expiresAtMs }].slice(-TOKENS_MAX);
    return { token, expiresAtMs };
  }

  /** `limited`: too many wrong ones were given, so that this one was not looked at. */
  redeem(token: string): OpenedLogin | "wrong" | "limited" {
    const nowMs = this.#effects.nowMs();
    if (nowMs - this.#wrong.sinceMs >= WRONG_TOKENS_MS) this.#wrong = { sinceMs: nowMs, count: 0 };
    if (this.#wrong.count >= WRONG_TOKENS_MAX) return "limited";
    const digest = digestOf(token);
    this.#tokens = this.#tokens.filter(({ expiresAtMs }) => nowMs < expiresAtMs);
    const left = this.#tokens.filter((one) => !isSame(one.digest, digest));
    if (left.length === this.#tokens.length) {
      this.#wrong.count += 1;
      return "wrong";
    }
    this.#tokens = left;
    return this.#open(nowMs);
  }

  /** The login that both belong to; undefined: there is none, or not any more. */
  find(cookie: string, key: string): Login | undefined {
    const [cookieDigest, keyDigest] = [digestOf(cookie), digestOf(key)];
    const nowMs = this.#effects.nowMs();
    let found: Kept | undefined;
    for (const login of this.#logins) {
      const fits = [isSame(login.cookie, cookieDigest), isSame(login.key, keyDigest)]; // both are looked at
      if (fits[0] && fits[1] && nowMs < login.expiresAtMs) found = login;
    }
    return found;
  }

  end(login: Login): void {
    for (const kept of this.#logins) if (kept === login) kept.end();
  }

  /** Ends all of them, and every link. */
  close(): void {
    this.#tokens = [];
    for (const login of [...this.#logins]) login.end();
  }

  #open(nowMs: number): OpenedLogin {
    const [cookie, key] = [newSecret(this.#effects.random), newSecret(this.#effects.random)];
    const ending = new AbortController();
    const callOff = this.#effects.after(LOGIN_MS, () => login.end());
    const login: Kept = {
      cookie: digestOf(cookie),
      key: digestOf(key),
      expiresAtMs: nowMs + LOGIN_MS,
      ended: ending.signal,
      end: () => {
        callOff();
        this.#logins = this.#logins.filter((one) => one !== login);
        ending.abort();
      },
    };
    this.#logins.push(login);
    if (this.#logins.length > LOGINS_MAX) this.#logins[0]?.end();
    return { cookie, key };
  }
}
