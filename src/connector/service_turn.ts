// One run of the backend, and what the caller is told of it (spec: connector, 6.4): numbered events and a receipt that is
// made of the invocation, so no backend can bind its answer to another. Invariant: whatever a backend does, what comes
// out is a valid result whose ciphertext fits the caller's bound, or `abandoned`.

import type { Clock } from "../base/ports.ts";
import type { ProviderBackend, ProviderTurn } from "./backend.ts";
import type { Claim } from "./claims.ts";
import type { EventPayload, FailureKind, Outcome, TransportReceipt, TransportResult } from "./contract.ts";
import { decode } from "./decode.ts";
import { TRANSPORT_RESULT } from "./documents.ts";
import { encode } from "./encode.ts";
import { TAG_BYTES } from "./limits.ts";

/** What is said of a turn for logs: how it ended, no content. */
export type Ending = "Completed" | FailureKind;

export interface FinishedTurn {
  /** The result's canonical bytes. */
  readonly plaintext: Buffer;
  readonly ending: Ending;
}

export interface TurnOptions {
  readonly backend: ProviderBackend;
  readonly transport: string;
  readonly limitMs: number | undefined;
  readonly clock: Clock;
}

type Receipted = Omit<TransportReceipt, "outcome">;

/** Enters the backend, once. `abandoned`: the claim was aborted from outside before it ended. Never throws. */
export async function runTurn(claim: Claim, options: TurnOptions): Promise<FinishedTurn | "abandoned"> {
  const receipt = receiptOf(claim, options.transport); // before anybody could change the invocation
  const raced = await race(claim, options);
  if (raced.kind === "abandoned") return "abandoned";
  if (raced.kind === "late")
    return failed(receipt, "TimedOut", "the provider backend exceeded the execution limit");
  const result = raced.kind === "fault" ? undefined : resultOf(receipt, raced.turn);
  if (result === undefined) return failed(receipt, "BackendFault", "the provider backend failed");
  if (result.plaintext.length + TAG_BYTES > claim.caller.payloadBytesMax)
    return failed(receipt, "ResultTooLarge", "the result does not fit the caller's payload bound");
  return result;
}

function receiptOf({ invocation, caller }: Claim, transport: string): Receipted {
  const { request, native_request_sha256, provider_request_sha256 } = invocation;
  return {
    schema_id: "gamecult.model.transport_receipt.v3",
    request_id: request.request_id,
    caller_runtime_id: caller.id,
    native_request_sha256: Buffer.from(native_request_sha256),
    provider_request_sha256: Buffer.from(provider_request_sha256),
    model: request.model,
    transport,
  };
}

type Raced =
  | { readonly kind: "turn"; readonly turn: ProviderTurn }
  | { readonly kind: "fault" }
  | { readonly kind: "late" }
  | { readonly kind: "abandoned" };

/** What comes first: the turn, its limit, or the end of the service. What comes later is let go of. */
function race({ invocation, abort }: Claim, { backend, limitMs, clock }: TurnOptions): Promise<Raced> {
  if (abort.signal.aborted) return Promise.resolve({ kind: "abandoned" });
  return new Promise((resolve) => {
    const settle = (what: Raced) => {
      stopTimer?.();
      abort.signal.removeEventListener("abort", abandon);
      resolve(what);
    };
    const abandon = () => settle({ kind: "abandoned" });
    abort.signal.addEventListener("abort", abandon);
    const stopTimer =
      limitMs === undefined
        ? undefined
        : clock.after(limitMs, () => {
            settle({ kind: "late" });
            abort.abort();
          });
    // Also what it throws at once, and a promise that is none of ours.
    new Promise<ProviderTurn>((execute) => execute(backend.execute(invocation, abort.signal))).then(
      (turn) => settle({ kind: "turn", turn }),
      () => settle({ kind: "fault" }),
    );
  });
}

/** Undefined: the turn forms no valid result. */
function resultOf(receipt: Receipted, turn: ProviderTurn): FinishedTurn | undefined {
  try {
    const { events, outcome } = turn;
    const plaintext = encode(TRANSPORT_RESULT, transported(receipt, events, outcome));
    if (plaintext === undefined) return undefined;
    // A value that answers differently each time it is looked at may have been written as what it is not.
    const result = decode<TransportResult>(TRANSPORT_RESULT, plaintext);
    return result === undefined ? undefined : { plaintext, ending: endingOf(result) };
  } catch {
    return undefined;
  }
}

function failed(receipt: Receipted, failure_kind: FailureKind, message: string): FinishedTurn {
  const plaintext = encode(TRANSPORT_RESULT, transported(receipt, [], { Failed: { failure_kind, message } }));
  if (plaintext === undefined) throw new Error("a failure of the kit's own is a valid result");
  return { plaintext, ending: failure_kind };
}

function transported(receipt: Receipted, events: readonly EventPayload[], outcome: Outcome): TransportResult {
  return {
    schema_id: "gamecult.model.transport_result.v3",
    request_id: receipt.request_id,
    caller_runtime_id: receipt.caller_runtime_id,
    disposition: {
      Transported: {
        events: events.map((payload, sequence) => ({ sequence, payload })),
        receipt: { ...receipt, outcome },
      },
    },
  };
}

function endingOf({ disposition }: TransportResult): Ending {
  if (!("Transported" in disposition)) return "BackendFault";
  const { outcome } = disposition.Transported.receipt;
  return "Failed" in outcome ? outcome.Failed.failure_kind : "Completed";
}
