// Ending the calls of a role or a session at once: those that wait for a human, and those that run.

import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, Core } from "../core.ts";
import { failCall } from "../deliver.ts";
import type { LiveCall } from "../live.ts";

/** Of one session, or of all of the role's; the call that asks for it is not among them. Returns how many. */
export function stopCalls(
  core: Core,
  role: string,
  session: string | undefined,
  why: string,
  by: BuiltinCall,
): number {
  const calls = core.live.all().filter(({ key, stage }) => {
    const isNamed = key.role === role && (session === undefined || key.session === session);
    return isNamed && stage !== "ended";
  });
  const others = calls.filter((live) => !isItself(live, by));
  for (const live of others) {
    const may = live.serving === undefined ? NOTHING_RAN : "The provider may have run.";
    failCall(core, live, callFault("cancelled", `${why} ${may}`));
  }
  return others.length;
}

export function isItself(live: LiveCall, call: BuiltinCall): boolean {
  return live.session === call.session && live.key.call === call.key.call;
}
