// The question that a person has open: as it was shown to them, and beside it as it is now. Invariant: what is
// shown changes only when they look again; an answer names the digest of what is shown. That it has ended, or
// has become different, is found out meanwhile and told.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { WholeQuestion } from "../../../client/answers.ts";
import type { Ask, Live, Told } from "./page.ts";
import { type Changes, changesBetween } from "./question_changes.ts";
import { useThrottled } from "./question_source.ts";
import { useTicked } from "./ticking.ts";

export interface ShownQuestion {
  readonly shown: WholeQuestion | undefined;
  /** As it is now; of one that has ended, who decided and when. */
  readonly now: WholeQuestion | undefined;
  readonly changes: Changes;
  /** What had changed when the person looked again last. */
  readonly seen: Changes;
  /** Why there is nothing to show. */
  readonly fault: Told<WholeQuestion> | undefined;
  /** Shows it as it is now. */
  readonly look: () => void;
  /** Finds out how it is now. */
  readonly refresh: () => void;
}

const NO_CHANGES: Changes = { sentences: [], isOther: false };
/** Not everything that changes a question is told by an event: a taint that rises is not. */
const LOOKED_EVERY_MS = 5000;
const HEARD_EVERY_MS = 1000;

interface State {
  readonly id: string;
  readonly shown?: WholeQuestion;
  readonly now?: WholeQuestion;
  readonly seen: Changes;
  readonly fault?: Told<WholeQuestion>;
}

export function useShownQuestion(id: string, live: Live, ask: Ask): ShownQuestion {
  const [state, setState] = useState<State>({ id, seen: NO_CHANGES });
  const wanted = useRef(id);
  wanted.current = id;
  const refresh = useCallback(() => {
    void ask<WholeQuestion>("callgate.approvals.show", { approval: id }).then((told) => {
      if (wanted.current === id) setState((before) => heard(before, id, told));
    });
  }, [ask, id]);
  const current: State = state.id === id ? state : { id, seen: NO_CHANGES };
  useRefreshing(current, live, refresh);
  const changes =
    current.shown === undefined || current.now === undefined
      ? NO_CHANGES
      : changesBetween(current.shown, current.now);
  const look = () => {
    if (current.now !== undefined) setState({ id, shown: current.now, now: current.now, seen: changes });
  };
  const { shown, now, seen, fault } = current;
  return { shown, now, changes, seen, fault: shown === undefined ? fault : undefined, look, refresh };
}

/** The first answer is what is shown; later ones only stand beside it. */
function heard(before: State, id: string, told: Told<WholeQuestion>): State {
  const state: State = before.id === id ? before : { id, seen: NO_CHANGES };
  if (!told.ok) return { ...state, fault: told };
  return { id, seen: state.seen, shown: state.shown ?? told.value, now: told.value };
}

function useRefreshing({ now }: State, live: Live, refresh: () => void): void {
  const questions = useThrottled(live.questions, HEARD_EVERY_MS);
  const isOpen = now === undefined || now.state === "pending";
  const isOver = useTicked((nowMs) => now !== undefined && now.expires_at_ms <= nowMs);
  const isReachable = live.connection === "open" && live.broker.connected;
  useEffect(() => {
    if (isOpen) refresh();
  }, [questions, isOpen, isOver, isReachable, refresh]);
  useEffect(() => {
    if (!isOpen) return undefined;
    const timer = setInterval(refresh, LOOKED_EVERY_MS);
    return () => clearInterval(timer);
  }, [isOpen, refresh]);
}
