// Records of the audit, newest first, page by page as a person asks for older ones. A page on which nothing
// fits is passed over, a bounded number of times; then the person is asked whether to look further back.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { AuditPage } from "../../../client/answers.ts";
import { type AuditEntry, readLine } from "./audit_records.ts";
import type { Ask, Told } from "./page.ts";

/** As `callgate.audit.export` takes it. What is undefined is not asked for. */
export type AuditWish = Readonly<Record<string, string | number | undefined>>;

export interface Exported {
  /** Newest first. */
  readonly entries: readonly AuditEntry[];
  readonly loading: boolean;
  /** The answer that was none. */
  readonly fault: Told<unknown> | undefined;
  /** The number up to which nothing was looked at yet; null: all was; undefined: the first page is not there. */
  readonly next: string | null | undefined;
  /** When the newest was asked for. */
  readonly askedAtMs: number | undefined;
  readonly older: () => void;
  /** From the newest once more. */
  readonly again: () => void;
}

const LINES = 100;
const EMPTY_PAGES_MAX = 20;

interface State extends Pick<Exported, "entries" | "loading" | "fault" | "next" | "askedAtMs"> {
  readonly of: string;
}

function begun(of: string): State {
  return { of, entries: [], loading: true, fault: undefined, next: undefined, askedAtMs: undefined };
}

export function useExported(ask: Ask, wish: AuditWish): Exported {
  const of = JSON.stringify(wish);
  const [state, setState] = useState<State>(begun(of));
  const turn = useRef(0);
  const load = useCallback(
    async (before: string | undefined) => {
      turn.current += 1;
      const mine = turn.current;
      setState((now) => (before === undefined ? begun(of) : { ...now, loading: true, fault: undefined }));
      const lookedBack = (next: string) => {
        if (turn.current === mine) setState((now) => ({ ...now, next }));
        return turn.current === mine;
      };
      const page = await filledPage(ask, JSON.parse(of) as AuditWish, before, lookedBack);
      if (turn.current === mine) setState((now) => grown(now, page, before));
    },
    [ask, of],
  );
  useEffect(() => {
    void load(undefined);
    return () => {
      turn.current += 1;
    };
  }, [load]);
  const shown = state.of === of ? state : begun(of);
  return {
    ...shown,
    older: () => void (typeof shown.next === "string" && load(shown.next)),
    again: () => void load(undefined),
  };
}

function grown(now: State, page: Told<AuditPage>, before: string | undefined): State {
  if (!page.ok) return { ...now, loading: false, fault: page };
  const entries = [...now.entries, ...page.value.lines.map(readLine)];
  const askedAtMs = before === undefined ? Date.now() : now.askedAtMs;
  return { ...now, entries, loading: false, fault: undefined, next: page.value.next_seq, askedAtMs };
}

/** The next page with anything in it, or the last one that was looked at. `lookedBack` hears of each in between; whether it goes on. */
async function filledPage(
  ask: Ask,
  wish: AuditWish,
  from: string | undefined,
  lookedBack: (next: string) => boolean,
): Promise<Told<AuditPage>> {
  let before = from;
  for (let pages = 1; ; pages += 1) {
    const args = { ...wish, backward: true, before_seq: before, limit: LINES };
    const page = await ask<AuditPage>("callgate.audit.export", args);
    const next = page.ok && page.value.lines.length === 0 ? page.value.next_seq : null;
    if (next === null || pages === EMPTY_PAGES_MAX || !lookedBack(next)) return page;
    before = next;
  }
}
