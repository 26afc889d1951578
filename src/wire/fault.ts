// The one error that the codec throws. It never carries a byte of the input.

export type FrameOutcome = "closed" | "empty" | "too_large" | "bad_version" | "json" | "io";

const SENTENCES: Readonly<Record<FrameOutcome, string>> = {
  closed: "the stream ended between frames",
  empty: "a frame declared a length of 0",
  too_large: "a frame is larger than 1048576 bytes",
  bad_version: "an envelope has another protocol version than 1",
  json: "a frame's body is not exactly one valid envelope",
  io: "the stream ended inside a frame",
};

/**
 * Why bytes are no frame, or a value can't become one.
 * `detail`: for `too_large` the declared or encoded length in bytes, for `bad_version` the `v` found.
 * `closed` and `io` come only from a reader that was told that its stream has ended.
 */
export class FrameFault extends Error {
  readonly outcome: FrameOutcome;
  readonly detail: number | undefined;

  constructor(outcome: FrameOutcome, detail?: number, sentence: string = SENTENCES[outcome]) {
    super(detail === undefined ? sentence : `${sentence} (${detail})`);
    this.name = "FrameFault";
    this.outcome = outcome;
    this.detail = detail;
  }
}

/**
 * What reading a value from an untyped caller threw (a null, a getter, a Proxy), as the fault that it is
 * to the encoder: a value outside the grammar.
 */
export function encodeFault(error: unknown): FrameFault {
  return error instanceof FrameFault ? error : new FrameFault("json", undefined, "a value is no envelope");
}
