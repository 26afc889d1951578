// Who may look at whose: a role that is no operator sees only its own.

import { type CallFault, fault, ok, type Result } from "../../base/faults.ts";
import type { Labels } from "../../base/labels.ts";
import type { RolePolicy } from "../../policy/policy.ts";
import type { Session } from "../../session/sessions.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, Core } from "../core.ts";
import { text } from "./arguments.ts";

/** The role that the arguments name, or the caller's own. The fault is the same for a foreign role and an unknown one. */
export function namedRole(core: Core, call: BuiltinCall): Result<RolePolicy, CallFault> {
  const name = text(call.args, "role") ?? call.role.name;
  const role = core.runtime.policy.roles.get(name);
  if (role !== undefined && (role.name === call.role.name || call.role.operator)) return ok(role);
  return fault(callFault("bad_arguments", `There is no such role for the caller to look at. ${NOTHING_RAN}`));
}

/**
 * The session that the arguments name, or the caller's own: of its own role or one that it opened, and for
 * a connection that is bound to one session only that. The fault is the same for all that it may not see.
 */
export function namedSession(core: Core, call: BuiltinCall): Result<Session, CallFault> {
  const role = text(call.args, "role") ?? call.role.name;
  const session = core.sessions.find(role, text(call.args, "session") ?? call.session.id);
  if (session !== undefined && maySeeSession(call, session)) return ok(session);
  return fault(
    callFault("bad_arguments", `There is no such session for the caller to look at. ${NOTHING_RAN}`),
  );
}

/** Its own role's or one that it opened; where a connection is bound to one session, that one only. */
export function maySeeSession(call: BuiltinCall, session: Session): boolean {
  if (call.role.operator || session.openedBy === call.role.name) return true;
  return session.role === call.role.name && (!call.role.isolated || session === call.session);
}

/** The session id that the arguments name, or the caller's own: for a connection that is bound to one session only that. */
export function namedSessionId(call: BuiltinCall): Result<string, CallFault> {
  const id = text(call.args, "session") ?? call.session.id;
  if (!call.role.isolated || call.role.operator || id === call.session.id) return ok(id);
  return fault(callFault("bad_arguments", `This connection is bound to another session. ${NOTHING_RAN}`));
}

/** Labels of what a session's caller chose or caused: whatever that caller has been given. */
export function sessionLabels(core: Core, role: string, session: string | undefined): Labels {
  return session === undefined ? core.sessions.roleTaint(role) : core.sessions.taintOf(role, session);
}

/**
 * Whether the caller acts for itself: its own role, or a role that its own user may connect as. Fails
 * closed where that can't be told; `allow_same_user` gives up the second half.
 */
export function actsForItself(core: Core, call: BuiltinCall, role: RolePolicy): boolean {
  if (role.name === call.role.name) return true;
  if (core.runtime.policy.allowSameUser) return false;
  const uid = call.peer.connection.peer?.uid;
  if (uid === undefined || role.admits === "anyone" || role.admits.uids.has(uid)) return true;
  const { gid, groups } = call.peer.connection.peer ?? { gid: -1, groups: [] };
  const { gids } = role.admits;
  return gids.has(gid) || groups.some((group) => gids.has(group)) || connectedAs(core, role.name, uid);
}

function connectedAs(core: Core, role: string, uid: number): boolean {
  return core.peers.ofRole(role).some((peer) => peer.connection.peer?.uid === uid);
}
