// What must not be overlooked, whichever page is open: that nothing is heard any more, that the policy in
// force is not the one in the file, that the store can't write, that one user is on both sides of the gate.

import { visibleLine } from "../../../base/display.ts";
import { counted } from "../../../base/json_text.ts";
import type { Status } from "../../../client/answers.ts";
import type { Live } from "./page.ts";
import { addressOf } from "./route.ts";

export interface Notice {
  readonly tone: "warn" | "bad";
  readonly title: string;
  readonly text: string;
  readonly link?: { readonly to: string; readonly words: string };
}

const WORDS_CHARS_MAX = 600;

/** Worst first. */
export function noticesOf({ connection, broker, status }: Live): readonly Notice[] {
  return [
    ...(connection === "lost" ? [LOST] : []),
    ...(connection === "open" && !broker.connected ? [noBroker(broker.why)] : []),
    ...(status === undefined ? [] : noticesOfStatus(status)),
  ];
}

const LOST: Notice = {
  tone: "bad",
  title: "The console does not answer.",
  text: "What is shown may be old. The page tries again by itself; if it goes on, look whether the command still runs.",
};

/** `why` is the server's own sentence. */
function noBroker(why: string | null): Notice {
  const because = why === null ? "" : `${visibleLine(why, WORDS_CHARS_MAX)} `;
  const text = `${because}What is shown may be old, and nothing can be answered.`;
  return { tone: "bad", title: "The broker is lost.", text };
}

function noticesOfStatus(status: Status): readonly Notice[] {
  const { store, policy_stale: stale, policy_stale_because: because, draining, warning } = status;
  const frozen = (status.roles ?? []).filter((role) => role.frozen).map(({ role }) => visibleLine(role));
  const notices: (Notice | undefined)[] = [
    store === undefined || store.condition === "ok" ? undefined : badStore(store.condition),
    stale ? stalePolicy(because ?? undefined) : undefined,
    draining ? { tone: "warn", title: "The broker is ending.", text: "It takes no new calls." } : undefined,
    frozen.length === 0 ? undefined : frozenRoles(frozen),
    unknownCalls(status.unknown_calls ?? 0),
    warning === null || warning === undefined
      ? undefined
      : { tone: "warn", title: "Not for production:", text: visibleLine(warning, WORDS_CHARS_MAX) },
  ];
  return notices.filter((notice) => notice !== undefined);
}

function badStore(condition: string): Notice {
  const text = "No new call runs until it can; reading goes on.";
  return { tone: "bad", title: `The store can't write (${visibleLine(condition)}).`, text };
}

function stalePolicy(because: string | undefined): Notice {
  const why = because === undefined ? "" : ` ${visibleLine(because, WORDS_CHARS_MAX)}`;
  return {
    tone: "bad",
    title: "The policy in force is older than its file.",
    text: `The file was refused, so the last good policy stays.${why}`,
  };
}

function frozenRoles(roles: readonly string[]): Notice {
  const one = roles.length === 1;
  return {
    tone: "warn",
    title: `${one ? "A role is" : `${roles.length} roles are`} frozen:`,
    text: roles.join(", "),
    link: { to: addressOf("sessions"), words: "Sessions" },
  };
}

function unknownCalls(count: number): Notice | undefined {
  if (count === 0) return undefined;
  return {
    tone: "warn",
    title: `${counted(count, "call")} of unknown outcome.`,
    text: "The broker stopped before it heard how they ended: they may have run.",
    link: { to: addressOf("calls", "unknown"), words: "Show" },
  };
}
