// Short words about what has just been done. They go by themselves, a fault later than the rest; both are read
// aloud, so they may be short-lived on the screen.

import { useCallback, useRef, useState } from "preact/hooks";
import { visible } from "../../../base/display.ts";
import type { PageProps } from "./page.ts";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly how: "good" | "bad";
}

const SHOWN_MAX = 4;
const GOOD_MS = 6000;
const BAD_MS = 15_000;

export interface Toasts {
  readonly shown: readonly Toast[];
  readonly say: PageProps["say"];
}

export function useToasts(): Toasts {
  const [shown, setShown] = useState<readonly Toast[]>([]);
  const last = useRef(0);
  const say = useCallback<PageProps["say"]>((text, how = "good") => {
    last.current += 1;
    const id = last.current;
    setShown((before) => [...before, { id, text: visible(text), how }].slice(-SHOWN_MAX));
    const gone = () => setShown((before) => before.filter((one) => one.id !== id));
    setTimeout(gone, how === "good" ? GOOD_MS : BAD_MS);
  }, []);
  return { shown, say };
}

export function ToastRegion({ shown }: { shown: readonly Toast[] }) {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, how }) => (
        <p key={id} class={`toast toast-${how}`}>
          {text}
        </p>
      ))}
    </div>
  );
}
