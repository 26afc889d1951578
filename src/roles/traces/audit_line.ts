// One line of an audit export as far as spans are made of it. Only what is named here is read: no argument that a tool
// opted in (`args`), no person's words. Invariant: whatever the line is, what comes of it has these types.

import type { Labelled } from "../../client/answers.ts";

export interface CallName {
  readonly role: string;
  readonly session: string;
  readonly call: string;
}

export interface AuditEntry {
  readonly seq: bigint;
  readonly hash: string;
  readonly kind: string;
  readonly atMs: number;
  /** Which call it is about; undefined: none. */
  readonly name: CallName | undefined;
  readonly members: Readonly<Record<string, unknown>>;
}

const SEQ = /^[1-9][0-9]{0,19}$/;

/** undefined: it is no such line. */
export function readEntry(line: string): AuditEntry | undefined {
  const whole = parsed(line);
  const members = objectOf(whole?.["record"]);
  const hash = whole?.["hash"];
  const { seq, kind, at_ms: atMs } = members ?? {};
  if (members === undefined || typeof hash !== "string") return undefined;
  if (typeof seq !== "string" || !SEQ.test(seq) || typeof kind !== "string" || typeof atMs !== "number")
    return undefined;
  return { seq: BigInt(seq), hash, kind, atMs, name: nameOf(members), members };
}

function parsed(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return objectOf(JSON.parse(line));
  } catch {
    return undefined;
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return value as Record<string, unknown>; // any JSON object is one
}

function nameOf({ role, session, call }: Readonly<Record<string, unknown>>): CallName | undefined {
  if (typeof role !== "string" || typeof session !== "string" || typeof call !== "string") return undefined;
  return { role, session, call };
}

export function textOf({ members }: AuditEntry, name: string): string | undefined {
  const value = members[name];
  return typeof value === "string" ? value : undefined;
}

export function numberOf({ members }: AuditEntry, name: string): number | undefined {
  const value = members[name];
  return typeof value === "number" ? value : undefined;
}

/** Of a member that names who did it: its role. */
export function roleIn({ members }: AuditEntry, name: string): string | undefined {
  const role = objectOf(members[name])?.["role"];
  return typeof role === "string" ? role : undefined;
}

/** The call that a member names. */
export function callIn({ members }: AuditEntry, name: string): CallName | undefined {
  const value = objectOf(members[name]);
  return value === undefined ? undefined : nameOf(value);
}

/** Labels that stand in a member, or in the record itself. */
export function labelsIn({ members }: AuditEntry, name?: string): Labelled | undefined {
  const { class: dataClass, untrusted } = (name === undefined ? members : objectOf(members[name])) ?? {};
  if (typeof dataClass !== "string" || typeof untrusted !== "boolean") return undefined;
  return { class: dataClass, untrusted };
}
