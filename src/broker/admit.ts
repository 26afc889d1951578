// Stage 1: limits and strict parsing. Its answers are the same for every tool and every session, so
// they tell nothing about what one may not use.

import { type CallFault, fault, ok, type Result } from "../base/faults.ts";
import { type JsonObject, parseJson } from "../base/json.ts";
import { ARGUMENTS_LIMITS } from "../base/limits.ts";
import type { JsonString } from "../wire/json_string.ts";
import type { ToolRequest } from "../wire/message.ts";
import { callFault, NOTHING_RAN } from "./answer.ts";
import type { Core } from "./core.ts";
import type { Peer } from "./peers.ts";

/** A request whose arguments are a strict JSON object, from a peer within its limits. */
export interface Admitted {
  readonly peer: Peer;
  /** The asker's id on its connection. */
  readonly id: bigint;
  readonly request: ToolRequest<JsonString>;
  readonly args: JsonObject;
  readonly nowMs: number;
}

/** How a request breaks the protocol; undefined: it does not. */
export function protocolBreak(peer: Peer, id: bigint, final: boolean): string | undefined {
  if (!final) return "a tool_request must be final";
  if (id === 0n) return "a tool_request must not have id 0";
  if (peer.asking.has(id)) return "a tool_request has an id that is in flight on this connection";
  return undefined;
}

export function admit(
  core: Core,
  peer: Peer,
  id: bigint,
  request: ToolRequest<JsonString>,
): Result<Admitted, CallFault> {
  if (core.draining) return fault(callFault("unavailable", `The broker is stopping. ${NOTHING_RAN}`));
  const nowMs = core.clock.nowMs();
  const limit = peer.quota.call(nowMs) ?? inFlightLimit(peer, request.arguments.tokenBytes);
  if (limit !== undefined) return fault(capacityFault(limit));
  const parsed = parseJson(request.arguments.text, ARGUMENTS_LIMITS);
  if (!parsed.ok) {
    return fault(
      callFault(
        "bad_arguments",
        `${parsed.fault.message} (at character ${parsed.fault.offset}). ${NOTHING_RAN}`,
      ),
    );
  }
  if (!(parsed.value instanceof Map)) {
    return fault(callFault("bad_arguments", `The arguments must be one JSON object. ${NOTHING_RAN}`));
  }
  return ok({ peer, id, request, args: parsed.value, nowMs });
}

/** Looks, without holding: what a call takes is held once it runs. */
function inFlightLimit(peer: Peer, argumentsBytes: number): string | undefined {
  const { quota } = peer;
  if (quota.held("calls_in_flight") >= quota.limits.calls_in_flight) return "calls_in_flight";
  if (quota.held("queued_bytes_in") + argumentsBytes > quota.limits.queued_bytes_in) return "queued_bytes_in";
  return undefined;
}

export function capacityFault(limit: string): CallFault {
  return callFault("capacity", `The role's limit ${limit} is reached. ${NOTHING_RAN}`);
}
