import { describe, expect, it } from "vitest";
import { CLEAN } from "../../src/base/labels.ts";
import { changesOfRestore } from "../../src/host/restore_changes.ts";
import type { Stored } from "../../src/store/port.ts";
import type { ApprovalRecord } from "../../src/store/records.ts";

const NOTHING: Stored = {
  sessions: [],
  taints: [],
  frozen: [],
  pins: [],
  approvals: [],
  grants: [],
  uses: [],
};

function refused(id: string, refusedUntilMs: number): ApprovalRecord {
  return {
    id,
    key: { role: "agent", session: "s", call: 1n },
    tool: "pay",
    arguments: "{}",
    equal: id,
    uid: 1,
    pid: 2,
    definition: undefined,
    grants: ["g"],
    row: "ask",
    policy: "p",
    taint: CLEAN,
    raisedBy: undefined,
    doubt: undefined,
    askedAtMs: 1,
    expiresAtMs: 1000,
    state: "refused",
    decidedBy: { role: "operator", uid: 3 },
    decidedAtMs: 2,
    refusedUntilMs,
  };
}

describe("a backup that is put back", () => {
  it("gives no use of a grant back that was used up since", () => {
    const backup = { ...NOTHING, uses: [{ grant: "a", sinceMs: 10, used: 1 }] };
    const replaced = {
      ...NOTHING,
      uses: [
        { grant: "a", sinceMs: 10, used: 3 },
        { grant: "b", sinceMs: 20, used: 1 },
      ],
    };
    expect(changesOfRestore(backup, replaced, 100)).toEqual([
      { kind: "grant_used", grant: "a", uses: { grant: "a", sinceMs: 10, used: 3 } },
      { kind: "grant_used", grant: "b", uses: { grant: "b", sinceMs: 20, used: 1 } },
    ]);
    expect(changesOfRestore(replaced, backup, 100)).toEqual([]);
  });

  it("forgets no refusal that still holds", () => {
    const [held, over] = [refused("held", 101), refused("over", 100)];
    const replaced = { ...NOTHING, approvals: [held, over] };
    expect(changesOfRestore(NOTHING, replaced, 100)).toEqual([{ kind: "approval", approval: held }]);
    expect(changesOfRestore(replaced, replaced, 100)).toEqual([]);
  });
});
