// The way to the store, and what happens where an assumption of ours is broken on the way: the call
// ends with `internal`, its connections are let go, and the others go on.

import type { LogFields } from "../base/ports.ts";
import type { Committed, StoreFault } from "../store/port.ts";
import type { Change } from "../store/records.ts";
import { internalMessage } from "./answer.ts";
import { answerInternal } from "./asking.ts";
import type { Core } from "./core.ts";
import type { Asker, LiveCall } from "./live.ts";
import { payLater } from "./owed.ts";
import { enter } from "./stages.ts";

/** Who pays for a broken assumption: a running call with all its askers, or one asker. */
export type Blamed = LiveCall | Asker;

/** Writes all of it or nothing, then goes on. Taints that are written count as such from here on. */
export function write(core: Core, blamed: Blamed, changes: readonly Change[], done: Committed): void {
  try {
    core.audit.touch();
    const startedAtMs = core.turnTime.nowMs();
    let waits = false;
    const settled = (unwritten: StoreFault | undefined) => {
      try {
        const waitedMs = waits ? core.turnTime.nowMs() - startedAtMs : undefined; // called at once: not on disk yet
        core.metrics.committed(unwritten === undefined, waitedMs);
        if (unwritten === undefined) core.sessions.wrote(changes);
        done(unwritten);
      } catch (error) {
        abandon(core, blamed, error);
      }
    };
    core.store.commit(changes, settled, isOperator(core, blamed));
    waits = true;
  } catch (error) {
    abandon(core, blamed, error);
  }
}

/** An operator's commits may use the space that the store keeps back. */
function isOperator(core: Core, blamed: Blamed): boolean {
  return core.runtime.policy.roles.get(roleOfBlamed(blamed))?.operator === true;
}

function roleOfBlamed(blamed: Blamed): string {
  return "askers" in blamed ? blamed.key.role : blamed.peer.connection.role;
}

/** Runs what nobody above would catch: a timer, a settled promise, the end of a connection. */
export function attempt(core: Core, blamed: Blamed, task: () => void): void {
  try {
    task();
  } catch (error) {
    abandon(core, blamed, error);
  }
}

/** Ends what can't go on. Whether it ran is told by its record: dispatched and without an outcome. */
export function abandon(core: Core, blamed: Blamed, error: unknown): void {
  const role = roleOfBlamed(blamed);
  core.metrics.faults += 1;
  core.log("error", "broker.fault", { role, ...faultFields(error) });
  if ("askers" in blamed) abandonCall(core, blamed);
  else answerInternal(core, blamed);
}

function abandonCall(core: Core, live: LiveCall): void {
  stopServing(live);
  if (live.stage !== "ended") enter(live, "end");
  if (live.hasIntent) core.doubts.add(live.record);
  const left = core.approvals.giveUp(live, core.clock.nowMs());
  if (left !== undefined) {
    core.approvals.owe(left);
    payLater(core);
  }
  live.ending?.settled?.(false);
  if (live.answer === undefined) core.metrics.ended(live.tool.name, "internal", live.aliases.size + 1);
  live.answer ??= internalMessage();
  core.live.remove(live);
  for (const asker of live.askers.splice(0)) answerInternal(core, asker);
}

/** The provider's connection has nothing more to do with the call. */
export function stopServing(live: LiveCall): void {
  live.stopTimer?.();
  live.stopTimer = undefined;
  live.quota.release("queued_bytes_in", live.keptBytes);
  live.keptBytes = 0;
  if (live.serving?.peer.serving.get(live.serving.id) === live) {
    live.serving.peer.serving.delete(live.serving.id);
  }
}

const FRAME_LINE = /^ +at (?:[\w$.<>#[\] ]+ \()?(?:file|node):[^\s()]*\)?$/;

/** What the log may know of a fault: never its message, which may quote what a peer sent. */
export function faultFields(error: unknown): LogFields {
  if (!(error instanceof Error)) return { fault: "unknown" };
  const stack = (error.stack ?? "").split("\n").filter((line) => FRAME_LINE.test(line));
  return { fault: error.name, stack: stack.slice(0, 6).map((line) => line.trim()) };
}
