// A question to the broker as part of a page: asked when its arguments change, its answer kept until there is
// a newer one. An answer that comes after the question has changed is thrown away.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Ask, Told } from "./page.ts";

export interface AskedState<T> {
  /** The latest answer to these arguments; undefined before the first. */
  readonly told: Told<T> | undefined;
  readonly loading: boolean;
  /** Asks again; what is shown stays until the answer is there. */
  readonly again: () => void;
}

/** `args` undefined: nothing is asked. Compared by their JSON. */
export function useAsked<T>(
  ask: Ask,
  tool: string,
  args: Readonly<Record<string, unknown>> | undefined,
): AskedState<T> {
  const wanted = args === undefined ? undefined : JSON.stringify(args);
  const [state, setState] = useState<{ of: string | undefined; told: Told<T> | undefined; loading: boolean }>(
    {
      of: undefined,
      told: undefined,
      loading: false,
    },
  );
  const turn = useRef(0);
  const again = useCallback(() => {
    turn.current += 1;
    if (wanted === undefined) return;
    const mine = turn.current;
    setState(({ of, told }) => ({ of: wanted, told: of === wanted ? told : undefined, loading: true }));
    void ask<T>(tool, JSON.parse(wanted) as Record<string, unknown>).then((told) => {
      if (turn.current === mine) setState({ of: wanted, told, loading: false });
    });
  }, [ask, tool, wanted]);
  useEffect(() => {
    again();
    return () => {
      turn.current += 1;
    };
  }, [again]);
  const isCurrent = state.of === wanted && wanted !== undefined;
  return {
    told: isCurrent ? state.told : undefined,
    loading: wanted !== undefined && (!isCurrent || state.loading),
    again,
  };
}
