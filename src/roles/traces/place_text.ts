// A place in the audit as the text of a file, and back. The file is this program's own, but a disk or a hand may have
// changed it: what is no whole place is told, and never guessed at.

import type { OpenCall } from "./call_span.ts";
import type { Place } from "./follow.ts";

const FORM = 1;

export function placeText({ seq, hash, open }: Place): string {
  return `${JSON.stringify({ form: FORM, seq, hash, open })}\n`;
}

/** undefined: it is none. */
export function readPlace(text: string): Place | undefined {
  const { form, seq, hash, open } = parsed(text);
  if (form !== FORM || typeof seq !== "string" || typeof hash !== "string") return undefined;
  if (!/^[1-9][0-9]{0,19}$/.test(seq) || !/^[0-9a-f]{64}$/.test(hash)) return undefined;
  if (!Array.isArray(open) || !open.every(isOpenCall)) return undefined;
  return { seq, hash, open };
}

type Members = Readonly<Record<string, unknown>>;

function parsed(text: string): Members {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isOpenCall(value: unknown): value is OpenCall {
  if (!isObject(value)) return false;
  const texts = ["role", "session", "call", "tool", "seq"].every((name) => typeof value[name] === "string");
  const numbers = ["startMs", "droppedEvents", "parts"].every((name) => typeof value[name] === "number");
  return texts && numbers && isObject(value["attributes"]) && isEvents(value["events"]) && isQuestion(value);
}

function isEvents(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every(
      (event) =>
        isObject(event) &&
        typeof event["name"] === "string" &&
        typeof event["atMs"] === "number" &&
        isObject(event["attributes"]),
    )
  );
}

function isQuestion({ question }: Members): boolean {
  return question === undefined || (isObject(question) && typeof question["askedMs"] === "number");
}
