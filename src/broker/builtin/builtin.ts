// What a tool of the broker's own is: decided, labelled and answered like any other, but run here.

import type { CallFault, Result } from "../../base/faults.ts";
import type { JsonObject } from "../../base/json.ts";
import type { Labels } from "../../base/labels.ts";
import type { ConditionInput } from "../../policy/conditions.ts";
import type { RolePolicy } from "../../policy/policy.ts";
import type { ArgumentsSchema } from "../../policy/schema.ts";
import type { Session } from "../../session/sessions.ts";
import type { CallKey } from "../../store/records.ts";
import type { Core } from "../core.ts";
import type { Peer } from "../peers.ts";

export interface BuiltinCall {
  readonly peer: Peer;
  readonly role: RolePolicy;
  readonly session: Session;
  readonly key: CallKey;
  readonly args: JsonObject;
}

/** What it shows, as a value for JSON (bigint as decimal string), and the labels of that. */
export interface Shown {
  readonly content: unknown;
  readonly labels: Labels;
}

export type BuiltinOutcome = Result<Shown, CallFault>;

export interface Builtin {
  readonly name: string;
  readonly description: string;
  /** A `read` is neither recorded for replay nor replayed. */
  readonly effect: "read" | "write";
  readonly schema: ArgumentsSchema;
  /** What it acts on: conditions of grants can look at it. Arguments are not validated yet. */
  target(args: JsonObject, role: string): ConditionInput["target"];
  run(core: Core, call: BuiltinCall): BuiltinOutcome | Promise<BuiltinOutcome>;
}
