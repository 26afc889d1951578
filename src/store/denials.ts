// The last denials of each role, for `calls.why`: bounded, in memory, and forgotten with the process.

import type { AuditRecord, CallKey, DecisionRecord } from "./records.ts";

/** Denials kept for each role: nobody pushes out another role's. */
const DENIALS_KEPT = 1024;

export class Denials {
  readonly #roles = new Map<string, Map<string, DecisionRecord>>();

  find(key: CallKey): DecisionRecord | undefined {
    return this.#roles.get(key.role)?.get(nameOf(key));
  }

  /** Of what the audit is told, only denials are kept. */
  note(record: AuditRecord): void {
    if (record.kind !== "decision" && record.kind !== "repeated") return;
    const { decision } = record;
    if (decision.verdict !== "deny") return;
    const { role } = decision.key;
    const denials = this.#roles.get(role) ?? new Map<string, DecisionRecord>();
    this.#roles.set(role, denials);
    const name = nameOf(decision.key);
    denials.delete(name);
    denials.set(name, decision);
    if (denials.size <= DENIALS_KEPT) return;
    const oldest = denials.keys().next();
    if (!oldest.done) denials.delete(oldest.value);
  }
}

/** A session id holds no space, so the two parts can't run into each other. */
function nameOf(key: CallKey): string {
  return `${key.session} ${key.call}`;
}
