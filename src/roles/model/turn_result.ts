// What a turn comes to, as the text of a result: the JSON views of its events, so that they go back into the next
// turn's `input` as they are, and how it ended. Or a sentence on why there is none.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { EventPayload, TransportResult } from "../../connector/contract.ts";
import type { Unanswered } from "./take_turn.ts";
import { errorText, failureText, refusalText, UNWANTED } from "./turn_words.ts";

/** One JSON object; `events` are in order, opaque bytes in hexadecimal. */
export function turnText(taken: Result<TransportResult, Unanswered>): Result<string> {
  if (!taken.ok) return fault(taken.fault === "aborted" ? UNWANTED : errorText(taken.fault));
  const { disposition } = taken.value;
  if ("Refused" in disposition) return fault(refusalText(disposition.Refused));
  const { events, receipt } = disposition.Transported;
  const { outcome, transport } = receipt;
  if ("Failed" in outcome) return fault(failureText(outcome.Failed));
  const { stop_reason, usage, provider_response_id } = outcome.Completed;
  const views = events.map(({ payload }) => eventView(payload));
  return ok(JSON.stringify({ stop_reason, events: views, usage, transport, provider_response_id }));
}

function eventView(event: EventPayload): unknown {
  if (!("ReasoningState" in event)) return event;
  const { provider, model, opaque } = event.ReasoningState;
  return { ReasoningState: { provider, model, opaque: Buffer.from(opaque).toString("hex") } };
}
