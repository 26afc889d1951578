// A verdict as a badge: its word, with a colour beside it.

import { Badge, type Tone } from "./parts.tsx";
import { Words } from "./words.tsx";

const TONES: Readonly<Record<string, Tone>> = {
  allow: "good",
  conditional: "info",
  ask: "warn",
  deny: "bad",
};

/** Of a decision, a grant's effect, or of what a policy comes to. */
export function VerdictBadge({ verdict }: { verdict: string }) {
  return (
    <Badge tone={TONES[verdict] ?? "plain"}>
      <Words text={verdict} chars={40} />
    </Badge>
  );
}
