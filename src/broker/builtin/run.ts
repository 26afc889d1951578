// Running a tool of the broker's own: the same order as for a provider's, with the broker as the
// provider. What changes something is recorded and replayed like any call; what only reads is not.

import { type CallFault, ok } from "../../base/faults.ts";
import { CLEAN } from "../../base/labels.ts";
import type { RolePolicy, ToolPolicy } from "../../policy/policy.ts";
import type { Session } from "../../session/sessions.ts";
import type { Admitted } from "../admit.ts";
import { failedMessage, resultMessage } from "../answer.ts";
import { type Authorized, decisionRecord } from "../authorize.ts";
import type { Asker, Core, LiveCall } from "../core.ts";
import { endCall, hold, raise, release, sendTo } from "../deliver.ts";
import { checkArguments, failCall, question, type Runner, recordIntent } from "../dispatch.ts";
import type { Builtin, BuiltinCall, BuiltinOutcome } from "./builtin.ts";

export interface Cleared {
  readonly admitted: Admitted;
  readonly role: RolePolicy;
  readonly session: Session;
  readonly authorized: Authorized;
}

export function runBuiltin(core: Core, builtin: Builtin, cleared: Cleared): void {
  const { admitted, session, role, authorized } = cleared;
  const asker: Asker = { peer: admitted.peer, id: admitted.id };
  const refused = checkArguments(builtin.schema, admitted.args) ?? question(authorized);
  if (refused !== undefined) {
    sendTo(asker, true, failedMessage(refused));
    return;
  }
  const key = { role: role.name, session: session.id, call: admitted.request.call };
  const call: BuiltinCall = { peer: admitted.peer, role, session, key, args: admitted.args };
  if (builtin.effect === "read") read(core, builtin, call, asker, admitted.request.arguments.tokenBytes);
  else {
    const decision = decisionRecord(key, authorized.subject, authorized.decision);
    recordIntent(core, admitted, session, builtinTool(builtin), decision, inBroker(core, builtin, call));
  }
}

function read(core: Core, builtin: Builtin, call: BuiltinCall, asker: Asker, argumentsBytes: number): void {
  hold(asker, undefined, argumentsBytes);
  settle(core, builtin.run(core, call), (outcome) => {
    const { message, labels } = outcomeMessage(outcome);
    core.store.commit(raise(core, call.session, labels, call.key), (unwritten) => {
      // What it shows must not be delivered before the taint that it raises is written down.
      if (unwritten === undefined || labels === CLEAN) sendTo(asker, true, message);
      else sendTo(asker, true, failedMessage({ code: "unavailable", sentence: unwritten.sentence }));
      release(asker, argumentsBytes);
    });
  });
}

function inBroker(core: Core, builtin: Builtin, call: BuiltinCall): Runner {
  return {
    spread: () => [],
    run(live: LiveCall): void {
      live.stage = "dispatched";
      settle(core, builtin.run(core, call), (outcome) => {
        if (!outcome.ok) return failCall(core, live, outcome.fault);
        const { message, labels } = outcomeMessage(outcome);
        endCall(core, live, { message, labels, status: "result" });
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
  outcome: BuiltinOutcome | Promise<BuiltinOutcome>,
  done: (outcome: BuiltinOutcome) => void,
): void {
  if (!(outcome instanceof Promise)) {
    done(outcome);
    return;
  }
  outcome.then(done, (error: unknown) => {
    core.log("error", "broker.fault", {
      where: "builtin",
      fault: error instanceof Error ? error.name : "unknown",
    });
    done({ ok: false, fault: INTERNAL });
  });
}

const INTERNAL: CallFault = {
  code: "unavailable",
  sentence: "The broker met a fault of its own; what it did is in its log.",
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

/** A successful outcome. */
export function shown(content: unknown, labels = CLEAN): BuiltinOutcome {
  return ok({ content, labels });
}
