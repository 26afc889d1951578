// `callgate calls show`: one call, with --full whole.

import { callId, withCaller } from "./call.ts";
import { wholeCall } from "./call_views.ts";
import type { Flags, Words } from "./command_row.ts";
import { askBroker, show } from "./operate.ts";
import { type Dialogue, EXIT } from "./terminal.ts";

export async function showCall(terminal: Dialogue, [call = ""]: Words, flags: Flags): Promise<number> {
  const named = {
    call: callId(call).toString(),
    session: flags["of"] ?? flags.session,
    role: flags["role"],
  };
  return withCaller(terminal, flags, async (caller) => {
    const answer = await askBroker(caller, flags, "callgate.calls.show", named);
    if ("fault" in answer) return answer.fault(terminal);
    const view = (value: unknown, nowMs: number) => wholeCall(value, nowMs, flags["full"] === true);
    show(terminal, flags, answer, view, terminal.nowMs());
    return EXIT.ok;
  });
}
