// `callgate.calls.settle`: an operator says how a call ended of which the broker never heard the end. It
// neither runs the call nor frees its id. Invariant: what a settlement writes is what the caller hears from then on,
// byte for byte; a call has one outcome, and one that is known is never touched.

import { type CallFault, fault } from "../../base/faults.ts";
import { DATA_CLASSES, join, type Labels } from "../../base/labels.ts";
import type { CallKey, CallRecord, Change } from "../../store/records.ts";
import { callFault, failedMessage, NOTHING_RAN, resultMessage } from "../answer.ts";
import { MESSAGE_BYTES_MAX } from "../asking.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { actorOf } from "../live.ts";
import { CALL, flag, objectSchema, text } from "./arguments.ts";
import { type BuiltinSource, changed } from "./builtin.ts";
import { isLive, namedCall } from "./call_row.ts";
import { actsForItself, namedRole } from "./visibility.ts";

const TEXT_CHARS_MAX = 262_144;

interface Settlement {
  readonly message: Buffer;
  readonly status: "result" | "failed";
  readonly fault: CallFault | undefined;
  readonly labels: Labels;
}

function settle(core: Core, call: BuiltinCall): BuiltinOutcome {
  const named = namedRole(core, call);
  if (!named.ok) return named;
  if (!call.role.operator) return bad("Only an operator settles calls");
  if (actsForItself(core, call, named.value)) return bad("Nobody settles a call of their own role or user");
  const keyed = namedCall(core, call);
  if (!keyed.ok) return keyed;
  const record = core.store.findCall(keyed.value);
  if (record === undefined || record.state === "ended" || isLive(core, record))
    return bad("There is no such call without an outcome: it is not known, or runs, or has ended");
  if (!core.runtime.policy.allowSameUser && isSameUser(call, record))
    return bad("Nobody settles a call of their own role or user");
  const settlement = settlementOf(core, call, record);
  if (typeof settlement === "string") return bad(settlement);
  const nameOf = settlingName(keyed.value);
  if (core.sessions.settling.has(nameOf)) return fault(BEING_SETTLED);
  core.sessions.settling.add(nameOf);
  const before = record.labels;
  record.labels = settlement.labels;
  return changed(
    { settled: true, as: settlement.status, labels: settlement.labels },
    {
      changes: [outcome(core, call, record, settlement)],
      settled: (written) => {
        core.sessions.settling.delete(nameOf);
        if (!written) record.labels = before;
        else {
          core.doubts.settled(record);
          core.log("warn", "call.settled", logged(record, settlement, call));
        }
      },
    },
  );
}

/** The user who asked, whatever roles it may connect as by now. */
function isSameUser({ peer }: BuiltinCall, { uid }: CallRecord): boolean {
  const own = peer.connection.peer?.uid;
  return own === undefined || own === uid;
}

/** What was given before stays below it: a reader of the last message knows the labels of all. */
function settlementOf(core: Core, { args }: BuiltinCall, record: CallRecord): Settlement | string {
  const words = text(args, "text") ?? "";
  if (words.length > TEXT_CHARS_MAX) return `\`text\` is longer than ${TEXT_CHARS_MAX} characters`;
  const given: Labels = {
    class: DATA_CLASSES.find((one) => one === text(args, "class")) ?? "restricted",
    untrusted: flag(args, "untrusted") ?? true,
  };
  const floor = core.definitions.resolve(core.runtime.policy, record.tool)?.tool.floor;
  const raised = floor === undefined ? given : join(given, floor);
  const labels = join(raised, record.labels);
  const failure = callFault("provider", `An operator has settled this call as failed: ${words}`);
  const settlement: Settlement =
    text(args, "as") === "result"
      ? { message: resultMessage(words, labels, false), status: "result", fault: undefined, labels }
      : { message: failedMessage(failure), status: "failed", fault: failure, labels };
  return settlement.message.length > MESSAGE_BYTES_MAX ? "`text` does not fit in a frame" : settlement;
}

function outcome(core: Core, call: BuiltinCall, record: CallRecord, settlement: Settlement): Change {
  const { message, status } = settlement;
  return {
    kind: "outcome",
    record,
    message,
    status,
    code: settlement.fault?.code,
    atMs: core.clock.nowMs(),
    settledBy: actorOf(call.peer),
  };
}

function logged({ key, tool }: CallRecord, { status, labels }: Settlement, call: BuiltinCall) {
  const { role, session } = key;
  const by = call.role.name;
  return { role, session, call: String(key.call), tool, status, ...labels, by };
}

/** No part of it holds a space. */
function settlingName({ role, session, call }: CallKey): string {
  return `${role} ${session} ${call}`;
}

const BEING_SETTLED = callFault("conflict", `The call is being settled by somebody else. ${NOTHING_RAN}`);

function bad(sentence: string): { readonly ok: false; readonly fault: CallFault } {
  return { ok: false, fault: callFault("bad_arguments", `${sentence}. ${NOTHING_RAN}`) };
}

export const SETTLE_TOOLS: readonly BuiltinSource[] = [
  {
    name: "callgate.calls.settle",
    description:
      "Says how a call ended whose outcome nobody knows: its caller hears this from then on. Runs nothing; its id stays used.",
    effect: "write",
    schema: objectSchema(
      {
        role: { type: "string", description: "The call's role." },
        session: { type: "string", description: "The call's session." },
        call: CALL,
        as: { type: "string", enum: ["failed", "result"], description: "How it ended." },
        text: { type: "string", description: "The result's content, or why it failed; its caller reads it." },
        class: { type: "string", enum: DATA_CLASSES, description: "Of the text; left out: restricted." },
        untrusted: { type: "boolean", description: "Of the text; left out: true." },
      },
      "role",
      "session",
      "call",
      "as",
      "text",
    ),
    run: settle,
  },
];
