// `callgate.audit.checkpoint|verify|export`: the audit as operators see it. Nothing of the chain is changed.
// Labels: records name sessions and tools as their callers chose them, and opted-in arguments; so an export
// carries the taint that its records tell of, and the present one of every role that they name. A
// checkpoint and a finding hold numbers and hashes only, and are clean.

import { type CallFault, fault, ok, type Result } from "../../base/faults.ts";
import { CLEAN, DATA_CLASSES, join, type Labels } from "../../base/labels.ts";
import { exportLine } from "../../store/audit_chain.ts";
import { SLICE_RECORDS, verifyStored } from "../../store/audit_walk.ts";
import type { AuditHead, AuditLine } from "../../store/port.ts";
import { HOST } from "../../store/records.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import { type AuditFilter, matchesFilter, readNames } from "../audit_filter.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { callId, objectSchema, SESSION, text } from "./arguments.ts";
import { type BuiltinSource, changed, shown } from "./builtin.ts";
import { grantWordsLabels, writerLabels } from "./grant_words.ts";

const LINES_DEFAULT = 200;
const LINES_MAX = 1000;
/** Of one answer's lines, which have to fit into a frame with room for escapes. */
const ANSWER_BYTES_MAX = 393_216;
/** Records looked at for one answer, whether they fit or not. */
const SCANNED_MAX = 65_536;

const NOT_OPERATOR = fault(
  callFault("bad_arguments", `The audit is for roles that are operators. ${NOTHING_RAN}`),
);

function checkpoint(core: Core, call: BuiltinCall): BuiltinOutcome {
  if (!call.role.operator) return NOT_OPERATOR;
  const head = core.audit.checkpoint();
  return changed({ seq: head.seq, hash: head.hash, at_ms: core.clock.nowMs() }, {});
}

async function verify(core: Core, call: BuiltinCall): Promise<BuiltinOutcome> {
  if (!call.role.operator) return NOT_OPERATOR;
  const given = text(call.args, "checkpoint");
  const head = given === undefined ? undefined : readCheckpoint(given);
  if (given !== undefined && head === undefined)
    return bad("`checkpoint` must be SEQ:HASH, a record's number and 64 hex digits");
  const pause = () => nextTurn(core);
  const { records, firstSeq, lastSeq, finding } = await verifyStored(core.store.audit, {
    checkpoint: head,
    alone: false,
    pause,
  });
  return shown({
    ok: finding === undefined,
    records,
    first_seq: firstSeq,
    last_seq: lastSeq,
    finding: finding ?? null,
  });
}

/** Whether the loop has run once more: input that was there was handled. */
function nextTurn(core: Core): Promise<void> {
  return new Promise((resolve) => core.clock.afterInput(resolve));
}

export function readCheckpoint(given: string): AuditHead | undefined {
  const [, seq, hash] = /^(0|[1-9][0-9]{0,19}):([0-9a-f]{64})$/.exec(given) ?? [];
  return seq === undefined || hash === undefined ? undefined : { seq: BigInt(seq), hash };
}

async function exportLines(core: Core, call: BuiltinCall): Promise<BuiltinOutcome> {
  if (!call.role.operator) return NOT_OPERATOR;
  const limit = Number((call.args.get("limit") as bigint | undefined) ?? LINES_DEFAULT);
  if (limit < 1 || limit > LINES_MAX) return bad(`\`limit\` must be 1 to ${LINES_MAX}`);
  const filter = readFilter(call);
  if (!filter.ok) return bad(filter.fault);
  const page = new Page(core, filter.value, limit);
  await page.fill(callId(call.args, "from_seq") ?? 0n, () => nextTurn(core));
  return shown({ lines: page.lines, next_seq: page.nextSeq ?? null }, page.labels);
}

function readFilter({ args }: BuiltinCall): Result<AuditFilter> {
  const sinceMs = args.get("since_ms") as bigint | undefined;
  const untilMs = args.get("until_ms") as bigint | undefined;
  if ((sinceMs ?? 0n) < 0n || (untilMs ?? 0n) < 0n) return fault("a time is before 1970");
  return ok({
    sinceMs: Number(sinceMs ?? 0n),
    untilMs: untilMs === undefined ? Number.POSITIVE_INFINITY : Number(untilMs),
    session: text(args, "session"),
    role: text(args, "role"),
    tool: text(args, "tool"),
    decision: text(args, "decision"),
  });
}

/** One answer's lines, and where the next one goes on. */
class Page {
  readonly lines: string[] = [];
  labels: Labels = CLEAN;
  nextSeq: bigint | undefined;
  readonly #core: Core;
  readonly #filter: AuditFilter;
  readonly #linesMax: number;
  #bytes = 0;

  constructor(core: Core, filter: AuditFilter, linesMax: number) {
    this.#core = core;
    this.#filter = filter;
    this.#linesMax = linesMax;
  }

  async fill(from: bigint, pause: () => Promise<void>): Promise<void> {
    let seq = this.#skipOld(from);
    for (let scanned = 0; scanned < SCANNED_MAX; await pause()) {
      const lines = this.#core.store.audit.lines(seq, SLICE_RECORDS);
      const full = lines.find((line) => !this.#take(line));
      const last = lines.at(-1);
      if (full !== undefined || last === undefined) {
        this.nextSeq = full?.seq;
        return;
      }
      scanned += lines.length;
      seq = last.seq + 1n;
    }
    this.nextSeq = seq;
  }

  /** Segments that ended before the time asked for are not read. */
  #skipOld(from: bigint): bigint {
    let seq = from;
    for (const { lastSeq, lastAtMs } of this.#core.store.audit.seals()) {
      if (lastAtMs < this.#filter.sinceMs && lastSeq >= seq) seq = lastSeq + 1n;
    }
    return seq;
  }

  /** false: there is no room for it any more. */
  #take(line: AuditLine): boolean {
    const names = readNames(line.text);
    if (!matchesFilter(names, this.#filter)) return true;
    const bytes = 2 * line.text.length; // quotes are escaped once more
    if (this.lines.length >= this.#linesMax || (this.#bytes > 0 && this.#bytes + bytes > ANSWER_BYTES_MAX))
      return false;
    this.#bytes += bytes;
    this.lines.push(exportLine(line));
    this.labels = join(this.labels, this.#labelsOf(names));
    return true;
  }

  #labelsOf({ role, taint, writer, grants }: ReturnType<typeof readNames>): Labels {
    const told = DATA_CLASSES.find((name) => name === taint?.class);
    const then: Labels = told === undefined ? CLEAN : { class: told, untrusted: taint?.untrusted !== false };
    const words = join(grantWordsLabels(this.#core, grants), this.#labelsOfWriter(writer));
    const quoted = join(then, words);
    return role === undefined ? quoted : join(quoted, this.#core.sessions.roleTaint(role));
  }

  #labelsOfWriter(writer: string | undefined): Labels {
    return writer === undefined || writer === HOST.role ? CLEAN : writerLabels(this.#core, writer);
  }
}

function bad(sentence: string): Result<never, CallFault> {
  return fault(callFault("bad_arguments", `${sentence}. ${NOTHING_RAN}`));
}

const TIME = { type: "integer", description: "Milliseconds since the epoch." };

export const AUDIT_TOOLS: readonly BuiltinSource[] = [
  {
    name: "callgate.audit.checkpoint",
    description: "Where the chain of audit records stands now; the log hears it too.",
    effect: "write",
    schema: objectSchema({}),
    run: checkpoint,
  },
  {
    name: "callgate.audit.verify",
    description: "Whether the audit is whole: no record altered, missing, doubled or out of order.",
    effect: "read",
    schema: objectSchema({
      checkpoint: { type: "string", description: "SEQ:HASH that was noted before: a cut end is found too." },
    }),
    run: verify,
  },
  {
    name: "callgate.audit.export",
    description: "Audit records in order, each as one line of JSON with its hash; `next_seq`: there is more.",
    effect: "read",
    schema: objectSchema({
      from_seq: { type: ["string", "integer"], description: "The first record's number." },
      limit: { type: "integer", description: `Lines in one answer, at most ${LINES_MAX}.` },
      since_ms: TIME,
      until_ms: TIME,
      session: SESSION,
      role: { type: "string", description: "Records about this role's calls, sessions and grants." },
      tool: { type: "string", description: "Records about this tool." },
      decision: { type: "string", description: "Decisions only.", enum: ["allow", "ask", "deny"] },
    }),
    run: exportLines,
  },
];
