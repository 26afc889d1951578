// Requests as their askers see them: held against limits at admission, told what comes, and given back
// with their final answer. Nothing here decides what that answer is.

import type { CallFault } from "../base/faults.ts";
import { FRAME_BYTES_MAX } from "../base/limits.ts";
import { FrameFault } from "../wire/fault.ts";
import { callFault, failedMessage, internalMessage, MAY_HAVE_RUN } from "./answer.ts";
import type { Core } from "./core.ts";
import type { Asker, Peer } from "./live.ts";

/** Bytes around a message in its frame, whatever the id is, at most. */
export const FRAMING_BYTES_MAX = 64;
/** Bytes of a message that fits in a frame whatever the asker's id is. */
export const MESSAGE_BYTES_MAX = FRAME_BYTES_MAX - FRAMING_BYTES_MAX;

/** Holds a request until its final answer; undefined with the limit that stands in its way. */
export function hold(
  peer: Peer,
  id: bigint,
  heldBytes: number,
): Asker | "calls_in_flight" | "queued_bytes_in" {
  const { quota } = peer;
  if (!quota.hold("calls_in_flight", 1)) return "calls_in_flight";
  if (!quota.hold("queued_bytes_in", heldBytes)) {
    quota.release("calls_in_flight", 1);
    return "queued_bytes_in";
  }
  const asker: Asker = { peer, id, heldBytes, live: undefined };
  peer.asking.set(id, asker);
  return asker;
}

/** Whether the asker still waits: its connection may have gone, or its answer be out. */
export function waits(asker: Asker): boolean {
  return asker.peer.asking.get(asker.id) === asker;
}

/** A message that more will follow. */
export function sendPart(asker: Asker, message: Buffer): void {
  if (waits(asker)) asker.peer.connection.send(asker.id, false, message);
}

/** The final message; the id is free again, and a half-closed peer with none left is let go. */
export function answer(core: Core, asker: Asker, message: Buffer): void {
  if (!waits(asker)) return;
  try {
    asker.peer.connection.send(asker.id, true, message);
  } catch (error) {
    if (!(error instanceof FrameFault)) throw error;
    asker.peer.connection.send(asker.id, true, failedMessage(UNFRAMED));
  }
  release(core, asker);
}

/** What a built-in shows may be larger than a frame; what providers give was looked at before. */
export const UNFRAMED: CallFault = callFault(
  "too_large",
  `The answer does not fit in a frame. ${MAY_HAVE_RUN}`,
);

/** After a broken assumption of ours: the one error envelope that names the call, and the end of its connection. */
export function answerInternal(core: Core, asker: Asker): void {
  if (!waits(asker)) return;
  const { connection } = asker.peer;
  connection.send(asker.id, true, internalMessage());
  release(core, asker);
  connection.finish();
}

function release(core: Core, asker: Asker): void {
  const { peer } = asker;
  peer.asking.delete(asker.id);
  giveBack(asker);
  finishIfIdle(peer);
  core.released?.();
}

/** The peer's connection is gone. The calls that it was asking for go on: who asks again joins them. */
export function forgetAskers(peer: Peer): void {
  for (const asker of peer.asking.values()) {
    const askers = asker.live?.askers ?? [];
    const at = askers.indexOf(asker);
    if (at >= 0) askers.splice(at, 1);
    giveBack(asker);
  }
  peer.asking.clear();
}

function giveBack(asker: Asker): void {
  const { quota } = asker.peer;
  quota.release("calls_in_flight", 1);
  quota.release("queued_bytes_in", asker.heldBytes);
  if (asker.live !== undefined) asker.live.waiting -= 1;
}

/** A peer that asks nothing more and has every answer is let go. */
export function finishIfIdle(peer: Peer): void {
  if (!peer.connection.readable && peer.asking.size === 0) peer.connection.finish();
}

/** Whether the peer waits for an answer that needs no human. */
export function expectsAnswer(peer: Peer): boolean {
  for (const { live } of peer.asking.values()) if (live?.stage !== "asking") return true;
  return false;
}

/**
 * A peer that half-closes may have died, and its questions wait long: they are told once more, which a living
 * one reads and a dead one can't.
 */
export function remindAskers(peer: Peer): void {
  for (const asker of peer.asking.values()) {
    const told = asker.live?.stage === "asking" ? asker.live.delivered.at(-1) : undefined;
    if (told !== undefined) return sendPart(asker, told);
  }
}
