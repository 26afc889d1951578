// `callgate.calls.why|cancel`: one call, by those whose it is and by operators.

import { type CallFault, fault, ok, type Result } from "../../base/faults.ts";
import type { CallKey } from "../../store/records.ts";
import { encodeMessage } from "../../wire/envelope.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { failCall } from "../deliver.ts";
import { providerSession, unsendable } from "../dispatch.ts";
import type { LiveCall } from "../live.ts";
import { CALL, callId, objectSchema, ROLE, SESSION } from "./arguments.ts";
import { type BuiltinSource, shown } from "./builtin.ts";
import { namedRole, namedSessionId, sessionLabels } from "./visibility.ts";

const CANCEL_TOOL = "callgate.calls.cancel";

function namedCall(core: Core, call: BuiltinCall): Result<CallKey, CallFault> {
  const id = callId(call.args, "call");
  if (id === undefined) return fault(callFault("bad_arguments", `\`call\` is no call id. ${NOTHING_RAN}`));
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const session = namedSessionId(call);
  if (!session.ok) return session;
  return ok({ role: named.value.name, session: session.value, call: id });
}

function why(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedCall(core, call);
  if (!named.ok) return named;
  const key = named.value;
  const decision = core.store.findDecision(key);
  if (decision === undefined) {
    return fault(
      callFault(
        "bad_arguments",
        `No denial of that call is kept (only the latest denials are). ${NOTHING_RAN}`,
      ),
    );
  }
  const content = {
    session: key.session,
    call: key.call,
    denied: decision.denied ?? null,
    row: decision.row,
    grant: decision.grant ?? null,
    reason: decision.reason ?? null,
    taint: decision.taint,
  };
  return shown(content, sessionLabels(core, key.role, key.session));
}

function cancel(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedCall(core, call);
  if (!named.ok) return named;
  const key = named.value;
  const session = core.sessions.find(key.role, key.session);
  const live = session && core.live.find(session, key.call);
  const itself = live?.session === call.session && live?.key.call === call.key.call;
  if (live === undefined || live.stage === "ended" || itself || !mayCancel(call, live))
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

/** As with a replay, another user of the same role is not the one who asked. */
function mayCancel(call: BuiltinCall, { record }: LiveCall): boolean {
  return call.role.operator || record.uid === call.peer.connection.peer?.uid;
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
  {
    name: "callgate.calls.why",
    description: "Why a call was denied: the row of the decision list, the grant and its owner's reason.",
    effect: "read",
    schema: objectSchema({ role: ROLE, session: SESSION, call: CALL }, "call"),
    run: why,
  },
  {
    name: CANCEL_TOOL,
    description: "Ends a running call; its caller gets `failed` `cancelled`.",
    effect: "write",
    schema: objectSchema({ role: ROLE, session: SESSION, call: CALL }, "call"),
    run: cancel,
  },
];
