// Which audit records an export shows: what is read of a record's text for that, and whether it fits.
// A session's records are also those about its whole role, where both are asked for: its role's taint is its own, and it is
// frozen with it. A call's records are also of the taints that it raised.

import { ascii } from "../store/audit_event.ts";

export interface AuditFilter {
  readonly sinceMs: number;
  /** Records of this very millisecond are not shown. */
  readonly untilMs: number;
  /** Each undefined: whatever it is. */
  readonly session: string | undefined;
  readonly role: string | undefined;
  readonly tool: string | undefined;
  readonly decision: string | undefined;
  /** A call id in decimal. */
  readonly call: string | undefined;
}

/** What a record is about. A record that is damaged has nothing of this, and is shown where nothing is asked for. */
export interface RecordNames {
  readonly atMs: number | undefined;
  readonly session: string | undefined;
  readonly role: string | undefined;
  readonly tool: string | undefined;
  readonly decision: string | undefined;
  /** The call that it is about, or that raised what it tells of. */
  readonly call: string | undefined;
  /** It is about all sessions of its role. */
  readonly ofWholeRole: boolean;
  readonly taint: { readonly class: unknown; readonly untrusted: unknown } | undefined;
  /** The role whose words it quotes: a reason, a condition. */
  readonly writer: string | undefined;
  /** Ids of grants, which their writers chose. */
  readonly grants: readonly string[];
}

const NOTHING: RecordNames = {
  atMs: undefined,
  session: undefined,
  role: undefined,
  tool: undefined,
  decision: undefined,
  call: undefined,
  ofWholeRole: false,
  taint: undefined,
  writer: undefined,
  grants: [],
};

export function readNames(record: string): RecordNames {
  try {
    const members = JSON.parse(record) as Readonly<Record<string, unknown>>;
    return {
      atMs: typeof members["at_ms"] === "number" ? members["at_ms"] : undefined,
      session: name(members["session"]),
      role: name(members["role"]),
      tool: name(members["tool"]),
      decision: name(members["decision"]),
      call: name(members["call"]) ?? name(raisedBy(members["raised_by"])),
      ofWholeRole: isOfWholeRole(members),
      taint: members["taint"] as RecordNames["taint"],
      writer: QUOTED.some((one) => one in members) ? writerOf(members["by"]) : undefined,
      grants: [members["grant"], members["grants"]].flat().filter((one) => typeof one === "string"),
    };
  } catch {
    return NOTHING;
  }
}

/** When it was written, without reading it; undefined: it is damaged. */
export function recordAtMs(record: string): number | undefined {
  const [, atMs] = /^\{"seq":"[0-9]+","at_ms":([0-9]+)[,}]/.exec(record) ?? [];
  return atMs === undefined ? undefined : Number(atMs);
}

const QUOTED = ["reason", "when", "subject"] as const;

function writerOf(by: unknown): string | undefined {
  return typeof by === "object" && by !== null && "role" in by ? name(by.role) : undefined;
}

function raisedBy(call: unknown): unknown {
  return typeof call === "object" && call !== null && "call" in call ? call.call : undefined;
}

/** Kinds that tell of a session, or of a role and so of each of its sessions. */
const OF_ROLES: ReadonlySet<unknown> = new Set(["taint", "endorsed", "frozen"]);

function isOfWholeRole(members: Readonly<Record<string, unknown>>): boolean {
  return OF_ROLES.has(members["kind"]) && "role" in members && !("session" in members);
}

function name(member: unknown): string | undefined {
  return typeof member === "string" ? member : undefined;
}

export function matchesFilter(names: RecordNames, filter: AuditFilter): boolean {
  const atMs = names.atMs ?? 0;
  return (
    (names.atMs === undefined || (atMs >= filter.sinceMs && atMs < filter.untilMs)) &&
    (fits(names.session, filter.session) || (names.ofWholeRole && filter.role !== undefined)) &&
    fits(names.role, filter.role) &&
    fits(names.tool, filter.tool) &&
    fits(names.decision, filter.decision) &&
    fits(names.call, filter.call)
  );
}

/** A quick look at a record's text; false: it need not be read, since it can't fit. */
export function quickLook({ role, session, call, tool, decision }: AuditFilter): (record: string) => boolean {
  const wanted = [member("role", role), member("call", call), member("tool", tool)];
  const needed = [...wanted, member("decision", decision)].filter((one) => one !== undefined);
  const ofSession = [member("session", session), ...OF_WHOLE_ROLES].filter((one) => one !== undefined);
  return (record) =>
    needed.every((one) => record.includes(one)) &&
    (session === undefined || ofSession.some((one) => record.includes(one)));
}

/** What stands in the text of each record about a whole role. */
const OF_WHOLE_ROLES = ['"of":"role"', '"kind":"frozen"'] as const;

/** As it stands in a record's text. */
function member(name: string, value: string | undefined): string | undefined {
  return value === undefined ? undefined : `"${name}":${ascii(JSON.stringify(value))}`;
}

function fits(has: string | undefined, wanted: string | undefined): boolean {
  return wanted === undefined || has === wanted;
}
