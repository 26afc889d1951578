// What changes on the page because time passes: one timer for all of it, which runs only while something is
// shown that needs it. A component is drawn anew only when what it reads from the time has changed.

import { useEffect, useState } from "preact/hooks";

const TICK_MS = 1000;

const readers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function tick(): void {
  for (const read of readers) read();
}

function subscribe(read: () => void): () => void {
  readers.add(read);
  timer ??= setInterval(tick, TICK_MS);
  return () => {
    readers.delete(read);
    if (readers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** What `read` makes of the time now (ms since 1970), looked at again every second. Give it a string or a number. */
export function useTicked<T extends string | number | boolean>(read: (nowMs: number) => T): T {
  const value = read(Date.now());
  const [, setSeen] = useState(value);
  useEffect(() => {
    setSeen(value);
    return subscribe(() => setSeen(read(Date.now())));
  });
  return value;
}
