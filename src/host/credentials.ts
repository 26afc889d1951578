// Who is on the other end of a connected Unix socket, read from the kernel. What may be done with
// the answer is told by session/peer.ts. Invariant: anything that is not a full answer is
// `undefined`, which nobody who names users or groups admits.

import type { Socket } from "node:net";

import type { PeerCredentials } from "../session/peer.ts";
import { ERRNO, type Libc } from "./libc.ts";

/** Synchronous, and meant to be called before the first byte of the connection is read. */
export type PeerReader = (socket: Socket) => PeerCredentials | undefined;

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const SO_PEERGROUPS = 59;
const GIDS_AT_FIRST = 64;
/** NGROUPS_MAX of the kernel. */
const GIDS_MAX = 65_536;
const GID_BYTES = 4;
/** What the kernel gives where a socket has no peer, or not one of ours: (uid_t) -1. */
const NO_ID = 0xffff_ffff;

/**
 * The credentials are those of the process that connected, at the time it did: a descriptor that it
 * hands on still speaks with its name. Buffers are made once and reused, so a reader belongs to one thread.
 */
export function peerReader(libc: Libc | undefined): PeerReader {
  if (libc === undefined) return () => undefined;
  const ucred = new Uint32Array(3);
  const lengthBytes = new Uint32Array(1);
  const readGroups = groupsReader(libc, lengthBytes);
  return (socket) => {
    const fd = descriptorOf(socket);
    if (fd === undefined) return undefined;
    lengthBytes[0] = ucred.byteLength;
    if (libc.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ucred, lengthBytes) < 0) return undefined;
    const [pid, uid, gid] = ucred as unknown as readonly [number, number, number]; // it has three elements
    if (lengthBytes[0] !== ucred.byteLength || uid === NO_ID || gid === NO_ID) return undefined;
    const groups = readGroups(fd);
    return groups === undefined ? undefined : { pid, uid, gid, groups };
  };
}

function groupsReader(libc: Libc, lengthBytes: Uint32Array): (fd: number) => readonly number[] | undefined {
  let gids = new Uint32Array(GIDS_AT_FIRST);
  const read = (fd: number): number => {
    lengthBytes[0] = gids.byteLength;
    return libc.getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids, lengthBytes);
  };
  return (fd) => {
    let outcome = read(fd);
    if (outcome === -ERRNO.ERANGE && gids.length < GIDS_MAX) {
      // The groups were fixed at connect, so the size that the kernel asks for now is the last one.
      gids = new Uint32Array(Math.min(Math.ceil(lengthBytes[0]! / GID_BYTES), GIDS_MAX));
      outcome = read(fd);
    }
    if (outcome < 0) return undefined;
    return Array.from(gids.subarray(0, lengthBytes[0]! / GID_BYTES));
  };
}

/** Node does not publish the descriptor of a socket; `_handle.fd` is where every version has it. */
function descriptorOf(socket: Socket): number | undefined {
  const handle = (socket as unknown as { readonly _handle?: { readonly fd?: unknown } | null })._handle;
  const fd = handle?.fd;
  return typeof fd === "number" && Number.isInteger(fd) && fd >= 0 ? fd : undefined;
}
