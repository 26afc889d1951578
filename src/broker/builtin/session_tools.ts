// `callgate.sessions.open|show|close`: sessions that a trusted role opens for others.

import { fault } from "../../base/faults.ts";
import { isSessionId } from "../../base/ids.ts";
import { CLEAN, join } from "../../base/labels.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { objectSchema, ROLE, SESSION, text } from "./arguments.ts";
import { type BuiltinSource, changed, shown } from "./builtin.ts";
import { actsForItself, namedSession } from "./visibility.ts";

const REQUEST_CHARS_MAX = 16_384;
const EXPIRES_SECONDS_MAX = 31_536_000n;

function open(core: Core, call: BuiltinCall): BuiltinOutcome {
  const name = text(call.args, "role") ?? "";
  const id = text(call.args, "session") ?? "";
  const request = text(call.args, "request");
  const seconds = call.args.get("expires_in_seconds") as bigint;
  const role = core.runtime.policy.roles.get(name);
  if (role === undefined || role.sessions !== "opened")
    return bad("There is no role of that name whose sessions are opened");
  if (actsForItself(core, call, role)) return bad("Nobody opens a session for their own role or user");
  if (!isSessionId(id)) return bad("`session` is no session id");
  if (request !== undefined && request.length > REQUEST_CHARS_MAX)
    return bad(`\`request\` is longer than ${REQUEST_CHARS_MAX} characters`);
  if (seconds < 1n || seconds > EXPIRES_SECONDS_MAX)
    return bad(`\`expires_in_seconds\` must be 1 to ${EXPIRES_SECONDS_MAX}`);
  const nowMs = core.clock.nowMs();
  const expiresAtMs = nowMs + Number(seconds) * 1000;
  const requestLabels = request === undefined ? undefined : core.sessions.taint(call.session);
  const record = { role: name, id, request, requestLabels, openedBy: call.role.name, expiresAtMs };
  const opened = core.sessions.open(record, role.limits.sessions, nowMs);
  if (opened === "used") return bad("That session id was used before; an id is used once");
  if (opened === "too_many")
    return fault(callFault("capacity", `The role's limit sessions is reached. ${NOTHING_RAN}`));
  const by = call.role.name;
  return changed(
    { role: name, session: id, expires_at_ms: expiresAtMs },
    {
      changes: [{ kind: "session_opened", session: record }, changeBy(call, "session opened", id)],
      settled: (written) => {
        core.sessions.opened(opened, written);
        if (written)
          core.log("info", "session.opened", { role: name, session: id, by, expires_at_ms: expiresAtMs });
      },
    },
  );
}

/** Closed at once: what can't be written down must not stay open either. */
function close(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedSession(core, call);
  if (!named.ok) return named;
  const session = named.value;
  const change = core.sessions.close(session);
  core.log("info", "session.closed", { role: session.role, session: session.id, by: call.role.name });
  return changed(
    { role: session.role, session: session.id, state: session.state },
    { changes: [change, changeBy(call, "session closed", session.id)] },
  );
}

function show(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedSession(core, call);
  if (!named.ok) return named;
  const session = named.value;
  const raisedBy = core.sessions.raisedBy(session);
  const content = {
    role: session.role,
    session: session.id,
    state: session.frozen ? "frozen" : session.state,
    taint: core.sessions.taint(session),
    raised_by: raisedBy === undefined ? null : { session: raisedBy.session, call: raisedBy.call },
    opened_by: session.openedBy ?? null,
    request: session.request ?? null,
    expires_at_ms: session.expiresAtMs ?? null,
  };
  const labels = join(core.sessions.taint(session), session.requestLabels ?? CLEAN);
  return shown(content, labels);
}

function changeBy(call: BuiltinCall, what: string, subject: string) {
  return { kind: "audit", record: { kind: "change", what, by: call.role.name, subject } } as const;
}

function bad(sentence: string): BuiltinOutcome {
  return fault(callFault("bad_arguments", `${sentence}. ${NOTHING_RAN}`));
}

export const SESSION_TOOLS: readonly BuiltinSource[] = [
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
    name: "callgate.sessions.show",
    description: "A session's state, its taint and the call that raised it.",
    effect: "read",
    schema: objectSchema({ role: ROLE, session: SESSION }),
    run: show,
  },
  {
    name: "callgate.sessions.close",
    description: "Ends a session; its id is not used again.",
    effect: "write",
    schema: objectSchema({ role: ROLE, session: SESSION }, "session"),
    run: close,
  },
];
