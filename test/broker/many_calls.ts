// A store with as many calls as a test wants, put there through the port as the broker itself would.

import { CLEAN } from "../../src/base/labels.ts";
import type { Store } from "../../src/store/port.ts";
import type { CallRecord, CallStatus, Change } from "../../src/store/records.ts";

export interface Put {
  readonly role?: string;
  readonly session?: string;
  readonly call: bigint;
  readonly tool?: string;
  readonly uid?: number;
  readonly status?: CallStatus;
  readonly durable?: boolean;
  /** Left out: it has no outcome. */
  readonly endedAtMs?: number | undefined;
  readonly askedAtMs: number;
}

const BATCH = 1000;

export async function putCalls(store: Store, calls: Iterable<Put>): Promise<void> {
  let changes: Change[] = [];
  for (const call of calls) {
    changes.push(...changesOf(call));
    if (changes.length >= BATCH) {
      await commit(store, changes);
      changes = [];
    }
  }
  await commit(store, changes);
}

function commit(store: Store, changes: readonly Change[]): Promise<void> {
  return new Promise((resolve, reject) => {
    store.commit(changes, (fault) => (fault === undefined ? resolve() : reject(new Error(fault.sentence))));
  });
}

function changesOf(put: Put): readonly Change[] {
  const record = recordOf(put);
  const { key, tool, askedAtMs: atMs } = record;
  const row = { row: "allow", grant: "agent-uses", denied: undefined, reason: undefined } as const;
  const decision = { key, tool, atMs, verdict: "allow", taint: CLEAN, condition: "none", ...row } as const;
  const intent: Change = { kind: "intent", record, decision, provider: "files" };
  if (put.endedAtMs === undefined) return [intent];
  const { status = "result", endedAtMs } = put;
  const code = status === "failed" ? ("timeout" as const) : undefined;
  const message = Buffer.from('{"kind":"tool_response","body":{"status":"result","content":"x"}}');
  return [intent, { kind: "outcome", record, message, status, code, atMs: endedAtMs }];
}

function recordOf(put: Put): CallRecord {
  const { role = "agent", session = "s", call, tool = "read", uid = 1001, durable = true, askedAtMs } = put;
  return {
    key: { role, session, call },
    tool,
    arguments: '{"path":"/a"}',
    uid,
    durable,
    equal: undefined,
    askedAtMs,
    state: "dispatched",
    status: undefined,
    code: undefined,
    messages: [],
    labels: CLEAN,
    endedAtMs: 0,
  };
}
