// What the console's page and its server say to each other. Requests: the paths below; whoever is not logged in, comes
// from elsewhere or is another user gets 4xx with `{"error": SENTENCE}` and nothing else (401 alone: log in anew). Every
// POST says that its body is application/json, also one without a body. The server decides nothing about tools beyond
// a closed list: the broker does.

import type { Questions } from "../../client/answers.ts";
import type { MeasuredStatus } from "../../client/load_answers.ts";

/** POST `{token}` of the one-time link; answers `LoggedIn` and sets the cookie. */
export const LOGIN_PATH = "/api/login";
/** POST with nothing: ends this login. */
export const LOGOUT_PATH = "/api/logout";
/** POST `/api/ask/TOOL` with the tool's arguments as the body; answers `Asked`. */
export const ASK_PATH = "/api/ask/";
/** GET: server-sent events; the event's name is `PageEvent`'s `event`, its data the JSON of `data`. */
export const EVENTS_PATH = "/api/events";
/**
 * The header with `LoggedIn.key`. A cookie goes to every port of its host, and so to a page of somebody else's on this machine; what a
 * page has stored does not. Both are asked for.
 */
export const KEY_HEADER = "x-callgate-key";

export interface LoggedIn {
  readonly key: string;
}

/** The broker's final message, as on the wire; `content` is JSON text. `unreachable`: there is no broker to ask now. */
export type Asked =
  | {
      readonly status: "result";
      readonly content: string;
      readonly class: string;
      readonly untrusted: boolean;
    }
  | { readonly status: "failed"; readonly message: string }
  | { readonly status: "denied"; readonly reason: string }
  | { readonly status: "unreachable"; readonly message: string };

/** One look at the load. Counts since `started_at_ms`, so rates are differences of two samples of one start. */
export interface Sample {
  readonly at_ms: number;
  readonly started_at_ms: number;
  readonly ended: { readonly result: number; readonly failed: number; readonly denied: number };
  readonly decisions: { readonly allow: number; readonly ask: number; readonly deny: number };
  /** All tools' durations together, by `bounds_ms`. */
  readonly bounds_ms: readonly number[];
  readonly durations: readonly number[];
  readonly commit_durations: readonly number[];
  /** Calls without their final answer, and bytes that wait, of all roles. */
  readonly in_flight: number;
  readonly queued_bytes: number;
  readonly pending: number;
  readonly loop_delay_max_ms: number;
}

export type PageEvent =
  /** Whether the server has its broker; `role`: what it is there. */
  | {
      readonly event: "broker";
      readonly data: { readonly connected: boolean; readonly why: string | null };
    }
  /** The questions that wait, oldest first, as many as fit; `total` says how many there are. */
  | { readonly event: "approvals"; readonly data: Questions }
  /** At the beginning: the samples that are kept, oldest first. */
  | { readonly event: "history"; readonly data: readonly Sample[] }
  | { readonly event: "sample"; readonly data: Sample }
  | { readonly event: "status"; readonly data: MeasuredStatus };
