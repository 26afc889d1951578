// Single keys that do something on the page, as long as nobody is typing: with a modifier they are the
// browser's, and in a field or a dialog they are text.

import { useLayoutEffect } from "preact/hooks";

export type Keys = Readonly<Record<string, () => void>>;

/** Each key by its `event.key`. Heard from the moment that the page is drawn: the next key may come at once. */
export function useKeys(keys: Keys): void {
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.repeat || isTyping(event)) return;
      const act = Object.hasOwn(keys, event.key) ? keys[event.key] : undefined;
      if (act === undefined) return;
      event.preventDefault();
      act();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
}

const TYPED = "input, select, textarea, [contenteditable], dialog";

function isTyping({ ctrlKey, altKey, metaKey, target }: KeyboardEvent): boolean {
  if (ctrlKey || altKey || metaKey) return true;
  return target instanceof Element && target.closest(TYPED) !== null;
}
