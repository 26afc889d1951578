// What every page of the console is given, and how it asks the broker. Peers' text reaches the document as
// text only (Preact escapes it) and through `visible` of base/display.ts, so that what can't be seen is marked.

import type { Questions } from "../../../client/answers.ts";
import type { MeasuredStatus } from "../../../client/load_answers.ts";
import type { Asked, Sample } from "../api.ts";

/** What the events have told so far. */
export interface Live {
  readonly connection: "connecting" | "open" | "lost" | "logged_out";
  readonly broker: { readonly connected: boolean; readonly why: string | null };
  readonly questions: Questions | undefined;
  readonly status: MeasuredStatus | undefined;
  readonly samples: readonly Sample[];
}

/** A result's content as a value, or what to tell the person in its place. */
export type Told<T> =
  | { readonly ok: true; readonly value: T; readonly class: string; readonly untrusted: boolean }
  | { readonly ok: false; readonly why: string; readonly asked: Asked | undefined };

export type Ask = <T>(tool: string, args?: Readonly<Record<string, unknown>>) => Promise<Told<T>>;

export interface PageProps {
  readonly live: Live;
  readonly ask: Ask;
  /** Words of the address behind the page's own: `#/sessions/agent/one` gives `["agent", "one"]`. */
  readonly words: readonly string[];
  /** Goes to another page, or to other words of this one. */
  readonly go: (page: string, ...words: readonly string[]) => void;
  /** Says something that stays for a while and is read aloud. */
  readonly say: (text: string, how?: "good" | "bad") => void;
}
