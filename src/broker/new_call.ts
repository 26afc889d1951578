// How a call begins to live: its record, and what the broker keeps of it until its final answer is out.

import type { JsonObject } from "../base/json.ts";
import { CLEAN } from "../base/labels.ts";
import type { ToolPolicy } from "../policy/policy.ts";
import type { Quota } from "../session/quota.ts";
import type { Session } from "../session/sessions.ts";
import { itemName } from "../session/taint.ts";
import type { CallRecord } from "../store/records.ts";
import type { Admitted } from "./admit.ts";
import type { LiveCall } from "./live.ts";

/** A call with its asker, about to be recorded; or about to be asked, which is always durable. */
export function newCall(
  admitted: Admitted,
  session: Session,
  tool: ToolPolicy,
  stage: "recording" | "asking",
): LiveCall {
  const { asker, args } = admitted;
  const record = newRecord(admitted, session, tool, stage === "asking");
  const live = liveCall(record, session, asker.peer.quota, tool, storeItem(tool, args), stage);
  live.askers.push(asker);
  live.waiting = 1;
  live.unwritten = 1;
  return live;
}

export function newRecord(
  { asker, request, equal, nowMs }: Admitted,
  session: Session,
  tool: ToolPolicy,
  asked: boolean,
): CallRecord {
  return callRecord(
    { role: session.role, session: session.id, call: request.call },
    {
      tool: request.tool,
      arguments: request.arguments.text,
      uid: asker.peer.connection.peer?.uid,
      durable: asked || tool.record === "durable" || tool.effect !== "read",
      equal: comparesEqual(tool) ? equal() : undefined,
      askedAtMs: nowMs,
    },
  );
}

export function callRecord(
  key: CallRecord["key"],
  asked: Pick<CallRecord, "tool" | "arguments" | "uid" | "durable" | "equal" | "askedAtMs">,
): CallRecord {
  return {
    key,
    ...asked,
    state: "dispatched",
    status: undefined,
    code: undefined,
    messages: [],
    labels: CLEAN,
    endedAtMs: 0,
  };
}

/** Whether running an equal call of that tool a second time may do harm. The broker's own tools have no provider. */
export function comparesEqual(tool: ToolPolicy): boolean {
  return tool.effect !== "read" && tool.role !== BROKER_ROLE;
}

/** No role can have this name, so a built-in's calls never look like a provider's. */
export const BROKER_ROLE = "callgate.";

/** One without askers. */
export function liveCall(
  record: CallRecord,
  session: Session,
  quota: Quota,
  tool: ToolPolicy,
  item: string | undefined,
  stage: "recording" | "asking",
): LiveCall {
  return {
    key: record.key,
    tool,
    item,
    quota,
    session,
    record,
    aliases: new Map(),
    question: undefined,
    answering: undefined,
    hasIntent: stage === "recording",
    used: undefined,
    startedAtMs: record.askedAtMs,
    dispatchedAtMs: undefined,
    askers: [],
    delivered: [],
    stage,
    serving: undefined,
    contentBytes: 0,
    parts: 0,
    messages: 0,
    keptBytes: 0,
    labels: CLEAN,
    stopTimer: undefined,
    humanUntilMs: undefined,
    waitsForHuman: false,
    unwritten: 0,
    ending: undefined,
    answer: undefined,
    waiting: 0,
  };
}

/** Of a store whose items are told apart: the item; undefined: any of them. */
export function storeItem(tool: ToolPolicy, args: JsonObject): string | undefined {
  if (tool.storeKey === undefined) return undefined;
  const key = args.get(tool.storeKey);
  return typeof key === "string" ? itemName(key) : undefined;
}
