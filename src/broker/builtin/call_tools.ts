// `callgate.calls.*`: one call, by those whose it is and by operators. What is shown of calls and how one is
// settled is in files beside; here is how one is cancelled.

import { encodeMessage } from "../../wire/envelope.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { failCall } from "../deliver.ts";
import { providerSession, unsendable } from "../dispatch.ts";
import type { LiveCall } from "../live.ts";
import { CALL, objectSchema, ROLE, SESSION } from "./arguments.ts";
import { type BuiltinSource, shown } from "./builtin.ts";
import { liveCall, mayTouch, namedCall } from "./call_row.ts";
import { CALL_VIEWS } from "./call_views.ts";
import { SETTLE_TOOLS } from "./settle_tool.ts";
import { isItself } from "./stop.ts";

const CANCEL_TOOL = "callgate.calls.cancel";

/** A question that waits for a human is withdrawn; equal calls that follow it end with it. */
function cancel(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedCall(core, call);
  if (!named.ok) return named;
  const live = liveCall(core, named.value);
  if (live === undefined || live.stage === "ended" || isItself(live, call) || !mayTouch(call, live.record))
    return shown({ cancelled: false });
  const ran = live.serving !== undefined;
  const told = tellProvider(core, live);
  failCall(
    core,
    live,
    callFault(
      "cancelled",
      ran ? "The call was cancelled. The provider may have run." : `The call was cancelled. ${NOTHING_RAN}`,
    ),
  );
  return shown({ cancelled: true, provider_told: told });
}

/** A provider that announced it can be told gets a request of ours; its answer belongs to no call. */
function tellProvider(core: Core, live: LiveCall): boolean {
  const peer = live.serving?.peer;
  if (peer === undefined || !peer.cancellable || !peer.connection.readable) return false;
  const session = providerSession(core, live.key.role, live.key.session);
  const args = JSON.stringify({ session, call: live.key.call.toString() });
  const request = encodeMessage({
    kind: "tool_request",
    body: { session, call: live.key.call, tool: CANCEL_TOOL, arguments: args },
  });
  if (unsendable(peer, request) !== undefined) return false;
  peer.connection.ask(peer.nextId, request);
  peer.nextId += 1n;
  return true;
}

export const CALL_TOOLS: readonly BuiltinSource[] = [
  ...CALL_VIEWS,
  ...SETTLE_TOOLS,
  {
    name: CANCEL_TOOL,
    description: "Ends a call that runs or waits for a human; its caller gets `failed` `cancelled`.",
    effect: "write",
    schema: objectSchema({ role: ROLE, session: SESSION, call: CALL }, "call"),
    run: cancel,
  },
];
