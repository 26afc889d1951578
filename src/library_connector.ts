// The entry `callgate/connector`: the contract of the model connector, its envelope and its client. It loads no service, no
// store and no provider's library. What is not exported here may change at any time.

export {
  type CarriedRequest,
  type CarriedResponse,
  decodeRequestFrame,
  decodeResponseFrame,
  encodeRequestFrame,
  encodeResponseFrame,
  type Status,
  statusOf,
} from "./connector/carriage.ts";
export { ConnectorClient, type ConnectorEffects, type ConnectorOptions } from "./connector/client.ts";
export { CONNECTOR_ERROR_CODES, ConnectorError, type ConnectorErrorCode } from "./connector/client_error.ts";
export {
  type Completed,
  type Disposition,
  type Event,
  type EventPayload,
  FAILURE_KINDS,
  type Failed,
  type FailureKind,
  type InputItem,
  MESSAGE_KINDS,
  type MessageKind,
  type Outcome,
  type ProviderRequest,
  REFUSALS,
  type ReasoningState,
  type Refusal,
  STOP_REASONS,
  type StopReason,
  type Tool,
  type ToolCall,
  type TransportEnvelope,
  type TransportInvocation,
  type TransportReceipt,
  type TransportResult,
  type Usage,
} from "./connector/contract.ts";
export { decode } from "./connector/decode.ts";
export { invocationDigest, providerRequestDigest } from "./connector/digest.ts";
export {
  PROVIDER_REQUEST,
  TRANSPORT_ENVELOPE,
  TRANSPORT_INVOCATION,
  TRANSPORT_RECEIPT,
  TRANSPORT_RESULT,
} from "./connector/documents.ts";
export { encode } from "./connector/encode.ts";
export { open, type Seal, seal } from "./connector/envelope.ts";
export { explainValue } from "./connector/explain_value.ts";
export { FrameIntake, type Intake, withLength } from "./connector/frame.ts";
export {
  frameBytesForPayload,
  payloadBytesForFrame,
  requestFrameBytes,
  responseFrameBytes,
} from "./connector/frame_arithmetic.ts";
export { type InvocationParts, invocationOf } from "./connector/invocation.ts";
export { fromView, view } from "./connector/json_view.ts";
export { connectionKey, secretFromFileBytes, secretFromFileText } from "./connector/secret.ts";
export type { Shape } from "./connector/shape.ts";
