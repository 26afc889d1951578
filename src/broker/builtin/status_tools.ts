// `callgate.status`, `callgate.reload`, `callgate.freeze`: the daemon itself.

import { type CallFault, fault, ok, type Result } from "../../base/faults.ts";
import { isSessionId } from "../../base/ids.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { actorOf } from "../live.ts";
import { metricsReport } from "../metrics_report.ts";
import { flag, objectSchema, ROLE, SESSION, text } from "./arguments.ts";
import { type BuiltinSource, changed, shown } from "./builtin.ts";
import { isLive } from "./call_row.ts";
import { stopCalls } from "./stop.ts";
import { namedRole, namedSession } from "./visibility.ts";

function status(core: Core, call: BuiltinCall): BuiltinOutcome {
  const measured = flag(call.args, "metrics") === true;
  if (measured && !call.role.operator) return NOT_OPERATOR;
  const { policy, stale } = core.runtime;
  const own = {
    role: call.role.name,
    draining: core.draining !== undefined,
    policy: policy.version,
    policy_stale: stale !== undefined,
    uptime_ms: core.clock.nowMs() - core.startedAtMs,
  };
  if (!call.role.operator) return shown(own);
  const roles = [...policy.roles.values()].map((role) => {
    const peers = core.peers.ofRole(role.name);
    return {
      role: role.name,
      connections: peers.length,
      asking: peers.reduce((sum, peer) => sum + peer.asking.size, 0),
      serving: peers.reduce((sum, peer) => sum + peer.serving.size, 0),
      frozen: core.sessions.isFrozen(role.name),
      frozen_sessions: core.sessions.frozenIds(role.name).length,
      taint: core.sessions.roleTaint(role.name),
    };
  });
  const warning = policy.allowSameUser
    ? "allow_same_user: one user may open sessions, approve, endorse and settle for the agents that it runs itself"
    : null;
  return shown({
    ...own,
    version: core.version ?? null,
    policy_stale_because: stale ?? null,
    running_calls: core.live.running,
    pending_approvals: core.approvals.pending,
    unknown_calls: unknownCalls(core),
    store: { condition: core.store.condition },
    audit: { seq: core.store.audit.head().seq },
    tools: policy.tools.size,
    grants: policy.grants.length,
    roles,
    warning,
    ...(measured ? { metrics: metricsReport(core) } : {}),
  });
}

const NOT_OPERATOR = fault(
  callFault("bad_arguments", `\`metrics\` is for roles that are operators. ${NOTHING_RAN}`),
);

async function reload(core: Core, call: BuiltinCall): Promise<BuiltinOutcome> {
  const refused = await core.requestReload();
  return shown({
    reloaded: refused === undefined,
    policy: core.runtime.policy.version,
    refused: call.role.operator ? (refused ?? null) : null,
  });
}

/** Calls without an outcome that nobody works on, counted up to this many. */
const UNKNOWN_COUNTED = 1000;

function unknownCalls(core: Core): number {
  let unknown = 0;
  for (const record of core.store.calls()) {
    if (record.state !== "dispatched" || unknown === UNKNOWN_COUNTED) break; // those without an outcome come first
    if (!isLive(core, record)) unknown += 1;
  }
  return unknown;
}

/**
 * Freezing takes effect at once, thawing once it is written down. An operator may name a session that is not
 * known yet: a role that names its own could use it at any time.
 */
function freeze(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const { name } = named.value;
  const session = text(call.args, "session");
  const frozen = flag(call.args, "frozen") ?? true;
  if (session !== undefined) {
    const found = call.role.operator ? namedId(session) : namedSession(core, call);
    if (!found.ok) return found;
  }
  if (!frozen && name === call.role.name) {
    return fault(callFault("bad_arguments", `A role can't unfreeze itself. ${NOTHING_RAN}`));
  }
  const by = call.role.name;
  core.log("warn", "role.frozen", { role: name, session, frozen, by });
  if (frozen) core.sessions.freeze(name, session, true);
  const stopped = frozen ? stop(core, name, session, call) : { calls: 0, connections: 0 };
  return changed(
    { role: name, session: session ?? null, frozen, stopped },
    {
      changes: [{ kind: "frozen", role: name, session, frozen, by: actorOf(call.peer) }],
      settled: (written) => {
        if (written && !frozen) core.sessions.freeze(name, session, false);
      },
    },
  );
}

function namedId(session: string): Result<string, CallFault> {
  if (isSessionId(session)) return ok(session);
  return fault(callFault("bad_arguments", `\`session\` is no session id. ${NOTHING_RAN}`));
}

/** Ends what waits and runs and, for a whole role, lets its connections go. The call that froze is not among them. */
function stop(core: Core, role: string, session: string | undefined, by: BuiltinCall) {
  const calls = stopCalls(core, role, session, "An operator has frozen the role or the session.", by);
  const peers = session === undefined ? core.peers.ofRole(role).filter((peer) => peer !== by.peer) : [];
  for (const peer of peers) peer.connection.fail("internal", "an operator has frozen this role");
  return { calls, connections: peers.length };
}

export const STATUS_TOOLS: readonly BuiltinSource[] = [
  {
    name: "callgate.status",
    description:
      "How the broker is: policy in force, whether a reload failed; for operators also roles and load.",
    effect: "read",
    schema: objectSchema({
      metrics: {
        type: "boolean",
        description: "Also what the broker has counted since it started. For operators only.",
      },
    }),
    run: status,
  },
  {
    name: "callgate.reload",
    description: "Reads the config file again. A bad file changes nothing, and says so.",
    effect: "write",
    schema: objectSchema({}),
    run: reload,
  },
  {
    name: "callgate.freeze",
    description:
      "Stops a role, or one session of it, at once: connections, running and new calls. `frozen` false lets it go on.",
    effect: "write",
    schema: objectSchema(
      { role: ROLE, session: SESSION, frozen: { type: "boolean", description: "Default true." } },
      "role",
    ),
    run: freeze,
  },
];
