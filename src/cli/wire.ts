// `callgate wire decode|encode`: JSON Lines in, JSON Lines out, for people who write roles in other
// languages and try them against the codec. What a row means: wire_rows.ts.

import { isUtf8 } from "node:buffer";
import { type Line, readLines } from "./wire_lines.ts";
import { decodeRow, encodeRow, parseRow, RowFault, rowName } from "./wire_rows.ts";

export type WireMode = "decode" | "encode";

/** Bytes of one line of input: a frame of the largest size in hex takes an eighth of it. */
export const LINE_BYTES_MAX = 16 * 1_048_576;

/**
 * Answers every line of `input` that is not empty with one line on `output`, in order: compact JSON with the
 * members `name`, `outcome`, `detail` and `reencoded_hex` (decode) or `hex` (encode).
 * A line that is no such row is answered too: outcome `error`, `detail` the sentence `line N: …`, which quotes
 * nothing. Lines end in LF or CRLF. Never ends `output`.
 * @returns the exit status: 0; 1 where a line was no row or the input can't be read (an answer says so);
 *   2 where the output can't be written, save that a reader who has gone (EPIPE) is none of our faults
 */
export async function runWire(
  mode: WireMode,
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
): Promise<number> {
  const sink = new Sink(output);
  let status = 0;
  for await (const line of readLines(input, LINE_BYTES_MAX)) {
    const answer = answerLine(mode, line);
    if (answer.outcome === "error") status = 1;
    if (!(await sink.write(`${JSON.stringify(answer)}\n`))) break;
  }
  await sink.written();
  return sink.failed ? 2 : status;
}

interface Answer {
  readonly name: unknown;
  readonly outcome: string;
  readonly detail: number | string | null;
}

const LINE_FAULTS = { too_long: "longer than 16 MiB", unreadable: "the input can't be read" } as const;

function answerLine(mode: WireMode, line: Line): Answer {
  let name: unknown = null;
  try {
    if ("fault" in line) throw new RowFault(LINE_FAULTS[line.fault]);
    if (!isUtf8(line.text)) throw new RowFault("not UTF-8");
    const row = parseRow(line.text.toString());
    name = rowName(row);
    return mode === "decode" ? decodeRow(row) : encodeRow(row);
  } catch (error) {
    if (!(error instanceof RowFault)) throw error;
    return errorAnswer(mode, name, `line ${line.number}: ${error.message}`);
  }
}

function errorAnswer(mode: WireMode, name: unknown, detail: string): Answer {
  const bytes = mode === "decode" ? { reencoded_hex: null } : { hex: null };
  return { name, outcome: "error", detail, ...bytes };
}

/** The output, with its pace kept and its failure as a value. */
class Sink {
  readonly #output: NodeJS.WritableStream;
  #lastWrite: Promise<void> = Promise.resolve();
  #state: "open" | "reader_gone" | "failed" = "open";

  constructor(output: NodeJS.WritableStream) {
    this.#output = output;
    // Never taken off: the event comes after the write's own answer, and without a listener it ends the process.
    output.on("error", (error) => this.#fail(error));
  }

  get failed(): boolean {
    return this.#state === "failed";
  }

  /** Whether more can be written, once the output has room for it. */
  async write(text: string): Promise<boolean> {
    if (this.#state !== "open") return false;
    let hasRoom = true;
    this.#lastWrite = new Promise((resolve) => {
      hasRoom = this.#output.write(text, (error) => {
        if (error) this.#fail(error);
        resolve();
      });
    });
    if (!hasRoom) await this.#lastWrite;
    return this.#state === "open";
  }

  /** Everything has left, or it never will. */
  written(): Promise<void> {
    return this.#lastWrite;
  }

  #fail(error: NodeJS.ErrnoException): void {
    if (this.#state === "open") this.#state = error.code === "EPIPE" ? "reader_gone" : "failed";
  }
}
