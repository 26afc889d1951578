// Running a tool of the broker's own: the same order as for a provider's, with the broker as the
// provider. What changes something is recorded and replayed like any call; what only reads is not.

import type { CallFault } from "../../base/faults.ts";
import { CLEAN } from "../../base/labels.ts";
import type { RolePolicy, ToolPolicy } from "../../policy/policy.ts";
import type { Session } from "../../session/sessions.ts";
import type { Admitted } from "../admit.ts";
import { failedMessage, NOTHING_RAN, resultMessage } from "../answer.ts";
import { answer } from "../asking.ts";
import type { Authorized } from "../authorize.ts";
import type { Builtin, BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { endCall, failCall, raise } from "../deliver.ts";
import { checkArguments, question, type Runner, recordIntent } from "../dispatch.ts";
import type { Asker, LiveCall } from "../live.ts";
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
  const refused = checkArguments(builtin.schema, admitted.args) ?? question(authorized);
  if (refused !== undefined) return answer(core, asker, failedMessage(refused));
  const key = { role: role.name, session: session.id, call: admitted.request.call };
  const call: BuiltinCall = { peer: asker.peer, role, session, key, args: admitted.args };
  if (builtin.effect === "read") read(core, builtin, call, asker);
  else recordIntent(core, admitted, session, builtinTool(builtin), authorized, inBroker(core, builtin, call));
}

/** What it shows is not delivered before the taint that it raises is written down. */
function read(core: Core, builtin: Builtin, call: BuiltinCall, asker: Asker): void {
  settle(core, asker, builtin.run(core, call), (outcome) => {
    const { message, labels } = outcomeMessage(outcome);
    const changes = raise(core, call.session, labels, call.key);
    if (changes.length === 0) return answer(core, asker, message); // also while nothing can be written
    write(core, asker, changes, (unwritten) =>
      answer(core, asker, unwritten === undefined ? message : failedMessage(UNWRITABLE)),
    );
  });
}

function inBroker(core: Core, builtin: Builtin, call: BuiltinCall): Runner {
  return {
    provider: undefined,
    spread: () => [],
    run(live: LiveCall): void {
      live.stage = "dispatched";
      settle(core, live, builtin.run(core, call), (outcome) => {
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

/** No role can have this name, so a built-in's calls never look like a provider's. */
const BROKER_ROLE = "callgate.";

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
  };
}
