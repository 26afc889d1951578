// Lines of a stream and of a file that grows. Invariant: a line has a bound, whoever writes it; a line is
// given once, when it has ended.

import { type FileHandle, open, stat } from "node:fs/promises";
import { pause } from "../client/effects.ts";

/** Longer than any line of the daemon's. What is beyond is not kept. */
const LINE_BYTES_MAX = 1_048_576;
const READ_BYTES = 65_536;
const LINE_FEED = 0x0a;
/** How often a file is looked at that has not grown. */
const LOOK_MS = 250;

/** Bytes to lines, without their line feeds; what is no UTF-8 becomes U+FFFD. */
export class LineSplitter {
  #parts: Buffer[] = [];
  #bytes = 0;

  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
      this.#keep(chunk.subarray(from, at));
      lines.push(...this.end());
      from = at + 1;
    }
    this.#keep(chunk.subarray(from));
    return lines;
  }

  /** What has come of a line that nothing more comes of; empty lines are none. */
  end(): string[] {
    const line = Buffer.concat(this.#parts).toString("utf8").replace(/\r$/, "");
    this.#parts = [];
    this.#bytes = 0;
    return line === "" ? [] : [line];
  }

  #keep(part: Buffer): void {
    const room = LINE_BYTES_MAX - this.#bytes;
    if (part.length === 0 || room <= 0) return;
    this.#parts.push(Buffer.from(part.subarray(0, room))); // the file's buffer is used again
    this.#bytes += part.length;
  }
}

/** Lines of a stream until it ends, or until `stop`. */
export async function* streamLines(
  input: NodeJS.ReadableStream,
  stop: AbortSignal,
): AsyncGenerator<string, void> {
  const splitter = new LineSplitter();
  const destroy = () => (input as { destroy?: () => void }).destroy?.();
  stop.addEventListener("abort", destroy);
  try {
    for await (const chunk of input) yield* splitter.push(Buffer.from(chunk));
  } catch (error) {
    if (!stop.aborted) throw error; // cut short by us
  } finally {
    stop.removeEventListener("abort", destroy);
  }
  yield* splitter.end();
}

export type FileEvent =
  | { readonly line: string }
  /** Another file has taken its place (`replaced`), or it was emptied (`cut`). */
  | { readonly now: "replaced" | "cut" };

/** What is in the file from `from` on, and whatever comes, in it and in those that take its place. Ends at `stop`. */
export async function* fileLines(
  path: string,
  from: number,
  stop: AbortSignal,
): AsyncGenerator<FileEvent, void> {
  let file = await open(path);
  let at = from;
  let splitter = new LineSplitter();
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  try {
    while (!stop.aborted) {
      const { bytesRead } = await file.read(buffer, 0, READ_BYTES, at);
      at += bytesRead;
      for (const line of splitter.push(buffer.subarray(0, bytesRead))) yield { line };
      if (bytesRead > 0) continue;
      const next = await successor(path, file, at);
      if (next === undefined) {
        await pause(LOOK_MS, stop);
        continue;
      }
      for (const line of splitter.end()) yield { line };
      splitter = new LineSplitter();
      at = 0;
      if (next !== "cut") {
        await file.close();
        file = next;
      }
      yield { now: next === "cut" ? "cut" : "replaced" };
    }
  } finally {
    await file.close();
  }
}

/** What to go on with; undefined: with the same. Asked only when all that is in the file has been read. */
async function successor(
  path: string,
  file: FileHandle,
  at: number,
): Promise<FileHandle | "cut" | undefined> {
  const mine = await file.stat();
  if (mine.size < at) return "cut";
  try {
    const there = await stat(path);
    if (there.ino === mine.ino && there.dev === mine.dev) return undefined;
    // Between our last read and its being replaced more may have come.
    return (await file.stat()).size > at ? undefined : await open(path);
  } catch {
    return undefined; // it is being replaced: nothing is there, or not yet to be read
  }
}

/**
 * Where the last `count` lines begin for which `wanted` is true; the beginning where there are fewer. Read from the
 * end, so that a long file costs no more than it must.
 */
export async function offsetOfLast(
  path: string,
  count: number,
  wanted: (line: string) => boolean,
): Promise<number> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    return await backwards(file, size, count, wanted);
  } finally {
    await file.close();
  }
}

async function backwards(
  file: FileHandle,
  size: number,
  count: number,
  wanted: (line: string) => boolean,
): Promise<number> {
  let left = count;
  let tail: Buffer = Buffer.alloc(0); // the beginning of a line whose own beginning is not read yet
  let start = size;
  if (left <= 0) return size;
  for (let end = size; end > 0; end = start) {
    start = Math.max(0, end - READ_BYTES);
    const chunk = Buffer.alloc(end - start);
    await file.read(chunk, 0, chunk.length, start);
    let bytes: Buffer = Buffer.concat([chunk, tail]);
    for (let at = feedBefore(bytes); at >= 0; at = feedBefore(bytes)) {
      const line = bytes.subarray(at + 1);
      if (holds(line, wanted)) left -= 1;
      if (left === 0) return start + at + 1;
      bytes = bytes.subarray(0, at + 1);
    }
    tail = bytes.length > LINE_BYTES_MAX ? bytes.subarray(0, LINE_BYTES_MAX) : bytes;
  }
  return 0;
}

/** Of the last line in the bytes: the feed in front of it. Its own, where it has one, is its end. */
function feedBefore(bytes: Buffer): number {
  return bytes.length < 2 ? -1 : bytes.lastIndexOf(LINE_FEED, bytes.length - 2);
}

function holds(bytes: Buffer, wanted: (line: string) => boolean): boolean {
  const line = bytes.toString("utf8").replace(/\r?\n$/, "");
  return line !== "" && wanted(line);
}
