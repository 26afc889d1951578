// Sentences of ours that hold names or words of peers: shown as text, with what does not show marked, in the
// page's own type. What is a peer's text as a whole is PeerText (parts.tsx).

import { visibleLine } from "../../../base/display.ts";

export function Words({ text, chars = 600 }: { text: string; chars?: number }) {
  return <bdi class="words">{visibleLine(text, chars)}</bdi>;
}
