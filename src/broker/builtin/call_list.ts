// `callgate.calls.list`: which calls fit, page by page. A call that ends while somebody pages is told again with its
// end; none is left out.
// Invariants: one turn looks at a bounded number of calls and bytes, and so does one answer, but for calls that its
// asker may not see: of those it says nothing, not even that they were in the way.

import { type CallFault, FAIL_CODES, fault, ok, type Result } from "../../base/faults.ts";
import { join, type Labels } from "../../base/labels.ts";
import type { CallKey } from "../../store/records.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import { type BuiltinCall, type BuiltinOutcome, type Core, roleOf } from "../core.ts";
import { integer, objectSchema, SESSION, text } from "./arguments.ts";
import { type BuiltinSource, shown } from "./builtin.ts";
import { type Cursor, cursorText, type Phase, readCursor } from "./call_cursor.ts";
import { CALL_STATES, callRow, type FoundRecord, mayTouch } from "./call_row.ts";
import { type Candidate, candidates, type Place } from "./call_sources.ts";
import { joinAll, LIMIT, rowsMax } from "./listing.ts";
import { namedRole, sessionLabels } from "./visibility.ts";

/** What one turn looks at, at most: a few milliseconds. */
const TURN: Budget = { found: 4096, read: 128, bytes: 1_048_576 };
/** What one answer looks at, at most. */
const ANSWER: Budget = { found: 262_144, read: 16_384, bytes: 67_108_864 };

const STATUSES = ["result", "failed", "denied"] as const;

interface Budget {
  /** Calls that were found, read or not. */
  readonly found: number;
  readonly read: number;
  readonly bytes: number;
}

interface Wanted {
  /** undefined: of all. */
  readonly role: string | undefined;
  readonly session: string | undefined;
  readonly tool: string | undefined;
  readonly state: string | undefined;
  readonly status: string | undefined;
  readonly code: string | undefined;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly behind: Place | undefined;
  readonly limit: number;
}

async function list(core: Core, call: BuiltinCall): Promise<BuiltinOutcome> {
  const wanted = readWanted(core, call);
  if (!wanted.ok) return wanted;
  const page = new CallPage(core, call, wanted.value);
  while (!page.fill() && call.peer.asking.size > 0)
    await new Promise<void>((begin) => core.turns.take(call.role.name, begin));
  // Meanwhile a reload may have changed what the role may see.
  const role = roleOf(core, call.peer.connection) ?? call.role;
  if (role.operator !== call.role.operator || role.isolated !== call.role.isolated)
    return list(core, { ...call, role });
  const { rows, next } = page;
  return shown({ calls: rows.map(callRow), all_seen: next === null, next }, page.labels());
}

function readWanted(core: Core, call: BuiltinCall): Result<Wanted, CallFault> {
  const { args, role } = call;
  const named = namedRole(core, call);
  if (!named.ok) return named;
  const before = text(args, "before");
  const behind = before === undefined ? undefined : placeOf(core, call, before);
  if (before !== undefined && behind === undefined)
    return bad("`before` is no `next` of a list that the caller may look at");
  const sinceMs = integer(args, "since_ms") ?? 0;
  const untilMs = integer(args, "until_ms") ?? Number.POSITIVE_INFINITY;
  if (sinceMs < 0 || untilMs < 0) return bad("A time is before 1970");
  return ok({
    role: role.operator && text(args, "role") === undefined ? undefined : named.value.name,
    session: role.isolated && !role.operator ? call.session.id : text(args, "session"),
    tool: text(args, "tool"),
    state: text(args, "state"),
    status: text(args, "status"),
    code: text(args, "code"),
    sinceMs,
    untilMs,
    behind,
    limit: rowsMax(args),
  });
}

/** undefined: the text is none, or names what such a caller is never told of. */
function placeOf(core: Core, call: BuiltinCall, before: string): Place | undefined {
  const cursor = readCursor(before);
  const { role, session } = call;
  if (cursor === undefined || role.operator) return cursor && { ...cursor, isKnown: true };
  const { key } = cursor;
  if (key.role !== role.name || (role.isolated && key.session !== session.id)) return undefined;
  const record = core.store.findCall(key);
  return { ...cursor, number: 0, isKnown: record === undefined || mayTouch(call, record) };
}

function bad(sentence: string): { readonly ok: false; readonly fault: CallFault } {
  return fault(callFault("bad_arguments", `${sentence}. ${NOTHING_RAN}`));
}

/** One answer's rows, and where the next one goes on. */
class CallPage {
  readonly rows: FoundRecord[] = [];
  next: string | null = null;
  readonly #core: Core;
  readonly #call: BuiltinCall;
  readonly #wanted: Wanted;
  /** Of all that were looked at, the last. */
  #at: Place | undefined;
  /** The last of those that the asker may see, and that of the last row. */
  #seen: Cursor | undefined;
  #lastRow: Cursor | undefined;
  readonly #left: Spending = new Spending(ANSWER);
  #turn = new Spending(TURN);

  constructor(core: Core, call: BuiltinCall, wanted: Wanted) {
    this.#core = core;
    this.#call = call;
    this.#wanted = wanted;
    this.#at = wanted.behind;
    this.#seen = wanted.behind;
  }

  /** Goes on for one turn; true: the page is done. */
  fill(): boolean {
    this.#turn = new Spending(TURN);
    for (const phase of this.#phases()) {
      const behind = this.#at?.phase === phase ? this.#at : beginning(phase, this.#wanted.untilMs);
      for (const candidate of candidates(this.#core, phase, this.#wanted.role, behind)) {
        if (this.#turn.isSpent) return false;
        if (this.#isBeyond(candidate)) break;
        if (this.#isFullWith(candidate)) return true;
        this.#at = { ...candidate.at, isKnown: true };
      }
    }
    return true;
  }

  #phases(): readonly Phase[] {
    const { state, status, code } = this.#wanted;
    const goesOn = status === undefined && code === undefined;
    const wanted: Phase[] = [];
    if (goesOn && (state === undefined || state === "running" || state === "waiting")) wanted.push("live");
    if (goesOn && (state === undefined || state === "unknown")) wanted.push("unknown");
    if (state === undefined || state === "ended") wanted.push("ended");
    const begun = this.#at?.phase ?? "live";
    return wanted.filter((phase) => PHASE_ORDER[phase] >= PHASE_ORDER[begun]);
  }

  /** Ended before all that is asked for, as everything behind it. */
  #isBeyond({ at }: Candidate): boolean {
    return at.phase === "ended" && at.atMs < this.#wanted.sinceMs;
  }

  /** Takes it in where it fits; true: there is no more room, and `next` says where to go on. */
  #isFullWith(candidate: Candidate): boolean {
    const found = this.#look(candidate);
    if (found === undefined && !this.#call.role.operator) return false;
    const at = cursorOf(candidate, found, this.#call.role.operator);
    if (found !== undefined && this.#fits(found)) {
      if (this.rows.length === this.#wanted.limit) return this.#endAt(this.#lastRow);
      this.rows.push(found);
      this.#lastRow = at;
    }
    this.#seen = at;
    return this.#left.isSpent && this.#endAt(this.#seen);
  }

  #endAt(cursor: Cursor | undefined): true {
    this.next = cursor === undefined ? null : cursorText(cursor);
    return true;
  }

  /** The call as its asker may see it; undefined also where it need not be read. */
  #look({ at, bytes, read }: Candidate): FoundRecord | undefined {
    const { session, untilMs } = this.#wanted;
    const fits = session === undefined || at.key.session === session;
    const reads = fits && (at.phase !== "ended" || at.atMs < untilMs);
    const cost = reads ? bytes : 0;
    this.#turn.spend(cost);
    const found = reads ? read() : undefined;
    const isSeen = this.#call.role.operator || (found !== undefined && mayTouch(this.#call, found.record));
    if (isSeen) this.#left.spend(cost);
    return isSeen ? found : undefined;
  }

  #fits({ record, state }: FoundRecord): boolean {
    const { tool, status, code, sinceMs, untilMs, ...wanted } = this.#wanted;
    const atMs = state === "ended" ? record.endedAtMs : record.askedAtMs;
    return (
      (wanted.state === undefined || state === wanted.state) &&
      (tool === undefined || record.tool === tool) &&
      (status === undefined || record.status === status) &&
      (code === undefined || record.code === code) &&
      atMs >= sinceMs &&
      atMs < untilMs
    );
  }

  /** What is missing tells too: so for who is no operator, of every session that was asked about. */
  labels(): Labels {
    const { role, session } = this.#call;
    const ofRows = joinAll(this.rows.map(({ record }) => this.#labelsOf(record.key)));
    if (role.operator) return ofRows;
    const asked = this.#wanted.session;
    if (asked !== undefined) return join(ofRows, sessionLabels(this.#core, session.role, asked));
    const all = [...this.#core.sessions.all()].filter((one) => one.role === session.role);
    return join(ofRows, joinAll(all.map((one) => this.#core.sessions.taint(one))));
  }

  #labelsOf({ role, session }: CallKey): Labels {
    return sessionLabels(this.#core, role, session);
  }
}

/** The number of its outcome would tell who is no operator how much others do. */
function cursorOf({ at }: Candidate, found: FoundRecord | undefined, operator: boolean): Cursor {
  const atMs = at.phase === "unknown" && found !== undefined ? found.record.askedAtMs : at.atMs;
  return { ...at, atMs, number: operator ? at.number : 0 };
}

/** What ended later than is asked for is passed over without looking at it. */
function beginning(phase: Phase, untilMs: number): Place | undefined {
  if (phase !== "ended" || !Number.isFinite(untilMs)) return undefined;
  return { phase, key: NOBODYS, atMs: untilMs, number: 0, isKnown: false };
}

const NOBODYS: CallKey = { role: "", session: "", call: 0n };

const PHASE_ORDER: Readonly<Record<Phase, number>> = { live: 0, unknown: 1, ended: 2 };

class Spending {
  #found: number;
  #read: number;
  #bytes: number;

  constructor({ found, read, bytes }: Budget) {
    this.#found = found;
    this.#read = read;
    this.#bytes = bytes;
  }

  get isSpent(): boolean {
    return this.#found <= 0 || this.#read <= 0 || this.#bytes <= 0;
  }

  /** One call; `bytes` 0: it need not be read. */
  spend(bytes: number): void {
    this.#found -= 1;
    this.#bytes -= bytes;
    if (bytes > 0) this.#read -= 1;
  }
}

const TIME =
  "Milliseconds since the epoch. Of calls that ended their end counts, of others when they were asked.";

export const CALL_LIST: BuiltinSource = {
  name: "callgate.calls.list",
  description:
    "Calls that wait for a human or run, then those whose outcome nobody knows (`unknown`), then those that ended: each the newest first. `next`: there may be more.",
  effect: "read",
  schema: objectSchema({
    role: {
      type: "string",
      description: "Only of this role; left out: the caller's own, for operators all.",
    },
    session: SESSION,
    tool: { type: "string", description: "Only of this tool." },
    state: { type: "string", enum: CALL_STATES, description: "Only those." },
    status: { type: "string", enum: STATUSES, description: "Only those that ended so." },
    code: { type: "string", enum: FAIL_CODES, description: "Only those that failed with this code." },
    since_ms: { type: "integer", description: `From then on. ${TIME}` },
    until_ms: { type: "integer", description: `Before then. ${TIME}` },
    before: { type: "string", description: "The `next` of the answer before." },
    limit: LIMIT,
  }),
  run: list,
};
