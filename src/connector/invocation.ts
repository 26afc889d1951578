// An invocation from what a caller has: schema ids and digests are filled in (spec: connector, 3.2).

import { ConnectorError, unsent } from "./client_error.ts";
import type { ProviderRequest, TransportInvocation } from "./contract.ts";
import { providerRequestDigest } from "./digest.ts";
import { PROVIDER_REQUEST } from "./documents.ts";
import { explainValue } from "./explain_value.ts";

export interface InvocationParts {
  /** The id under which the connector admits this caller. */
  readonly caller: string;
  /** From when on the connector does not start it; a finished turn can still be fetched. */
  readonly expiresAtUnixMs: number;
  /** Of the caller's own request, 32 bytes, not all zero. Where there is none: the provider request's. */
  readonly nativeRequestSha256?: Uint8Array | undefined;
  readonly request: Omit<ProviderRequest, "schema_id">;
}

/** @throws ConnectorError InvalidInvocation where the request is not valid; the rest is checked when it is sent */
export function invocationOf(parts: InvocationParts): TransportInvocation {
  const { caller, expiresAtUnixMs, nativeRequestSha256 } = parts;
  const request: ProviderRequest = {
    ...parts.request,
    schema_id: "gamecult.model.provider_request.v3",
  };
  const digest = providerRequestDigest(request);
  if (digest === undefined) throw new ConnectorError(unsent("InvalidInvocation", whyInvalid(request)));
  return {
    schema_id: "gamecult.model.transport_invocation.v3",
    caller_runtime_id: caller,
    expires_at_unix_ms: expiresAtUnixMs,
    native_request_sha256: nativeRequestSha256 ?? digest,
    provider_request_sha256: digest,
    request,
  };
}

function whyInvalid(request: unknown): string {
  return `the request is not valid: ${explainValue(PROVIDER_REQUEST, request) ?? "it has no encoding"}`;
}
