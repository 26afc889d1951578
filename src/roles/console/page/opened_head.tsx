// The head of one thing that was opened out of a list: the way back (Escape goes it too), its name, and what is
// to be done. The focus begins at the name, so that a screen reader says where one has come to.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useKeys } from "./keys.ts";
import { addressOf } from "./route.ts";

export interface OpenedHeadProps {
  /** The page that has the list. */
  readonly page: string;
  /** `All sessions`. */
  readonly back: string;
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
}

export function OpenedHead({ page, back, title, children }: OpenedHeadProps) {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => head.current?.focus(), []);
  useKeys({
    Escape: () => {
      location.hash = addressOf(page);
    },
  });
  return (
    <>
      <p class="back">
        <a href={addressOf(page)}>← {back}</a>
      </p>
      <header class="page-head">
        <h1 ref={head} tabIndex={-1}>
          {title}
        </h1>
        {children}
      </header>
    </>
  );
}
