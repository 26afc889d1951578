// One result in pieces: cutting content that is too long for a frame, and joining parts. Pure.

import { join as joinLabels } from "../base/labels.ts";
import type { ToolResult } from "../wire/message.ts";

/** Of content as it stands in a frame (escaped UTF-8): leaves ample room for the envelope around it. */
export const PART_BYTES_MAX = 900 * 1024;
/** The most that one UTF-16 unit becomes: `\u0000`. */
const UNIT_BYTES_MAX = 6;

const SHORT_ESCAPES = new Set('\b\f\n\r\t"\\'.split("").map((character) => character.charCodeAt(0)));

/**
 * Pieces of at most `bytesMax` (at least 6) encoded bytes, in order, never cut within a character; one
 * piece (perhaps empty) where all fits. The text must be well-formed.
 */
export function splitContent(content: string, bytesMax: number = PART_BYTES_MAX): string[] {
  if (content.length * UNIT_BYTES_MAX <= bytesMax) return [content];
  const pieces: string[] = [];
  let start = 0;
  let bytes = 0;
  for (let at = 0; at < content.length; ) {
    const point = content.codePointAt(at)!;
    const size = encodedBytes(point);
    if (bytes + size > bytesMax) {
      pieces.push(content.slice(start, at));
      start = at;
      bytes = 0;
    }
    bytes += size;
    at += point > 0xffff ? 2 : 1;
  }
  pieces.push(content.slice(start));
  return pieces;
}

/** Bytes of a character within a canonical JSON string. */
function encodedBytes(point: number): number {
  if (SHORT_ESCAPES.has(point)) return 2;
  if (point < 0x20) return 6;
  if (point < 0x80) return 1;
  if (point < 0x800) return 2;
  return point > 0xffff ? 4 : 3;
}

/** The result that parts are one of: content in order, labels joined, truncated where one is. At least one part. */
export function joinParts(parts: readonly ToolResult[]): ToolResult {
  const [first, ...rest] = parts as [ToolResult, ...ToolResult[]];
  if (rest.length === 0) return first;
  const labels = rest.reduce<Pick<ToolResult, "class" | "untrusted">>(joinLabels, first);
  return {
    status: "result",
    content: parts.map((part) => part.content).join(""),
    class: labels.class,
    untrusted: labels.untrusted,
    truncated: parts.some((part) => part.truncated),
  };
}
