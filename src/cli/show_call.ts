// `callgate calls show`: one call, with --full whole.

import { callId, withCaller } from "./call.ts";
import { wholeCall } from "./call_views.ts";
import type { Flags, Words } from "./command_row.ts";
import { askBroker, show } from "./operate.ts";
import { type Dialogue, EXIT } from "./terminal.ts";

const DENIED_HINT =
  "  Of a call that was denied only the decision is kept: callgate calls why CALL, with the same options.\n";

export async function showCall(terminal: Dialogue, [call = ""]: Words, flags: Flags): Promise<number> {
  const named = {
    call: callId(call).toString(),
    session: flags["of"] ?? flags.session,
    role: flags["role"],
  };
  return withCaller(terminal, flags, async (caller) => {
    const answer = await askBroker(caller, flags, "callgate.calls.show", named);
    if ("fault" in answer) {
      const status = answer.fault(terminal);
      if (status === EXIT.failed) terminal.err(DENIED_HINT);
      return status;
    }
    const view = (value: unknown, nowMs: number) => wholeCall(value, nowMs, flags["full"] === true);
    show(terminal, flags, answer, view, terminal.nowMs());
    return EXIT.ok;
  });
}
