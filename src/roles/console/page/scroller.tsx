// What is too wide for a phone and loses its sense when it is folded scrolls in a box of its own. As long as there
// is something to scroll the keyboard reaches the box.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Scroller({ label, children }: { label: string; children: ComponentChildren }) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
      else element.removeAttribute("tabindex");
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <section class="scroll" ref={box} aria-label={label}>
      {children}
    </section>
  );
}
