// What a person sees who is not logged in: which command lets them in.

import { visible } from "../../../base/display.ts";

export interface GateProps {
  /** Why the last log-in was refused, or ended. */
  readonly why: string | undefined;
  readonly busy: boolean;
}

export function Gate({ why, busy }: GateProps) {
  return (
    <main class="gate">
      <h1>callgate console</h1>
      {busy ? <p role="status">Logging in…</p> : <Ways why={why} />}
    </main>
  );
}

function Ways({ why }: { why: string | undefined }) {
  return (
    <>
      {why === undefined ? null : (
        <p class="fault" role="alert">
          {visible(why)}
        </p>
      )}
      <p>
        You are not logged in. The command prints a link that works once: press <kbd>Enter</kbd> in the
        terminal where it runs, and open the new link.
      </p>
      <p>If it does not run yet:</p>
      <pre>callgate console --socket OPERATOR_SOCKET</pre>
    </>
  );
}
