// How the broker is, on the one line that `systemctl status` shows: what is wrong first, as in `callgate status`.

import { visibleLine } from "../base/display.ts";
import { counted } from "../base/json_text.ts";
import type { BrokerState } from "../broker/broker_state.ts";

const POLICY_CHARS = 12;
const WHY_CHARS_MAX = 200;
const ROLES_SHOWN = 5;

export function statusLine(state: BrokerState): string {
  return [...wrong(state), ...usual(state)].join("; ");
}

function wrong({ stale, store, frozenRoles, policy }: BrokerState): readonly string[] {
  const frozen = frozenRoles.slice(0, ROLES_SHOWN).join(", ");
  const more = frozenRoles.length > ROLES_SHOWN ? ` and ${frozenRoles.length - ROLES_SHOWN} more` : "";
  return [
    ...(store === "ok" ? [] : [`STORE ${store.toUpperCase()}: new calls are unavailable`]),
    ...(stale === undefined ? [] : [`CONFIG REFUSED: ${visibleLine(stale, WHY_CHARS_MAX)}`]),
    ...(frozenRoles.length === 0 ? [] : [`FROZEN: ${frozen}${more}`]),
    ...(policy.allowSameUser ? ["allow_same_user"] : []),
  ];
}

function usual({ policy, stale, store, runningCalls, pendingApprovals }: BrokerState): readonly string[] {
  const size = `${counted(policy.tools.size, "tool")}, ${counted(policy.grants.length, "grant")}`;
  const force = stale === undefined ? "in force" : "still in force";
  return [
    `policy ${policy.version.slice(0, POLICY_CHARS)} (${size}) ${force}`,
    ...(store === "ok" ? ["store ok"] : []),
    `${counted(runningCalls, "call")} running`,
    pendingApprovals === 0 ? "no questions wait" : `${counted(pendingApprovals, "question")} wait`,
  ];
}
