// `callgate.sessions.open|show|close`: sessions that a trusted role opens for others.

import { fault } from "../../base/faults.ts";
import { isSessionId } from "../../base/ids.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { Core } from "../core.ts";
import { objectSchema, ROLE, SESSION, text } from "./arguments.ts";
import type { BuiltinCall, BuiltinOutcome } from "./builtin.ts";
import { shown } from "./run.ts";
import type { BuiltinSource } from "./table.ts";
import { actsForItself, namedRole, sessionLabels } from "./visibility.ts";

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
  const record = { role: name, id, request, openedBy: call.role.name, expiresAtMs };
  const opened = core.sessions.open(record, role.limits.sessions, nowMs);
  if (opened === "used") return bad("That session id was used before; an id is used once");
  if (opened === "too_many")
    return fault(callFault("capacity", `The role's limit sessions is reached. ${NOTHING_RAN}`));
  core.store.commit([opened, changeBy(call, "session opened", id)], () => undefined);
  core.log("info", "session.opened", {
    role: name,
    session: id,
    by: call.role.name,
    expires_at_ms: expiresAtMs,
  });
  return shown({ role: name, session: id, expires_at_ms: expiresAtMs });
}

function close(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const session = core.sessions.find(named.value.name, text(call.args, "session") ?? "");
  if (session === undefined) return bad("The role has no session of that id");
  const change = core.sessions.close(session);
  core.store.commit([change, changeBy(call, "session closed", session.id)], () => undefined);
  core.log("info", "session.closed", { role: session.role, session: session.id, by: call.role.name });
  return shown({ role: session.role, session: session.id, state: session.state });
}

function show(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const session = core.sessions.find(named.value.name, text(call.args, "session") ?? call.session.id);
  if (session === undefined) return bad("The role has no session of that id");
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
  return shown(content, sessionLabels(core, session.role, session.id));
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
