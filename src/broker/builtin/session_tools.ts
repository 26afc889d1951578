// `callgate.sessions.*`: sessions that a trusted role opens for others, and their end. What is shown of them and
// how their taint is lowered is in files beside.

import { fault } from "../../base/faults.ts";
import { isSessionId } from "../../base/ids.ts";
import { IDS_MAX } from "../../session/role_sessions.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { actorOf } from "../live.ts";
import { integer, objectSchema, ROLE, SESSION, text } from "./arguments.ts";
import { type BuiltinSource, changed } from "./builtin.ts";
import { ENDORSE_TOOLS } from "./endorse_tool.ts";
import { SESSION_VIEWS } from "./session_views.ts";
import { stopCalls } from "./stop.ts";
import { actsForItself, namedSession } from "./visibility.ts";

const REQUEST_CHARS_MAX = 16_384;
const EXPIRES_SECONDS_MAX = 31_536_000;
const USED_UP = `This opener has opened ${IDS_MAX} sessions for that role. Their ids are kept so that none is used twice, and there is no room for more: let another role open them. ${NOTHING_RAN}`;
const CLOSED_UP = `The role has closed ${IDS_MAX} sessions that it had named itself. Their ids are kept so that none is used twice, and there is no room for more. ${NOTHING_RAN}`;

function open(core: Core, call: BuiltinCall): BuiltinOutcome {
  const name = text(call.args, "role") ?? "";
  const id = text(call.args, "session") ?? "";
  const request = text(call.args, "request");
  const seconds = integer(call.args, "expires_in_seconds");
  const role = core.runtime.policy.roles.get(name);
  if (role === undefined || role.sessions !== "opened")
    return bad("There is no role of that name whose sessions are opened");
  if (actsForItself(core, call, role)) return bad("Nobody opens a session for their own role or user");
  if (!isSessionId(id)) return bad("`session` is no session id");
  if (request !== undefined && request.length > REQUEST_CHARS_MAX)
    return bad(`\`request\` is longer than ${REQUEST_CHARS_MAX} characters`);
  if (seconds === undefined || seconds < 1 || seconds > EXPIRES_SECONDS_MAX)
    return bad(`\`expires_in_seconds\` must be 1 to ${EXPIRES_SECONDS_MAX}`);
  const nowMs = core.clock.nowMs();
  const expiresAtMs = nowMs + seconds * 1000;
  const requestLabels = request === undefined ? undefined : core.sessions.taint(call.session);
  const record = { role: name, id, request, requestLabels, openedBy: call.role.name, expiresAtMs };
  const opened = core.sessions.open(record, role.limits.sessions, nowMs);
  if (opened === "used") return bad("That session id was used before; an id is used once");
  if (opened === "too_many")
    return fault(callFault("capacity", `The role's limit sessions is reached. ${NOTHING_RAN}`));
  if (opened === "used_up") return fault(callFault("capacity", USED_UP));
  const by = call.role.name;
  return changed(
    { role: name, session: id, expires_at_ms: expiresAtMs },
    {
      changes: [
        ...core.sessions.expiries(name, nowMs),
        { kind: "session_opened", session: record, by: actorOf(call.peer) },
      ],
      settled: (written) => {
        core.sessions.opened(opened, written);
        if (written)
          core.log("info", "session.opened", { role: name, session: id, by, expires_at_ms: expiresAtMs });
      },
    },
  );
}

/**
 * Closed at once: what can't be written down must not stay open either. What waits or runs in it ends with it,
 * since nobody can be given its answer any more.
 */
function close(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedSession(core, call);
  if (!named.ok) return named;
  const session = named.value;
  const { role, id } = session;
  const change = core.sessions.close(session, actorOf(call.peer));
  if (change === "used_up") return fault(callFault("capacity", CLOSED_UP));
  const calls = stopCalls(core, role, id, "The session was closed.", call);
  core.log("info", "session.closed", { role, session: id, by: call.role.name });
  return changed({ role, session: id, state: session.state, stopped: { calls } }, { changes: [change] });
}

function bad(sentence: string): BuiltinOutcome {
  return fault(callFault("bad_arguments", `${sentence}. ${NOTHING_RAN}`));
}

export const SESSION_TOOLS: readonly BuiltinSource[] = [
  ...SESSION_VIEWS,
  ...ENDORSE_TOOLS,
  {
    name: "callgate.sessions.open",
    description:
      "Opens a session for a role whose sessions are opened, with the user's own words as its request.",
    effect: "write",
    schema: objectSchema(
      {
        role: { type: "string", description: "The role that will use it." },
        session: SESSION,
        request: {
          type: "string",
          description: "The user's own words; conditions can ask for what is in them.",
        },
        expires_in_seconds: { type: "integer", description: "How long it lives." },
      },
      "role",
      "session",
      "expires_in_seconds",
    ),
    run: open,
  },
  {
    name: "callgate.sessions.close",
    description: "Ends a session; its id is not used again.",
    effect: "write",
    schema: objectSchema({ role: ROLE, session: SESSION }, "session"),
    run: close,
  },
];
