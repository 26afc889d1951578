// Stages 4 to 8: argument schema, provider, question, intent, and the call's way to whoever runs it.
// Invariant: nothing reaches a provider before its intent is written and the taint it carries along
// is joined into whatever it can reach.

import { type CallFault, fault, ok, type Result } from "../base/faults.ts";
import { SESSION_ID_CHARS_MAX } from "../base/ids.ts";
import type { JsonObject } from "../base/json.ts";
import { CLEAN, type Labels } from "../base/labels.ts";
import type { ToolPolicy } from "../policy/policy.ts";
import type { Session } from "../session/sessions.ts";
import type { AuditRecord, CallRecord, Change } from "../store/records.ts";
import { encodeMessage } from "../wire/envelope.ts";
import { FrameFault } from "../wire/fault.ts";
import type { JsonString } from "../wire/json_string.ts";
import type { Admitted } from "./admit.ts";
import { callFault, failedMessage, MAY_HAVE_RUN, NOTHING_RAN } from "./answer.ts";
import type { Authorized } from "./authorize.ts";
import type { Core, LiveCall } from "./core.ts";
import { endCall, hold, release, sendTo } from "./deliver.ts";
import type { Peer } from "./peers.ts";

/** A call that the decision lets through, and the definition of its tool. */
export interface Located {
  readonly tool: ToolPolicy;
  /** The pinned definition that a provider's connection must have announced. */
  readonly digest: string | undefined;
}

export function locate(core: Core, name: string): Result<Located, CallFault> {
  const resolved = core.definitions.resolve(core.runtime.policy, name);
  if (resolved === undefined)
    return fault(callFault("no_provider", `The tool is not in service. ${NOTHING_RAN}`));
  return ok({ tool: resolved.tool, digest: resolved.pin?.definition.digest });
}

export function checkArguments(schema: ToolPolicy["schema"], args: JsonObject): CallFault | undefined {
  const mismatch = schema?.check(args);
  if (mismatch === undefined) return undefined;
  return callFault("bad_arguments", `${mismatch.message} (at "${mismatch.pointer}"). ${NOTHING_RAN}`);
}

/** The provider's connection that would run it now. */
export function place(core: Core, located: Located): Result<Peer, CallFault> {
  const { tool, digest } = located;
  const peer = core.peers.leastLoaded(tool.role, tool.name, digest);
  if (peer !== undefined) return ok(peer);
  const why =
    core.peers.ofRole(tool.role).length === 0
      ? "Its provider is not connected"
      : "No connection of its provider serves this definition";
  return fault(callFault("no_provider", `${why}. ${NOTHING_RAN}`));
}

/** Stage 6. Approvals are not built yet: a question can't be put to anybody, so the call fails closed. */
export function question(authorized: Authorized): CallFault | undefined {
  if (authorized.decision.kind === "allow") return undefined;
  return callFault(
    "unavailable",
    `A human would have to approve this call, and approvals are not available. ${NOTHING_RAN}`,
  );
}

/** How a recorded call runs, and what its taint reaches before it does. */
export interface Runner {
  spread(live: LiveCall): readonly Change[];
  run(live: LiveCall): void;
}

/** Only what is recorded can run: a runner is handed its LiveCall here and nowhere else. */
export function recordIntent(
  core: Core,
  admitted: Admitted,
  session: Session,
  tool: ToolPolicy,
  decision: AuditRecord,
  runner: Runner,
): void {
  const { request, peer, args } = admitted;
  const key = { role: session.role, session: session.id, call: request.call };
  const record: CallRecord = {
    key,
    tool: request.tool,
    arguments: request.arguments.text,
    uid: peer.connection.peer?.uid,
    state: "dispatched",
    messages: [],
    labels: CLEAN,
    endedAtMs: 0,
  };
  const live: LiveCall = {
    key,
    tool,
    args,
    session,
    record,
    startedAtMs: admitted.nowMs,
    argumentsBytes: request.arguments.tokenBytes,
    askers: [{ peer, id: admitted.id }],
    delivered: [],
    stage: "recording",
    serving: undefined,
    contentBytes: 0,
    parts: 0,
    labels: CLEAN,
    stopTimer: undefined,
  };
  core.live.add(live);
  hold(live.askers[0]!, live, live.argumentsBytes);
  const changes: Change[] = [
    { kind: "audit", record: decision },
    ...runner.spread(live),
    { kind: "intent", record },
    { kind: "audit", record: { kind: "dispatch", key, tool: tool.name, provider: tool.role } },
  ];
  core.store.commit(changes, (unwritten) => {
    if (unwritten !== undefined) refuseUnwritten(core, live);
    else if (live.stage === "recording") runner.run(live); // else it was cancelled while its intent was being written
  });
}

/** Runs on the provider's least loaded connection. */
export function onProvider(core: Core, args: JsonString): Runner {
  return { spread: (live) => spread(core, live), run: (live) => invoke(core, live, args) };
}

/** The call's taint reaches the provider as a caller, and the tool's store where the call can change it. */
function spread(core: Core, live: LiveCall): readonly Change[] {
  const { tool, session, key } = live;
  const taint = core.sessions.taint(session);
  const changes = [core.sessions.raiseRole(tool.role, taint, key)];
  if (tool.store !== undefined && tool.effect !== "read") {
    changes.push(core.sessions.raiseStore(tool.store, storeKey(tool, live.args), taint, key));
  }
  return changes.filter((change) => change !== undefined);
}

/** Of a store whose items are told apart: the item; undefined: the whole store. */
function storeKey(tool: ToolPolicy, args: JsonObject): string | undefined {
  if (tool.storeKey === undefined) return undefined;
  const key = args.get(tool.storeKey);
  return typeof key === "string" ? key : undefined;
}

/** What was put into the store that a result comes from. */
export function storeLabels(core: Core, live: LiveCall): Labels {
  const { tool } = live;
  return tool.store === undefined ? CLEAN : core.sessions.storeTaint(tool.store, storeKey(tool, live.args));
}

function refuseUnwritten(core: Core, live: LiveCall): void {
  live.stage = "ended";
  core.live.remove(live);
  const message = failedMessage(
    callFault("unavailable", `The broker can't write its records now. ${NOTHING_RAN}`),
  );
  for (const asker of live.askers) {
    sendTo(asker, true, message);
    release(asker, live.argumentsBytes);
  }
}

/** Sends a recorded call to the provider's least loaded connection, chosen now: the one placed may be gone. */
function invoke(core: Core, live: LiveCall, args: JsonString): void {
  const resolved = core.definitions.resolve(core.runtime.policy, live.tool.name);
  const peer = core.peers.leastLoaded(live.tool.role, live.tool.name, resolved?.pin?.definition.digest);
  if (peer === undefined) {
    failCall(core, live, callFault("no_provider", `Its provider has gone. ${NOTHING_RAN}`));
    return;
  }
  live.stage = "dispatched";
  const id = peer.nextId;
  peer.nextId += 1n;
  live.serving = { peer, id };
  peer.serving.set(id, live);
  try {
    peer.connection.send(id, true, providerRequest(core, live, args));
  } catch (error) {
    if (!(error instanceof FrameFault)) throw error;
    failCall(
      core,
      live,
      callFault("too_large", `The request does not fit in the provider's frame. ${NOTHING_RAN}`),
    );
    return;
  }
  live.stopTimer = core.clock.after(live.tool.timeoutMs, () =>
    failCall(
      core,
      live,
      callFault("timeout", `The provider did not answer within ${live.tool.timeoutMs} ms. ${MAY_HAVE_RUN}`),
    ),
  );
}

function providerRequest(core: Core, live: LiveCall, args: JsonString): Buffer {
  const { key, tool } = live;
  const session = providerSession(core, key.role, key.session);
  return encodeMessage({
    kind: "tool_request",
    body: { session, call: key.call, tool: tool.name, arguments: args },
  });
}

const HASHED = "sha256-";

/** `ROLE:SESSION`, so that two roles never share one; hashed where that is too long or could be taken for a hash. */
export function providerSession(core: Core, role: string, session: string): string {
  const plain = `${role}:${session}`;
  if (plain.length <= SESSION_ID_CHARS_MAX && !session.startsWith(HASHED)) return plain;
  return `${role}:${HASHED}${core.digest(session)}`;
}

/** Ends a call with a failure of ours: the words are the broker's own, so they carry no labels. */
export function failCall(core: Core, live: LiveCall, why: CallFault): void {
  endCall(core, live, { message: failedMessage(why), labels: CLEAN, status: "failed", fault: why });
}
