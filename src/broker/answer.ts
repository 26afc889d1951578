// The one place that turns inner outcomes into what a caller reads, and the words for it.

import type { CallFault, DenyReason, FailCode } from "../base/faults.ts";
import type { Labels } from "../base/labels.ts";
import { encodeMessage } from "../wire/envelope.ts";
import type { JsonString } from "../wire/json_string.ts";

export function callFault(code: FailCode, sentence: string): CallFault {
  return { code, sentence };
}

export const NOTHING_RAN = "Nothing ran.";
export const MAY_HAVE_RUN = "The provider may have run.";
/** Before the record is looked up: an earlier request of the same id may have run. */
export const NOT_TAKEN = "Nothing was run for this request.";

export function failedMessage(fault: CallFault): Buffer {
  return encodeMessage({
    kind: "tool_response",
    body: { status: "failed", message: `${fault.code}: ${fault.sentence}` },
  });
}

export function deniedMessage(reason: DenyReason): Buffer {
  return encodeMessage({ kind: "tool_response", body: { status: "denied", reason } });
}

export function resultMessage(content: string | JsonString, labels: Labels, truncated: boolean): Buffer {
  return encodeMessage({
    kind: "tool_response",
    body: { status: "result", content, class: labels.class, untrusted: labels.untrusted, truncated },
  });
}

export function internalMessage(): Buffer {
  return encodeMessage({
    kind: "error",
    body: { code: "internal", detail: "the broker met a fault of its own; the call's fate is in its record" },
  });
}
