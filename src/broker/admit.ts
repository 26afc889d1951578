// Stage 1: limits and strict parsing. Its answers are the same for every tool and every session, so
// they tell nothing about what one may not use.

import { type CallFault, fault, ok, type Result } from "../base/faults.ts";
import { type JsonObject, parseJsonObject } from "../base/json.ts";
import { ARGUMENTS_LIMITS } from "../base/limits.ts";
import { equalText } from "../policy/equal.ts";
import type { JsonString } from "../wire/json_string.ts";
import type { ToolRequest } from "../wire/message.ts";
import { callFault, NOT_TAKEN } from "./answer.ts";
import { hold } from "./asking.ts";
import type { Core } from "./core.ts";
import type { Asker, Peer } from "./live.ts";

/** A request whose arguments are a strict JSON object, held against its peer's limits. */
export interface Admitted {
  readonly asker: Asker;
  readonly request: ToolRequest<JsonString>;
  readonly args: JsonObject;
  /** Digest of what equal calls share. */
  readonly equal: () => string;
  readonly nowMs: number;
}

/** Computed where somebody asks for it, and once. */
export function equalDigest(core: Core, tool: string, args: JsonObject): () => string {
  let digest: string | undefined;
  return () => {
    digest ??= core.digest(equalText(tool, args));
    return digest;
  };
}

/** How a request breaks the protocol; undefined: it does not. */
export function protocolBreak(peer: Peer, id: bigint, final: boolean): string | undefined {
  if (!final) return "a tool_request must be final";
  if (id === 0n) return "a tool_request must not have id 0";
  if (peer.asking.has(id)) return "a tool_request has an id that is in flight on this connection";
  return undefined;
}

/** The request within its role's limits; from here on its asker gets exactly one final answer. */
export function take(
  core: Core,
  peer: Peer,
  id: bigint,
  request: ToolRequest<JsonString>,
): Result<{ asker: Asker; nowMs: number }, CallFault> {
  if (core.draining !== undefined)
    return fault(callFault("unavailable", `The broker is stopping. ${NOT_TAKEN}`));
  const nowMs = core.clock.nowMs();
  const limit = peer.quota.call(nowMs);
  if (limit !== undefined) return fault(capacityFault(limit));
  const held = hold(peer, id, request.arguments.tokenBytes);
  return typeof held === "string" ? fault(capacityFault(held)) : ok({ asker: held, nowMs });
}

/** Strict parsing; the fault is the same for any tool. */
export function parse(request: ToolRequest<JsonString>): Result<JsonObject, CallFault> {
  const parsed = parseJsonObject(request.arguments.text, ARGUMENTS_LIMITS);
  if (parsed.ok) return parsed;
  const { message, offset } = parsed.fault;
  return fault(callFault("bad_arguments", `${message} (at character ${offset}). ${NOT_TAKEN}`));
}

export function capacityFault(limit: string): CallFault {
  return callFault("capacity", `The role's limit ${limit} is reached. ${NOT_TAKEN}`);
}
