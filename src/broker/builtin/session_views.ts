// `callgate.sessions.list|show`: sessions and taints as people see them. Nothing is changed here.

import { fault } from "../../base/faults.ts";
import { CLEAN, join } from "../../base/labels.ts";
import { type Session, stateOf } from "../../session/role_sessions.ts";
import { itemName } from "../../session/taint.ts";
import type { CallKey } from "../../store/records.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { objectSchema, ROLE, SESSION, text } from "./arguments.ts";
import { type BuiltinSource, shown } from "./builtin.ts";
import { joinAll, LIMIT, rowsMax } from "./listing.ts";
import { maySeeSession, namedSession } from "./visibility.ts";

/** Tainted items of a store that are shown. */
const ITEMS_SHOWN = 100;

/** A role that the caller may not look at, or that does not exist, has no sessions to show. */
function list(core: Core, call: BuiltinCall): BuiltinOutcome {
  const role = text(call.args, "role");
  const found = [...core.sessions.all()]
    .filter((session) => role === undefined || session.role === role)
    .filter((session) => maySeeSession(call, session))
    .sort((a, b) => b.lastUsedMs - a.lastUsedMs)
    .slice(0, rowsMax(call.args));
  const waiting = waitingCalls(core);
  const sessions = found.map((session) => row(core, session, waiting.get(session) ?? 0));
  return shown({ sessions }, joinAll(found.map((session) => core.sessions.taint(session))));
}

function waitingCalls(core: Core): ReadonlyMap<Session, number> {
  const waiting = new Map<Session, number>();
  for (const live of core.live.all()) {
    if (live.stage === "asking") waiting.set(live.session, (waiting.get(live.session) ?? 0) + 1);
  }
  return waiting;
}

function row(core: Core, session: Session, waiting: number) {
  return {
    role: session.role,
    session: session.id,
    state: stateOf(session, core.clock.nowMs()),
    taint: core.sessions.taint(session),
    running: session.running - waiting,
    waiting,
    opened_by: session.openedBy ?? null,
    expires_at_ms: session.expiresAtMs ?? null,
    last_used_at_ms: session.lastUsedMs,
  };
}

function show(core: Core, call: BuiltinCall): BuiltinOutcome {
  if (text(call.args, "store") !== undefined) return showStore(core, call);
  const named = namedSession(core, call);
  if (!named.ok) return named;
  const session = named.value;
  const nowMs = core.clock.nowMs();
  const role = core.sessions.ofRole(session.role);
  const watermark = core.store.watermark(session.role, session.id);
  const content = {
    ...row(core, session, waitingCalls(core).get(session) ?? 0),
    version: core.sessions.version(session),
    raised_by: raisedBy(call, core.sessions.raisedBy(session)),
    /** Of which the session's taint is never below. */
    role_taint: { taint: role.now, version: role.version, raised_by: raisedBy(call, role.raisedBy) },
    taint_scope: core.runtime.policy.roles.get(session.role)?.taintScope ?? null,
    watermark: watermark ?? null,
    questions_paused_until_ms: core.approvals.refusals.pausedUntilMs(session, nowMs) ?? null,
    request: session.request ?? null,
  };
  const labels = join(core.sessions.taint(session), session.requestLabels ?? CLEAN);
  return shown(content, labels);
}

/** Of another role, the call that raised a taint is an operator's to see. */
function raisedBy(call: BuiltinCall, by: CallKey | undefined) {
  if (by === undefined || !(call.role.operator || by.role === call.role.name)) return null;
  return { role: by.role, session: by.session, call: by.call };
}

/** What was put into a store, or into one item of it. Names of items are their writers', so they carry the taint. */
function showStore(core: Core, call: BuiltinCall): BuiltinOutcome {
  const store = text(call.args, "store") ?? "";
  const named = text(call.args, "item");
  const item = named === undefined ? undefined : itemName(named);
  const taints = call.role.operator ? core.sessions.ofStore(store) : undefined;
  if (taints === undefined || (named !== undefined && item === undefined)) {
    const sentence = `Nothing tainted was put into a store (or item) of that name that the caller may look at. ${NOTHING_RAN}`;
    return fault(callFault("bad_arguments", sentence));
  }
  const taint = item === undefined ? taints.whole : (taints.items.get(item) ?? taints.whole);
  const content = {
    store,
    item: item ?? null,
    taint: taints.of(item),
    version: taints.version(item),
    raised_by: raisedBy(call, taint.raisedBy),
    whole_taint: taints.whole.now,
    items: item === undefined ? itemRows(taints.items) : null,
    items_total: taints.items.size,
  };
  return shown(content, taints.of(undefined));
}

function itemRows(items: ReadonlyMap<string, { readonly now: object; readonly version: number }>) {
  return [...items].slice(-ITEMS_SHOWN).map(([item, { now, version }]) => ({ item, taint: now, version }));
}

export const SESSION_VIEWS: readonly BuiltinSource[] = [
  {
    name: "callgate.sessions.list",
    description: "Sessions that the caller may look at: their state, taint and load; the latest used first.",
    effect: "read",
    schema: objectSchema({
      role: { type: "string", description: "Only of this role; left out: of all that it may see." },
      limit: LIMIT,
    }),
    run: list,
  },
  {
    name: "callgate.sessions.show",
    description:
      "A session's state, its taint with its version, and the call that raised it; for operators also what was put into a store.",
    effect: "read",
    schema: objectSchema({
      role: ROLE,
      session: SESSION,
      store: { type: "string", description: "A store's name, in place of role and session." },
      item: { type: "string", description: "An item of that store." },
    }),
    run: show,
  },
];
