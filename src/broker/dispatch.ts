// Stages 4 to 8: argument schema, provider, question, intent, and the call's way to whoever runs it.
// Invariant: nothing reaches a provider before its intent is written and the taint it carries along
// is joined into whatever it can reach.

import { type CallFault, fault, ok, type Result } from "../base/faults.ts";
import { SESSION_ID_CHARS_MAX } from "../base/ids.ts";
import type { JsonObject } from "../base/json.ts";
import { CLEAN, type Labels } from "../base/labels.ts";
import type { ToolPolicy } from "../policy/policy.ts";
import type { Session } from "../session/sessions.ts";
import type { Change } from "../store/records.ts";
import { encodeMessage } from "../wire/envelope.ts";
import type { JsonString } from "../wire/json_string.ts";
import type { Admitted } from "./admit.ts";
import { callFault, deniedMessage, failedMessage, MAY_HAVE_RUN, NOTHING_RAN } from "./answer.ts";
import { FRAMING_BYTES_MAX, MESSAGE_BYTES_MAX } from "./asking.ts";
import { type Authorized, authorizeCounted, decisionRecord } from "./authorize.ts";
import type { Core } from "./core.ts";
import { failCall, finish, withdrawCall, writeEnding } from "./deliver.ts";
import { type LiveCall, type Peer, recordsOf } from "./live.ts";
import { newCall } from "./new_call.ts";
import { enter } from "./stages.ts";
import { attempt, write } from "./writing.ts";

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

/** How a recorded call runs, and what its taint reaches before it does. */
export interface Runner {
  /** The provider's role; undefined: the broker itself. */
  readonly provider: string | undefined;
  /** Digest of its tool's pinned definition. */
  readonly definition: string | undefined;
  spread(live: LiveCall): readonly Change[];
  run(live: LiveCall): void;
}

/** Only what is recorded can run: a runner is handed its LiveCall here, or by the approval that releases it. */
export function recordIntent(
  core: Core,
  admitted: Admitted,
  session: Session,
  tool: ToolPolicy,
  authorized: Authorized,
  runner: Runner,
): void {
  const live = newCall(admitted, session, tool, "recording");
  core.live.add(live);
  admitted.asker.live = live;
  core.metrics.decided(authorized.decision.kind, authorized.decision.row);
  const used = core.grants.use(authorized.decision, admitted.nowMs);
  live.used = used;
  const changes: Change[] = [...used.changes, ...runner.spread(live), ...intents(live, authorized, runner)];
  write(core, live, changes, (unwritten) => {
    live.unwritten -= 1;
    used.settled(unwritten === undefined);
    if (unwritten !== undefined) return refuseUnwritten(core, live);
    if (live.ending !== undefined) return writeEnding(core, live); // cancelled while its intent was being written
    if (stillStands(core, live, authorized, [])) runner.run(live);
  });
}

/** That it was decided so and is about to reach its provider: of the call, and of those that follow it. */
export function intents(
  live: LiveCall,
  { subject, decision }: Authorized,
  { provider, definition }: Runner,
  approval?: string,
): readonly Change[] {
  const clear = live.tool.auditArguments;
  return recordsOf(live).map((record) => ({
    kind: "intent",
    record,
    decision: decisionRecord(record.key, subject, decision),
    provider,
    definition,
    approval,
    clear,
  }));
}

/**
 * A reload, or the time that the intent took to be written, may have taken away what the decision rested on. `answered`:
 * the grants whose question an approver has just answered.
 */
export function stillStands(
  core: Core,
  live: LiveCall,
  authorized: Authorized,
  answered: readonly string[],
): boolean {
  const nowMs = core.clock.nowMs();
  const ended = core.sessions.hasEnded(live.session, nowMs);
  if (ended) {
    core.metrics.decided("deny", "grant_expired", live.aliases.size + 1);
    withdrawCall(core, live, deniedMessage("grant_expired"), "denied");
    return false;
  }
  const same = core.runtime === authorized.runtime && !outlived(authorized, nowMs);
  if (same || live.used === undefined) return true;
  const again = authorizeCounted(core, live.session, authorized, live.used);
  if (again.kind === "denied") {
    core.metrics.decided("deny", again.decision.reason, live.aliases.size + 1);
    withdrawCall(core, live, deniedMessage(again.decision.reason), "denied");
    return false;
  }
  const { decision } = again.authorized;
  const open = decision.kind === "ask" ? decision.asks.filter(({ id }) => !answered.includes(id)) : [];
  if (open.length > 0) withdrawCall(core, live, failedMessage(NOW_ASKED), "failed");
  return open.length === 0;
}

/** Whether the time of a grant that lets it through was over before the intent was written. */
function outlived({ decision }: Authorized, nowMs: number): boolean {
  const asks = decision.kind === "ask" ? decision.asks : [];
  const through = [decision.grant, ...decision.remembered, ...decision.satisfied, ...asks];
  return through.some(({ expiresAtMs = Number.POSITIVE_INFINITY }) => nowMs >= expiresAtMs);
}

const NOW_ASKED = callFault(
  "unavailable",
  `A human has to approve this call since the policy has just changed. Ask it again to put the question. ${NOTHING_RAN}`,
);

/** Runs on the provider's least loaded connection. */
export function onProvider(core: Core, located: Located, args: JsonString | string): Runner {
  return {
    provider: located.tool.role,
    definition: located.digest,
    spread: (live) => spread(core, live),
    run: (live) => invoke(core, live, located, args),
  };
}

/** The call's taint reaches the provider as a caller, and the tool's store where the call can change it. */
function spread(core: Core, live: LiveCall): readonly Change[] {
  const { tool, session, key } = live;
  const taint = core.sessions.taint(session);
  const changes: Change[] = [];
  const ofRole = core.sessions.raiseRole(tool.role, taint, key);
  if (ofRole !== undefined) changes.push(ofRole);
  if (tool.store === undefined || tool.effect === "read") return changes;
  const ofStore = core.sessions.raiseStore(tool.store, live.item, taint, key);
  if (ofStore !== undefined) changes.push(ofStore);
  return changes;
}

/** What was put into the store that a result comes from. */
export function storeLabels(core: Core, live: LiveCall): Labels {
  const { tool } = live;
  return tool.store === undefined ? CLEAN : core.sessions.storeTaint(tool.store, live.item);
}

function refuseUnwritten(core: Core, live: LiveCall): void {
  const why = callFault("unavailable", `The broker can't write its records now. ${NOTHING_RAN}`);
  finish(core, live, { message: failedMessage(why), labels: CLEAN, status: "failed", fault: why });
}

/** Sends a recorded call to the provider's least loaded connection, chosen now: the one placed may be gone. */
function invoke(core: Core, live: LiveCall, located: Located, args: JsonString | string): void {
  const placed = placeAgain(core, live, located);
  if (!placed.ok) return withdrawCall(core, live, failedMessage(placed.fault), "failed");
  const peer = placed.value;
  const request = providerRequest(core, live, args);
  const tooMuch = unsendable(peer, request);
  if (tooMuch !== undefined) return withdrawCall(core, live, failedMessage(tooMuch), "failed");
  enter(live, "dispatch");
  const id = peer.nextId;
  peer.nextId += 1n;
  live.serving = { peer, id };
  peer.serving.set(id, live);
  armTimeout(core, live, live.tool.timeoutMs);
  live.dispatchedAtMs = core.clock.nowMs();
  peer.connection.ask(id, request);
}

/** The definition as it is now: a reload or an acceptance may have changed it since the arguments were checked. */
function placeAgain(core: Core, live: LiveCall, before: Located): Result<Peer, CallFault> {
  const now = locate(core, live.tool.name);
  if (!now.ok) return now;
  const changed = now.value.digest !== before.digest || now.value.tool.role !== before.tool.role;
  if (changed)
    return fault(callFault("no_provider", `The tool's definition has just changed. ${NOTHING_RAN}`));
  return place(core, now.value);
}

/** Why this provider can't be sent that request; a burst of calls must not get it thrown out as too slow. */
export function unsendable({ quota }: Peer, request: Buffer): CallFault | undefined {
  if (request.length > MESSAGE_BYTES_MAX)
    return callFault("too_large", `The request does not fit in the provider's frame. ${NOTHING_RAN}`);
  const queuedBytes = quota.held("queued_bytes_out") + request.length + FRAMING_BYTES_MAX;
  if (queuedBytes <= quota.limits.queued_bytes_out) return undefined;
  return callFault("capacity", `The provider's limit queued_bytes_out is reached. ${NOTHING_RAN}`);
}

/** From now on the provider has so long. */
export function armTimeout(core: Core, live: LiveCall, ms: number): void {
  live.stopTimer?.();
  live.stopTimer = core.clock.after(ms, () => attempt(core, live, () => timeOut(core, live)));
}

function timeOut(core: Core, live: LiveCall): void {
  const sentence = `The provider did not answer within ${live.tool.timeoutMs} ms. ${MAY_HAVE_RUN}`;
  failCall(core, live, callFault("timeout", sentence));
}

function providerRequest(core: Core, live: LiveCall, args: JsonString | string): Buffer {
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
