// What a tool gives back before it is labelled, and JSON lists that stay within a bound of bytes.

import { plainJson } from "./file_path.ts";

export interface ToolText {
  readonly content: string;
  /** Whether there is more than what is given. */
  readonly truncated: boolean;
}

export interface JsonList {
  /** Takes one element, as JSON text; false where it no longer fits, and then the list is cut. */
  add(element: string): boolean;
  /** The text: the head's members, the list, then the tail's members. */
  finish(cut: boolean, tail?: Readonly<Record<string, unknown>>): ToolText;
}

/** Room for the members behind the list. */
const TAIL_BYTES = 512;

/** An object whose last or last but few member is a list; never more than `bytesMax` with its head. */
export function jsonList(
  head: Readonly<Record<string, unknown>>,
  member: string,
  bytesMax: number,
): JsonList {
  const opening = `${plainJson(head).slice(0, -1)},${plainJson(member)}:[`;
  const elements: string[] = [];
  let left = bytesMax - Buffer.byteLength(opening) - TAIL_BYTES;
  let full = false;
  return {
    add(element) {
      left -= Buffer.byteLength(element) + 1;
      full ||= left < 0;
      if (!full) elements.push(element);
      return !full;
    },
    finish(cut, tail = {}) {
      const members = Object.entries(tail).map(([name, value]) => `,${plainJson(name)}:${plainJson(value)}`);
      return { content: `${opening}${elements.join(",")}]${members.join("")}}`, truncated: full || cut };
    },
  };
}
