// Looking calls up: what a person has written becomes the broker's filters, and pages are fetched until enough
// fits. The list is of the moment when it was asked for; it changes only when a person asks again or for more.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { CallLine, CallsPage } from "../../../client/answers.ts";
import type { Ask, Told } from "./page.ts";

/** As written; empty: whatever it is. */
export interface Search {
  readonly role: string;
  readonly session: string;
  readonly tool: string;
  readonly state: string;
  /** A status, or a code of `failed`. */
  readonly outcome: string;
  /** As of `datetime-local`. */
  readonly since: string;
  readonly until: string;
  readonly call: string;
}

export const ANY_CALL: Search = {
  role: "",
  session: "",
  tool: "",
  state: "",
  outcome: "",
  since: "",
  until: "",
  call: "",
};

export const STATES = ["running", "waiting", "unknown", "ended"] as const;
export const STATUSES = ["result", "failed", "denied"] as const;

/** What `callgate.calls.list` takes. A call's id is not among it: that is looked for here. */
export function filtersOf(search: Search): Readonly<Record<string, unknown>> {
  const { role, session, tool, state, outcome } = search;
  const isStatus = STATUSES.some((status) => status === outcome);
  const since = msOf(search.since);
  const until = msOf(search.until);
  return {
    ...(role === "" ? {} : { role }),
    ...(session.trim() === "" ? {} : { session: session.trim() }),
    ...(tool.trim() === "" ? {} : { tool: tool.trim() }),
    ...(state === "" ? {} : { state }),
    ...(outcome === "" ? {} : isStatus ? { status: outcome } : { code: outcome }),
    ...(since === undefined ? {} : { since_ms: since }),
    ...(until === undefined ? {} : { until_ms: until }),
  };
}

function msOf(local: string): number | undefined {
  const ms = new Date(local).getTime();
  return local === "" || Number.isNaN(ms) ? undefined : ms;
}

/** Rows of one turn, at least, before a person has to ask for more. */
const ROWS_WANTED = 50;
/** Answers that one turn waits for: each has looked at many calls. */
const ANSWERS_MAX = 20;

export interface FoundCalls {
  readonly rows: readonly CallLine[];
  /** What to go on with; null: all that are kept were looked at. */
  readonly next: string | null;
  readonly loading: boolean;
  readonly fault: Told<CallsPage> | undefined;
  /** When the first page was asked for. */
  readonly askedAtMs: number;
  readonly older: () => void;
  readonly again: () => void;
}

type State = Omit<FoundCalls, "older" | "again">;

const NONE: State = { rows: [], next: null, loading: true, fault: undefined, askedAtMs: 0 };

export function useCalls(ask: Ask, search: Search): FoundCalls {
  const [state, setState] = useState<State>(NONE);
  const turn = useRef(0);
  const fetchFrom = useCallback(
    async (before: State): Promise<void> => {
      turn.current += 1;
      const mine = turn.current;
      setState({ ...before, loading: true, fault: undefined });
      const after = await enough(ask, search, before, () => turn.current !== mine);
      if (turn.current === mine) setState({ ...after, loading: false });
    },
    [ask, search],
  );
  const again = useCallback(() => void fetchFrom({ ...NONE, askedAtMs: Date.now() }), [fetchFrom]);
  useEffect(() => {
    again();
    return () => {
      turn.current += 1;
    };
  }, [again]);
  return { ...state, again, older: () => void fetchFrom(state) };
}

async function enough(ask: Ask, search: Search, from: State, isOver: () => boolean): Promise<State> {
  let state = from;
  let added = 0;
  for (let answers = 0; answers < ANSWERS_MAX && added < ROWS_WANTED && !isOver(); answers += 1) {
    const told = await ask<CallsPage>("callgate.calls.list", {
      ...filtersOf(search),
      ...(state.next === null ? {} : { before: state.next }),
    });
    if (!told.ok) return { ...state, fault: told };
    const rows = told.value.calls.filter(({ call }) => call.startsWith(search.call.trim()));
    state = { ...state, rows: withoutRepeats([...state.rows, ...rows]), next: told.value.next ?? null };
    added += rows.length;
    if (state.next === null) break;
  }
  return state;
}

/** A call that ended meanwhile is told of twice: its end counts. */
function withoutRepeats(rows: readonly CallLine[]): readonly CallLine[] {
  return [...new Map(rows.map((row) => [idOfCall(row), row])).values()];
}

export function idOfCall({ role, session, call }: Pick<CallLine, "role" | "session" | "call">): string {
  return JSON.stringify([role, session, call]);
}
