// Asking the broker through the console's server, and what each way of not getting a result means to a
// person. Nothing is asked twice on its own: whether something that was lost on the way ran is said, not guessed.

import { ASK_PATH, type Asked, KEY_HEADER } from "../api.ts";
import { errorOf } from "./login.ts";
import type { Ask, Told } from "./page.ts";

export interface AskSettings {
  readonly key: string;
  /** The server knows this log-in no longer. */
  readonly loggedOut: () => void;
}

export function askOf({ key, loggedOut }: AskSettings): Ask {
  return async <T>(tool: string, args: Readonly<Record<string, unknown>> = {}): Promise<Told<T>> => {
    let response: Response;
    try {
      response = await fetch(`${ASK_PATH}${encodeURIComponent(tool)}`, {
        method: "POST",
        headers: { "content-type": "application/json", [KEY_HEADER]: key },
        body: JSON.stringify(args),
      });
      if (response.ok) return toldOf<T>(tool, (await response.json()) as Asked);
    } catch {
      return untold(LOST);
    }
    if (response.status === 401) loggedOut();
    return untold(await errorOf(response));
  };
}

const LOST =
  "The console did not answer, so it is not known whether this was done. Look again before you repeat it.";

function untold(why: string, asked?: Asked): Extract<Told<never>, { ok: false }> {
  return { ok: false, why, asked };
}

function toldOf<T>(tool: string, asked: Asked): Told<T> {
  switch (asked.status) {
    case "result":
      return {
        ok: true,
        value: JSON.parse(asked.content) as T,
        class: asked.class,
        untrusted: asked.untrusted,
      };
    case "denied":
      return untold(deniedWords(tool, asked.reason), asked);
    case "failed":
      return untold(failedWords(asked.message), asked);
    case "unreachable":
      return untold(`The broker can't be reached now: ${asked.message}`, asked);
  }
}

function deniedWords(tool: string, reason: string): string {
  const why = DENIED_WORDS[reason];
  return `The console's role may not use ${tool}: ${why === undefined ? reason : `${why} (${reason})`}.`;
}

const DENIED_WORDS: Readonly<Record<string, string>> = {
  no_grant: "no grant of the policy allows it",
  grant_expired: "its grant has expired",
  taint_too_high: "it has been given more than its grant allows for",
  denied_by_grant: "a grant denies it",
  approval_refused: "somebody was asked, and refused",
  approval_expired: "somebody was asked, and did not answer in time",
};

/** Without the code where the sentence says all of it. */
function failedWords(message: string): string {
  const [, code, sentence] = /^([a-z_]+): (.+)$/s.exec(message) ?? [];
  if (code === undefined || sentence === undefined) return message;
  return code === "conflict" || code === "bad_arguments" ? sentence : `${sentence} (${code})`;
}

/** The code that a failure begins with. */
export function failCode(told: Told<unknown>): string | undefined {
  if (told.ok || told.asked?.status !== "failed") return undefined;
  return /^[a-z_]+/.exec(told.asked.message)?.[0];
}
