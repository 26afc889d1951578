// What a file of built-in tools exports, and the shape of a successful outcome.

import { ok } from "../../base/faults.ts";
import { CLEAN, type Labels } from "../../base/labels.ts";
import type { BuiltinCall, BuiltinOutcome, Core, Shown } from "../core.ts";

/** A built-in before its schema is compiled. */
export interface BuiltinSource {
  readonly name: string;
  readonly description: string;
  readonly effect: "read" | "write";
  readonly schema: object;
  /** Its `approval` names what it acts on; left out: its `role`, `tool` and `session` do. */
  readonly actsOn?: "approval";
  run(core: Core, call: BuiltinCall): BuiltinOutcome | Promise<BuiltinOutcome>;
}

/** A successful outcome that changes nothing. */
export function shown(content: unknown, labels: Labels = CLEAN): BuiltinOutcome {
  return ok({ content, labels });
}

/** A successful outcome with what it changed; it says nothing that its caller did not say. */
export function changed(content: unknown, effects: Pick<Shown, "changes" | "settled">): BuiltinOutcome {
  return ok({ content, labels: CLEAN, ...effects });
}
