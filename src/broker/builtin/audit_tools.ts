// `callgate.audit.checkpoint|verify|export`: the audit as operators see it. Nothing of the chain is changed.

import { type CallFault, fault, ok, type Result } from "../../base/faults.ts";
import { verifyStored } from "../../store/audit_walk.ts";
import type { AuditHead } from "../../store/port.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { AuditFilter } from "../audit_filter.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { CALL, callId, flag, objectSchema, text } from "./arguments.ts";
import { AuditPage } from "./audit_page.ts";
import { type BuiltinSource, changed, shown } from "./builtin.ts";

const LINES_DEFAULT = 200;
const LINES_MAX = 1000;

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
  const direction = readDirection(call);
  if (!direction.ok) return bad(direction.fault);
  const page = new AuditPage(core, filter.value, limit);
  const pause = () => nextTurn(core);
  const { backward, seq } = direction.value;
  if (backward) await page.fillBackward(seq ?? core.store.audit.head().seq + 1n, pause);
  else await page.fill(seq ?? 0n, pause);
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
    call: callId(args, "call")?.toString(),
  });
}

function readDirection({ args }: BuiltinCall): Result<{ backward: boolean; seq: bigint | undefined }> {
  const backward = flag(args, "backward") ?? false;
  const [own, other] = backward ? ["before_seq", "from_seq"] : ["from_seq", "before_seq"];
  if (args.has(other)) return fault(`\`${other}\` does not go with \`backward\` ${backward}`);
  const seq = callId(args, own);
  if (args.has(own) && seq === undefined) return fault(`\`${own}\` is no record's number`);
  if (args.has("call") && callId(args, "call") === undefined) return fault("`call` is no call id");
  return ok({ backward, seq });
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
    description:
      "Audit records in order (`backward`: the newest first), each as one line of JSON with its hash. `next_seq`: there may be more, from that number on (`backward`: before it).",
    effect: "read",
    schema: objectSchema({
      from_seq: { type: ["string", "integer"], description: "The first record's number." },
      backward: { type: "boolean", description: "The newest first." },
      before_seq: {
        type: ["string", "integer"],
        description: "With `backward`: only records before this number; left out: from the newest on.",
      },
      limit: { type: "integer", description: `Lines in one answer, at most ${LINES_MAX}.` },
      since_ms: TIME,
      until_ms: TIME,
      session: {
        type: "string",
        description:
          "Records about this session; with `role` also those about the whole role, such as its taint.",
      },
      call: {
        ...CALL,
        description: `Records about this call, and of taints that it raised. ${CALL.description}`,
      },
      role: { type: "string", description: "Records about this role's calls, sessions and grants." },
      tool: { type: "string", description: "Records about this tool." },
      decision: { type: "string", description: "Decisions only.", enum: ["allow", "ask", "deny"] },
    }),
    run: exportLines,
  },
];
