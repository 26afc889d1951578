// Why a connector does not start, in the order in which it is looked at (spec: connector, 6.1). Closed.
// Invariant: no secret, and nothing of one, is in an error or its sentence.

import { visibleLine } from "../base/display.ts";

export type StartError =
  /** `field`: by its name in the contract. `must`: what it has to be, for the owner. */
  | { readonly kind: "InvalidConfig"; readonly field: string; readonly must: string }
  | { readonly kind: "DuplicateCaller"; readonly caller: string }
  | { readonly kind: "SharedCallerKey"; readonly callers: readonly [string, string] }
  /** The least `max_frame_bytes` that the largest payload bound needs. */
  | { readonly kind: "FrameBound"; readonly needed: number }
  /** `sentence`: why, for the owner. */
  | { readonly kind: "ReplayStore"; readonly sentence: string }
  /** `code`: a symbolic name (`EADDRINUSE`). */
  | { readonly kind: "Listen"; readonly code: string; readonly bind: string; readonly port: number };

/** For the owner, on one line. */
export function startErrorSentence(error: StartError): string {
  switch (error.kind) {
    case "InvalidConfig":
      return `${error.field} must be ${error.must}`;
    case "DuplicateCaller":
      return `two callers have the id ${quoted(error.caller)}: each needs an id of its own`;
    case "SharedCallerKey":
      return `the callers ${error.callers.map(quoted).join(" and ")} have the same connection secret: each needs one of its own`;
    case "FrameBound":
      return `max_frame_bytes must be at least ${error.needed}, or an answer of the largest max_payload_bytes would not fit`;
    case "ReplayStore":
      return `the replay store: ${error.sentence}`;
    case "Listen":
      return `${error.bind} port ${error.port} can't be listened on (${error.code})${remedyOf(error.code)}`;
  }
}

function quoted(caller: string): string {
  return JSON.stringify(visibleLine(caller));
}

function remedyOf(code: string): string {
  if (code === "EADDRINUSE") return ": another program has it; stop that one, or choose another port";
  return code === "EACCES" ? ": ports below 1024 are the system's; choose a higher one" : "";
}
