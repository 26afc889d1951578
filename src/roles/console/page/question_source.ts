// Which questions the list shows: the first page as the events tell it, or of one role as the broker lists it;
// further pages only when a person asks for them. Order: the broker's, oldest first. So a new question comes at
// the end, and nothing that a person looks at moves; and whoever waits longest is answered first.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Question, Questions } from "../../../client/answers.ts";
import type { Ask, Live, Told } from "./page.ts";

export interface QuestionList {
  /** undefined: not known yet. */
  readonly questions: readonly Question[] | undefined;
  /** How many wait in all, of that role where one is named. */
  readonly total: number;
  readonly more: boolean;
  readonly fault: Told<Questions> | undefined;
  readonly showMore: () => void;
}

/** At most so often the broker is asked again, however often questions change. */
const ASKED_EVERY_MS = 1000;

export function useQuestions(live: Live, ask: Ask, role: string): QuestionList {
  const [pages, setPages] = useState(1);
  const [fetched, setFetched] = useState<Fetched>();
  const intern = useInterned();
  const heard = useThrottled(live.questions, ASKED_EVERY_MS * pages);
  const inOrder = useInOrder();
  const isOwn = role !== "" || pages > 1;
  const latest = useRef(fetched);
  latest.current = fetched;
  useEffect(() => setPages(1), [role]);
  const version = heard?.version;
  useEffect(() => {
    if (!isOwn) return;
    const grown =
      latest.current?.version === version && latest.current?.role === role ? latest.current : undefined;
    inOrder(list(ask, role, pages, grown), (told) => setFetched({ role, version, told }));
  }, [ask, isOwn, version, role, pages, inOrder]);
  const told = isOwn && fetched?.role === role ? fetched.told : undefined;
  const own = told?.ok === true ? told.value : undefined;
  const shown = own ?? (role === "" ? live.questions : undefined);
  const questions = useMemo(() => shown && waitingOf(shown, intern), [shown, intern]);
  return {
    questions,
    total: shown?.total ?? questions?.length ?? 0,
    more: shown?.more === true,
    fault: told?.ok === false ? told : undefined,
    showMore: () => setPages(pages + 1),
  };
}

interface Fetched {
  readonly role: string;
  /** Of the table of questions, when they were asked for. */
  readonly version: unknown;
  readonly told: Told<Questions>;
}

function waitingOf({ approvals }: Questions, intern: (question: Question) => Question): readonly Question[] {
  return approvals
    .filter(({ state }) => state === "pending")
    .map(intern)
    .sort(byAge);
}

/** The same object for what is told again as it was, so that its row is not drawn again. */
function useInterned(): (question: Question) => Question {
  const known = useRef(new Map<string, Question>());
  return useCallback((question) => {
    const before = known.current.get(question.approval);
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(question)) return before;
    if (known.current.size >= INTERNED_MAX) known.current = new Map();
    known.current.set(question.approval, question);
    return question;
  }, []);
}

const INTERNED_MAX = 20_000;

/** Hands answers on as they come, but none that was asked for before one that is there already. */
function useInOrder(): <T>(answer: Promise<T>, then: (value: T) => void) => void {
  const turns = useRef({ asked: 0, answered: 0 });
  return useCallback((answer, then) => {
    turns.current.asked += 1;
    const mine = turns.current.asked;
    void answer.then((value) => {
      if (mine < turns.current.answered) return;
      turns.current.answered = mine;
      then(value);
    });
  }, []);
}

function byAge(a: Question, b: Question): number {
  return a.asked_at_ms - b.asked_at_ms || (a.approval < b.approval ? -1 : 1);
}

/** That many pages, one after the other; on from `known` where nothing has changed since. */
async function list(
  ask: Ask,
  role: string,
  pages: number,
  known: Fetched | undefined,
): Promise<Told<Questions>> {
  const begun =
    known?.told.ok === true && typeof known.told.value.next === "string" ? known.told.value : undefined;
  const all: Question[] = [...(begun?.approvals ?? [])];
  let after = begun?.next ?? undefined;
  for (;;) {
    const told = await ask<Questions>("callgate.approvals.list", {
      ...(role === "" ? {} : { role }),
      ...(after === undefined ? {} : { after }),
    });
    if (!told.ok) return told;
    all.push(...told.value.approvals);
    after = told.value.next ?? undefined;
    const isEnough = after === undefined || all.length > (pages - 1) * PAGE_ROWS;
    if (isEnough) return { ...told, value: { ...told.value, approvals: all } };
  }
}

/** What the broker gives at once, where the lines are short. */
const PAGE_ROWS = 200;

const ENDED_EVERY_MS = 3000;
const ENDED_WANTED = { state: "ended", limit: 30 };

/** The latest that no longer wait, newest first. */
export function useEnded(live: Live, ask: Ask): readonly Question[] {
  const [ended, setEnded] = useState<readonly Question[]>([]);
  const heard = useThrottled(live.questions, ENDED_EVERY_MS);
  const inOrder = useInOrder();
  useEffect(() => {
    if (heard === undefined) return;
    inOrder(ask<Questions>("callgate.approvals.list", ENDED_WANTED), (told) => {
      if (told.ok) setEnded(told.value.approvals);
    });
  }, [ask, heard, inOrder]);
  return ended;
}

/** The latest value, but at most one in `ms`. The first one at once. */
export function useThrottled<T>(value: T, ms: number): T {
  const [shown, setShown] = useState(value);
  const lastAtMs = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const wait = Math.max(0, lastAtMs.current + ms - performance.now());
    const timer = setTimeout(() => {
      lastAtMs.current = performance.now();
      setShown(value);
    }, wait);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return shown;
}
