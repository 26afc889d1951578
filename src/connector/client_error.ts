// Why a turn ended without a result that can be believed (spec: connector, 7). A refusal and a failed turn are results,
// never errors. Invariant: no error carries anything of a secret, a request or an answer.

/**
 * - `InvalidConfig`: the client can't be made so.
 * - `RequestIdTooLong`, `InvalidInvocation`: the invocation breaks the contract; nothing was sent.
 * - `FrameSize`: the request does not fit the frame bound (nothing was sent), or the answer says that it does not.
 * - `Connection`: there is none, or it broke before the request was written.
 * - `Timeout`: connecting, writing or the answer took too long.
 * - `NoAnswer`: the connector ended the connection without a whole answer, as it does with whatever it can't authenticate.
 * - `Carriage`, `Envelope`, `Authentication`, `Result`: what came is no answer to this invocation, or not the connector's.
 */
export const CONNECTOR_ERROR_CODES = [
  "InvalidConfig",
  "RequestIdTooLong",
  "InvalidInvocation",
  "FrameSize",
  "Connection",
  "Timeout",
  "NoAnswer",
  "Carriage",
  "Envelope",
  "Authentication",
  "Result",
] as const;
export type ConnectorErrorCode = (typeof CONNECTOR_ERROR_CODES)[number];

export interface ConnectorFault {
  readonly code: ConnectorErrorCode;
  /** For people. */
  readonly sentence: string;
  /** Whether anything of the request was written, so that the provider may run or have run. */
  readonly mayHaveRun: boolean;
}

/** Where `mayHaveRun`: send the same invocation again, and its one answer is fetched; the provider is not entered twice. */
export class ConnectorError extends Error {
  readonly code: ConnectorErrorCode;
  readonly mayHaveRun: boolean;

  constructor({ code, sentence, mayHaveRun }: ConnectorFault) {
    super(`${code}: ${sentence}`);
    this.name = "ConnectorError";
    this.code = code;
    this.mayHaveRun = mayHaveRun;
  }
}

/** The same error, of a turn that an earlier attempt may have started. */
export function startedBefore({ code, message }: ConnectorError): ConnectorError {
  return new ConnectorError(sent(code, message.slice(`${code}: `.length)));
}

/** A fault that was found before anything was sent. */
export function unsent(code: ConnectorErrorCode, sentence: string): ConnectorFault {
  return { code, sentence, mayHaveRun: false };
}

/** A fault that was met after something was sent. */
export function sent(code: ConnectorErrorCode, sentence: string): ConnectorFault {
  return { code, sentence, mayHaveRun: true };
}
