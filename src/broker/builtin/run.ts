// Running a tool of the broker's own: the same order as for a provider's, with the broker as the
// provider. What changes something is recorded and replayed like any call; what only reads is not.

import type { CallFault, DenyReason } from "../../base/faults.ts";
import { CLEAN } from "../../base/labels.ts";
import type { RolePolicy, ToolPolicy } from "../../policy/policy.ts";
import type { Session } from "../../session/sessions.ts";
import type { Admitted } from "../admit.ts";
import { deniedMessage, failedMessage, NOTHING_RAN, resultMessage } from "../answer.ts";
import { answer, waits } from "../asking.ts";
import { type Authorized, authorizeCounted, decisionRecord, sessionDenial } from "../authorize.ts";
import { type Builtin, type BuiltinCall, type BuiltinOutcome, type Core, roleOf } from "../core.ts";
import { endCall, failCall, raise } from "../deliver.ts";
import { checkArguments, type Runner, recordIntent } from "../dispatch.ts";
import type { Asker, LiveCall } from "../live.ts";
import type { CallOutcome } from "../metrics.ts";
import { BROKER_ROLE } from "../new_call.ts";
import type { Used } from "../runtime_grants.ts";
import { enter } from "../stages.ts";
import { abandon, attempt, type Blamed, write } from "../writing.ts";

export interface Cleared {
  readonly admitted: Admitted;
  readonly role: RolePolicy;
  readonly session: Session;
  readonly authorized: Authorized;
}

export function runBuiltin(core: Core, builtin: Builtin, cleared: Cleared): void {
  const { admitted, session, role, authorized } = cleared;
  const { asker } = admitted;
  const refused = checkArguments(builtin.schema, admitted.args) ?? standsInTheWay(core, builtin, cleared);
  const key = { role: role.name, session: session.id, call: admitted.request.call };
  if (refused !== undefined) {
    core.metrics.ended(builtin.name, refused.code);
    core.audit.failed(key, builtin.name, refused.code);
    return answer(core, asker, failedMessage(refused));
  }
  const call: BuiltinCall = { peer: asker.peer, role, session, key, args: admitted.args };
  if (builtin.effect === "read") {
    core.metrics.decided(authorized.decision.kind, authorized.decision.row);
    core.audit.allowedRead(decisionRecord(key, authorized.subject, authorized.decision));
    const used = core.grants.use(authorized.decision, admitted.nowMs);
    core.turns.take(role.name, () =>
      attempt(core, asker, () => read(core, builtin, call, asker, authorized, used)),
    );
  } else
    recordIntent(core, admitted, session, builtinTool(builtin), authorized, inBroker(core, builtin, call));
}

/**
 * A question about a tool of the broker's own is put to nobody: who answers acts through such tools too.
 * While records can't be written only operators try to change something; what reads goes on.
 */
function standsInTheWay(core: Core, builtin: Builtin, { role, authorized }: Cleared): CallFault | undefined {
  if (authorized.decision.kind === "ask") return UNASKABLE;
  const writable = builtin.effect === "read" || role.operator || core.store.condition === "ok";
  return writable ? undefined : UNWRITABLE;
}

const UNASKABLE: CallFault = {
  code: "unavailable",
  sentence: `A grant asks a human about this tool, and the broker's own tools can't be asked about. ${NOTHING_RAN}`,
};

/** What it shows is not delivered before the taint that it raises is written down. */
function read(
  core: Core,
  builtin: Builtin,
  call: BuiltinCall,
  asker: Asker,
  authorized: Authorized,
  used: Used,
): void {
  const role = roleOf(core, call.peer.connection);
  const end = (message: Buffer, as: CallOutcome) => {
    core.metrics.ended(builtin.name, as);
    answer(core, asker, message);
  };
  if (!waits(asker) || role === undefined) {
    core.metrics.ended(builtin.name, "cancelled"); // nobody is there any more, and nothing was read
    return used.settled(false);
  }
  settle(core, asker, builtin.run(core, { ...call, role }), (outcome) => {
    const denied = takenAway(core, call, authorized, used);
    if (denied !== undefined) {
      used.settled(false);
      core.metrics.decided("deny", denied);
      return end(deniedMessage(denied), "denied");
    }
    const { message, labels } = outcomeMessage(outcome);
    const as = outcome.ok ? "result" : outcome.fault.code;
    const changes = [...used.changes, ...raise(core, call.session, labels, call.key)];
    if (changes.length === 0) return end(message, as); // also while nothing can be written
    if (core.store.condition === "stalled") return end(failedMessage(UNWRITABLE), UNWRITABLE.code);
    write(core, asker, changes, (unwritten) => {
      used.settled(unwritten === undefined);
      if (unwritten === undefined) end(message, as);
      else end(failedMessage(UNWRITABLE), UNWRITABLE.code);
    });
  });
}

/** What takes its time is shown to nobody who lost the right to see it meanwhile. */
function takenAway(
  core: Core,
  { session }: BuiltinCall,
  authorized: Authorized,
  used: Used,
): DenyReason | undefined {
  if (session.frozen) return sessionDenial("frozen").reason;
  if (core.sessions.hasEnded(session, core.clock.nowMs())) return sessionDenial("ended").reason;
  if (core.runtime === authorized.runtime) return undefined;
  const again = authorizeCounted(core, session, authorized, used);
  return again.kind === "denied" ? again.decision.reason : undefined;
}

function inBroker(core: Core, builtin: Builtin, call: BuiltinCall): Runner {
  return {
    provider: undefined,
    definition: undefined,
    spread: () => [],
    run(live: LiveCall): void {
      enter(live, "dispatch");
      // While the intent was being written a reload may have changed what the role may do.
      const role = roleOf(core, call.peer.connection) ?? call.role;
      settle(core, live, builtin.run(core, { ...call, role }), (outcome) => {
        if (!outcome.ok) return failCall(core, live, outcome.fault);
        const { changes = [], settled = () => undefined } = outcome.value;
        endCall(core, live, { ...outcomeMessage(outcome), status: "result", changes, settled });
      });
    },
  };
}

function outcomeMessage(outcome: BuiltinOutcome) {
  if (!outcome.ok) return { message: failedMessage(outcome.fault), labels: CLEAN };
  const { content, labels } = outcome.value;
  return { message: resultMessage(jsonContent(content), labels, false), labels };
}

function settle(
  core: Core,
  blamed: Blamed,
  outcome: BuiltinOutcome | Promise<BuiltinOutcome>,
  done: (outcome: BuiltinOutcome) => void,
): void {
  if (!(outcome instanceof Promise)) return done(outcome);
  outcome.then(
    (settled) => attempt(core, blamed, () => done(settled)),
    (error: unknown) => abandon(core, blamed, error),
  );
}

const UNWRITABLE: CallFault = {
  code: "unavailable",
  sentence: `The broker can't write its records now. ${NOTHING_RAN}`,
};

function jsonContent(content: unknown): string {
  return JSON.stringify(content, (_, value: unknown) =>
    typeof value === "bigint" ? value.toString() : value,
  );
}

function builtinTool(builtin: Builtin): ToolPolicy {
  return {
    name: builtin.name,
    role: BROKER_ROLE,
    description: builtin.description,
    effect: "write",
    floor: CLEAN,
    timeoutMs: 0,
    resultBytesMax: 0,
    onOversize: "fail",
    schema: builtin.schema,
    destinations: [],
    store: undefined,
    storeKey: undefined,
    record: "durable",
    auditArguments: [],
  };
}
