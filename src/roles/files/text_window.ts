// A window of bytes onto a UTF-8 text, moved to character boundaries. Pure.
//
// A character belongs to the window that holds all of it, its last byte included. So windows that
// follow each other (`offset + limit` is the next offset) give every character exactly once,
// although none of them knows where the one before it was cut.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { FileFault } from "./file_fault.ts";

/** UTF-8 characters have at most four bytes, so a smaller window could hold none. */
export const WINDOW_BYTES_MIN = 4;
/** Bytes before the window that its first character may begin in. */
export const LOOK_BEHIND_BYTES = 3;

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export interface TextWindow {
  readonly text: string;
  /** Whether the file goes on behind it. */
  readonly truncated: boolean;
}

/**
 * `bytes` are those of the file from `from` on: up to LOOK_BEHIND_BYTES before the window, the
 * window of `limit` bytes, and one byte more where the file goes on.
 */
export function textWindow(bytes: Buffer, from: number, limit: number): Result<TextWindow, FileFault> {
  if (from > bytes.length) return fault("past_end");
  const truncated = bytes.length > from + limit;
  const start = characterStart(bytes, from);
  const end = characterStart(bytes, Math.min(from + limit, bytes.length));
  const text = decodeText(bytes.subarray(start, end));
  return text.ok ? ok({ text: text.value, truncated }) : text;
}

/** Strict: no NUL, no invalid sequence; a byte order mark is kept. */
export function decodeText(bytes: Buffer): Result<string, FileFault> {
  if (bytes.includes(0)) return fault("binary");
  try {
    return ok(DECODER.decode(bytes));
  } catch {
    return fault("not_utf8");
  }
}

/** Where the character begins that the byte at `position` is part of; the end is a beginning. */
export function characterStart(bytes: Buffer, position: number): number {
  let start = position;
  const floor = Math.max(0, position - LOOK_BEHIND_BYTES);
  while (start > floor && isContinuation(bytes[start])) start -= 1;
  return start;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0b1100_0000) === 0b1000_0000;
}
