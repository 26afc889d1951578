// Stage 2: replay look-up. A call is named once for good by role, session and id; asked again it is
// joined or answered from its record, and never run a second time.

import type { CallFault, DenyReason } from "../base/faults.ts";
import { decide } from "../policy/decision.ts";
import type { RolePolicy } from "../policy/policy.ts";
import type { Session } from "../session/sessions.ts";
import type { CallKey, CallRecord } from "../store/records.ts";
import type { Admitted } from "./admit.ts";
import { callFault, MAY_HAVE_RUN, NOT_TAKEN } from "./answer.ts";
import { subjectOf } from "./authorize.ts";
import type { Core } from "./core.ts";
import { type LiveCall, recordOf } from "./live.ts";

export type Recalled =
  | { readonly kind: "fresh" }
  | { readonly kind: "join"; readonly live: LiveCall; readonly record: CallRecord }
  | { readonly kind: "replay"; readonly record: CallRecord }
  | { readonly kind: "denied"; readonly reason: DenyReason }
  | { readonly kind: "failed"; readonly fault: CallFault };

const FRESH: Recalled = { kind: "fresh" };

export function recall(core: Core, role: RolePolicy, session: Session, admitted: Admitted): Recalled {
  const { request } = admitted;
  const key: CallKey = { role: role.name, session: session.id, call: request.call };
  const live = core.live.find(session, request.call);
  const record = live === undefined ? core.store.findCall(key) : recordOf(live, request.call);
  if (record === undefined)
    return belowWatermark(core, key) ? conflict("is older than what is kept for its session") : FRESH;
  const { peer } = admitted.asker;
  // Before the bytes are compared: another user must not learn by guessing what was asked.
  if (record.uid !== peer.connection.peer?.uid) return { kind: "denied", reason: "denied_by_grant" };
  if (record.tool !== request.tool || record.arguments !== request.arguments.text) {
    return conflict("was used with another tool or other arguments");
  }
  if (hasLiveDeny(core, role, session, admitted)) return { kind: "denied", reason: "denied_by_grant" };
  if (live === undefined) return { kind: "replay", record };
  if (live.waiting > peer.quota.limits.joins)
    return failed(
      callFault("capacity", `The role's limit joins is reached. The call goes on. ${MAY_HAVE_RUN}`),
    );
  return { kind: "join", live, record };
}

function belowWatermark(core: Core, key: CallKey): boolean {
  const watermark = core.store.watermark(key.role, key.session);
  return watermark !== undefined && key.call <= watermark;
}

function hasLiveDeny(core: Core, role: RolePolicy, session: Session, admitted: Admitted): boolean {
  const decision = decide(core.runtime.index, subjectOf(core, role, session, admitted));
  return decision.kind === "deny" && decision.row === "deny";
}

function conflict(what: string): Recalled {
  return failed(callFault("conflict", `This call id ${what}. Use a new id. ${NOT_TAKEN}`));
}

function failed(fault: CallFault): Recalled {
  return { kind: "failed", fault };
}
