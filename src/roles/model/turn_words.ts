// What a caller is told of a turn that gave no answer of the model's: what came of it, whether the model may have run,
// and what to do. Closed tables over the contract's words.

import type { ConnectorError, ConnectorErrorCode } from "../../connector/client_error.ts";
import type { Failed, Refusal } from "../../connector/contract.ts";

const NOT_STARTED = "nothing was started";
const OWNER = "its owner has to look at this";

const REFUSED: Readonly<Record<Refusal, string>> = {
  Malformed: `the connector takes this for no request of its contract; ${NOT_STARTED}; ${OWNER}`,
  PayloadOverBound: `the request is larger than the connector allows this caller (max_payload_bytes); ${NOT_STARTED}`,
  IdentitySubstitution: `the connector found another caller in the request; ${NOT_STARTED}; ${OWNER}`,
  ProviderDigestSubstitution: `the connector found a digest that is not the request's; ${NOT_STARTED}; ${OWNER}`,
  ReplayConflict: `its id is that of another turn, or was used for this one too long ago; ${NOT_STARTED} now; ask under a new id`,
  InFlight: "the turn is running, and its answer was not waited for any longer",
  Indeterminate:
    "the turn ran, or may have run, and its answer is lost; asking under a new id lets the model run a second time",
  Expired: `the request's expiry is not within the connector's expiry_horizon: --expiry-horizon must not be longer; ${NOT_STARTED}`,
  ModelNotAllowed: `the connector does not allow this caller that model (allowed_models); ${NOT_STARTED}`,
  OutputTokensOverBound: `max_output_tokens is above what the connector allows this caller; ${NOT_STARTED}`,
  Capacity: `the connector runs as many turns of this caller as it allows (max_concurrent_requests); ${NOT_STARTED}; ask again later`,
};

export function refusalText(refusal: Refusal): string {
  return `${refusal}: ${REFUSED[refusal]}`;
}

/** The message is a provider's, or about one: untrusted. */
export function failureText({ failure_kind, message }: Failed): string {
  return `${failure_kind}: ${message} (the turn ended so, and is recorded: a new id asks the model again)`;
}

export const UNWANTED = "nobody waits for the answer any more; the turn itself may go on";

const UNREACHED: Readonly<Partial<Record<ConnectorErrorCode, string>>> = {
  Connection: "the connector can't be reached: does it run?",
  NoAnswer:
    "the connector gave no answer: it stopped, does not know this caller with this secret, takes no request this large, or can't record turns now; its log tells which",
  Timeout: "the connector did not answer in time",
};

export function errorText(error: ConnectorError): string {
  const { code, message, mayHaveRun } = error;
  const what = UNREACHED[code];
  const told = what === undefined ? message : `${code}: ${what}`;
  const remedy =
    code === "FrameSize" && !mayHaveRun ? " (--max-payload-bytes, as the connector's config has it)" : "";
  return `${told}${remedy}; ${mayHaveRun ? "the model may have run" : NOT_STARTED}`;
}
