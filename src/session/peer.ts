// Who is on the other end of a socket, as the kernel says, and whether a role admits them.
// Nothing on the wire ever adds to this.

import type { RolePolicy } from "../policy/policy.ts";

/** Of SO_PEERCRED and SO_PEERGROUPS, at connect time. */
export interface PeerCredentials {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
  /** Supplementary groups. */
  readonly groups: readonly number[];
}

/** What the kernel shows for a user it cannot map: never a user that somebody meant. */
const OVERFLOW_ID = 65_534;

export type Admission = "admitted" | "unknown_peer" | "overflow_id" | "not_named";

/** Fails closed: where users or groups are named, an unreadable or unmapped peer is not admitted. */
export function admit(role: RolePolicy, peer: PeerCredentials | undefined): Admission {
  if (role.admits === "anyone") return "admitted";
  if (peer === undefined) return "unknown_peer";
  if (peer.uid === OVERFLOW_ID || peer.gid === OVERFLOW_ID) return "overflow_id";
  if (role.admits.uids.has(peer.uid) || role.admits.gids.has(peer.gid)) return "admitted";
  for (const gid of peer.groups) if (gid !== OVERFLOW_ID && role.admits.gids.has(gid)) return "admitted";
  return "not_named";
}
