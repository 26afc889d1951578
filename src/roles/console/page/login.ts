// The log-in as the page knows it: the token that the link brought, and the key that goes with every request.
// Invariant: the token leaves the address, and so the history, before anything else happens.

import { KEY_HEADER, LOGIN_PATH, LOGOUT_PATH, type LoggedIn } from "../api.ts";

const TOKEN = /^#login=([\w-]+)$/;

/** Where the key is kept: of this port alone, since a name is all that tells two consoles apart to a person. */
function place(): string {
  return `callgate.key.${location.port}`;
}

/** The token of the address, taken out of it; undefined: there is none. */
export function takeToken(): string | undefined {
  const [, token] = TOKEN.exec(location.hash) ?? [];
  if (token === undefined) return undefined;
  history.replaceState(null, "", `${location.pathname}#/`);
  return token;
}

export function keptKey(): string | undefined {
  try {
    return localStorage.getItem(place()) ?? undefined;
  } catch {
    return undefined; // a browser that keeps nothing
  }
}

export function forgetKey(): void {
  try {
    localStorage.removeItem(place());
  } catch {
    // it kept none
  }
}

/** The key, or in a sentence why there is none. */
export async function logIn(token: string): Promise<{ readonly key: string } | { readonly why: string }> {
  try {
    const response = await fetch(LOGIN_PATH, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token }),
    });
    if (!response.ok) return { why: await errorOf(response) };
    const { key } = (await response.json()) as LoggedIn;
    keep(key);
    return { key };
  } catch {
    return { why: "The console does not answer. Is the command still running?" };
  }
}

export async function logOut(key: string): Promise<void> {
  forgetKey();
  try {
    await fetch(LOGOUT_PATH, {
      method: "POST",
      headers: { "content-type": "application/json", [KEY_HEADER]: key },
      body: "{}",
    });
  } catch {
    // the server is gone, and its log-ins with it
  }
}

function keep(key: string): void {
  try {
    localStorage.setItem(place(), key);
  } catch {
    // it is logged in for as long as the page stays open
  }
}

/** The server's own sentence of a refused request. */
export async function errorOf(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { readonly error?: unknown };
    if (typeof error === "string") return error;
  } catch {
    // no JSON: not from our server
  }
  return `The console answered with status ${response.status}.`;
}
