// Which audit records an export shows: what is read of a record's text for that, and whether it fits.

export interface AuditFilter {
  readonly sinceMs: number;
  /** Records of this very millisecond are not shown. */
  readonly untilMs: number;
  /** Each undefined: whatever it is. */
  readonly session: string | undefined;
  readonly role: string | undefined;
  readonly tool: string | undefined;
  readonly decision: string | undefined;
}

/** What a record is about. A record that is damaged has nothing of this, and is shown where nothing is asked for. */
export interface RecordNames {
  readonly atMs: number | undefined;
  readonly session: string | undefined;
  readonly role: string | undefined;
  readonly tool: string | undefined;
  readonly decision: string | undefined;
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
      taint: members["taint"] as RecordNames["taint"],
      writer: QUOTED.some((one) => one in members) ? writerOf(members["by"]) : undefined,
      grants: [members["grant"], members["grants"]].flat().filter((one) => typeof one === "string"),
    };
  } catch {
    return NOTHING;
  }
}

const QUOTED = ["reason", "when", "subject"] as const;

function writerOf(by: unknown): string | undefined {
  return typeof by === "object" && by !== null && "role" in by ? name(by.role) : undefined;
}

function name(member: unknown): string | undefined {
  return typeof member === "string" ? member : undefined;
}

export function matchesFilter(names: RecordNames, filter: AuditFilter): boolean {
  const atMs = names.atMs ?? 0;
  return (
    (names.atMs === undefined || (atMs >= filter.sinceMs && atMs < filter.untilMs)) &&
    fits(names.session, filter.session) &&
    fits(names.role, filter.role) &&
    fits(names.tool, filter.tool) &&
    fits(names.decision, filter.decision)
  );
}

function fits(has: string | undefined, wanted: string | undefined): boolean {
  return wanted === undefined || has === wanted;
}
