// Reasoning that comes back: one form of opaque bytes for all backends. A caller keeps it and may change it, so what
// comes back is read as anybody's. Invariant: state goes only to the provider kind, the address and the model it is of.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { ReasoningState } from "../contract.ts";
import { type Failure, failure } from "./failure.ts";
import { type JsonRecord, member, parseRecord, recordMember } from "./unknown_json.ts";

/** Whose state it is. */
export interface StateOwner {
  /** A name of the contract. */
  readonly provider: string;
  /** As requested. */
  readonly model: string;
  /** Of the API's address: two servers that speak one API do not read each other's state. */
  readonly origin: string;
}

const VERSION = 1;

export function closeState(owner: StateOwner, item: JsonRecord): ReasoningState {
  const text = JSON.stringify({ v: VERSION, origin: owner.origin, item });
  return { provider: owner.provider, model: owner.model, opaque: new TextEncoder().encode(text) };
}

/** The item, whose members are still anybody's. */
export function openState(owner: StateOwner, state: ReasoningState): Result<JsonRecord, Failure> {
  if (state.provider !== owner.provider) {
    return foreign(`is of another provider than ${owner.provider}`);
  }
  if (state.model !== owner.model) return foreign("is of another model than the one requested");
  const outer = parseRecord(decode(state.opaque));
  const item = recordMember(outer, "item");
  if (member(outer, "v") !== VERSION || item === undefined)
    return foreign("is in no form that this backend wrote");
  if (member(outer, "origin") !== owner.origin)
    return foreign("is of another server than the configured one");
  return ok(item);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return "";
  }
}

export function foreign(why: string): { readonly ok: false; readonly fault: Failure } {
  return fault(
    failure("ForeignReasoningState", `a reasoning state of the transcript ${why}; nothing was sent`),
  );
}
