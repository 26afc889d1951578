// The table of runtime grants by itself: what opens waits to be written, what closes does not, and uses are
// counted exactly.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLEAN } from "../../src/base/labels.ts";
import {
  type GoneReason,
  GRANTS_MAX,
  GRANTS_OF_ROLE_MAX,
  type Pending,
  RuntimeGrants,
  type Used,
} from "../../src/broker/runtime_grants.ts";
import { decide } from "../../src/policy/decision.ts";
import type { Grant } from "../../src/policy/policy.ts";
import type { Actor, Change, GrantUses } from "../../src/store/records.ts";
import { grant, index, NOW, remembered, subject } from "../policy/grants.ts";

const BY: Actor = { role: "operator", uid: 7 };
const ORIGIN = { by: BY, labels: CLEAN, addedAtMs: NOW, approval: undefined };

interface Table {
  readonly grants: RuntimeGrants;
  readonly log: string[];
  changes: number;
}

function table(held: readonly Grant[] = [], uses: readonly GrantUses[] = []): Table {
  const grants = new RuntimeGrants();
  const made: Table = { grants, log: [], changes: 0 };
  grants.restore(
    {
      log: (_, event, { grant: id, why }) => void made.log.push([event, id, why ?? ""].join(" ").trim()),
      changed: () => {
        made.changes += 1;
      },
      isConfigured: (id) => id === "configured",
    },
    held.map((one) => ({ grant: one, origin: ORIGIN })),
    uses,
  );
  made.changes = 0;
  return made;
}

function ids({ grants }: Table): readonly string[] {
  return grants.all().map(({ id }) => id);
}

function gone({ changes }: Pending): readonly (readonly [string, GoneReason])[] {
  return changes.flatMap((change) =>
    change.kind === "grant_gone" ? [[change.id, change.why] as const] : [],
  );
}

function allowed(config: readonly Grant[], call = subject()) {
  const decision = decide(index(config), { ...call, isSpent: () => false });
  if (decision.kind === "deny") throw new Error("the test's call is denied");
  return decision;
}

function written(changes: readonly Change[]): ReadonlyMap<string, number | undefined> {
  return new Map(
    changes.flatMap((one) => (one.kind === "grant_used" ? [[one.grant, one.uses?.used] as const] : [])),
  );
}

describe("a grant that comes", () => {
  it("is in force once it is written, and not at all where that fails", () => {
    const made = table();
    const pending = made.grants.add(grant("runtime.a", "allow"), ORIGIN);
    expect(pending.changes).toMatchObject([{ kind: "grant_added", grant: { id: "runtime.a", by: BY } }]);
    expect(ids(made)).toEqual([]);
    pending.settled(true);
    pending.settled(false); // an end that is told twice changes nothing
    expect(ids(made)).toEqual(["runtime.a"]);
    expect(made).toMatchObject({ changes: 1, log: ["grant.added runtime.a"] });
    made.grants.add(grant("runtime.b", "deny"), ORIGIN).settled(false);
    expect(ids(made)).toEqual(["runtime.a"]);
    expect(made.grants.refusal({ id: "runtime.b", role: "agent" }, NOW)).toBeUndefined();
  });

  it("never takes an id that another has, that is being written, or that the config has", () => {
    const made = table([grant("runtime.a", "allow")]);
    made.grants.add(grant("runtime.b", "allow"), ORIGIN);
    for (const id of ["runtime.a", "runtime.b", "configured"]) {
      expect(made.grants.refusal({ id, role: "agent" }, NOW)).toContain("already");
      expect(() => made.grants.add(grant(id, "allow"), ORIGIN)).toThrow("refused");
    }
  });

  it("is refused beyond what a role may have, and beyond what all may have; ended allows make room", () => {
    const many = (of: (i: number) => Partial<Grant>, count: number) =>
      Array.from({ length: count }, (_, i) => grant(`runtime.${i}`, "allow", of(i)));
    const full = table(many(() => ({}), GRANTS_OF_ROLE_MAX));
    const one = grant("runtime.new", "allow");
    expect(full.grants.refusal(one, NOW)).toContain(`\`agent\` has ${GRANTS_OF_ROLE_MAX}`);
    expect(full.grants.refusal({ ...one, role: "other" }, NOW)).toBeUndefined();
    const all = table(many((i) => ({ role: `r${i % 16}` }), GRANTS_MAX));
    expect(all.grants.refusal(one, NOW)).toContain(`There are ${GRANTS_MAX}`);
    const ended = table(many((i) => ({ expiresAtMs: i === 5 ? NOW : undefined }), GRANTS_OF_ROLE_MAX));
    const pending = ended.grants.add(one, ORIGIN);
    expect(gone(pending)).toEqual([["runtime.5", "expired"]]);
    pending.settled(true);
    expect(ended.log).toEqual(["grant.gone runtime.5 expired", "grant.added runtime.new"]);
    expect(ended.grants.find("runtime.5")).toBeUndefined();
  });
});

describe("a grant that goes", () => {
  it("is out of force at once where it allows, written or not, and can be revoked again", () => {
    const made = table([grant("runtime.a", "allow")]);
    const pending = made.grants.remove("runtime.a", BY);
    expect(gone(pending)).toEqual([["runtime.a", "revoked"]]);
    expect(ids(made)).toEqual([]);
    expect(made.changes).toBe(1);
    pending.settled(false);
    expect(ids(made)).toEqual([]);
    expect(made.grants.find("runtime.a")?.state).toBe("revoked");
    made.grants.remove("runtime.a", BY).settled(true);
    expect(made.grants.find("runtime.a")).toBeUndefined();
    expect(made.log).toEqual(["grant.gone runtime.a revoked"]);
  });

  it.each(["deny", "ask"] as const)("holds until that is written where it is a %s", (effect) => {
    const made = table([grant("runtime.a", effect)]);
    const failing = made.grants.remove("runtime.a", BY);
    expect(ids(made)).toEqual(["runtime.a"]);
    failing.settled(false);
    expect(ids(made)).toEqual(["runtime.a"]);
    const pending = made.grants.remove("runtime.a", BY);
    expect(() => made.grants.remove("runtime.a", BY)).toThrow("not there");
    pending.settled(true);
    expect(ids(made)).toEqual([]);
    expect(made.changes).toBe(1);
  });

  it("takes its count along, so that another one under its id begins anew", () => {
    const once = grant("runtime.a", "allow", { maxCalls: { calls: 1, perMs: undefined } });
    const made = table([once]);
    made.grants.use(allowed([once]), NOW).settled(true);
    const pending = made.grants.remove("runtime.a", BY);
    expect(written(pending.changes)).toEqual(new Map([["runtime.a", undefined]]));
    expect(made.grants.isSpent(once, NOW)).toBe(true); // while that is not written
    pending.settled(true);
    made.grants.add(once, ORIGIN).settled(true);
    expect(made.grants.isSpent(once, NOW)).toBe(false);
  });

  it("goes by itself only where it allows: an ask that has ended goes on denying", () => {
    const once = { calls: 1, perMs: undefined };
    const spent = (id: string) => ({ grant: id, sinceMs: NOW, used: 1 });
    const made = table(
      [
        grant("runtime.late", "allow", { expiresAtMs: NOW }),
        grant("runtime.early", "allow", { expiresAtMs: NOW + 1 }),
        grant("runtime.used", "allow", { maxCalls: once }),
        grant("runtime.hourly", "allow", { maxCalls: { calls: 1, perMs: 10 } }),
        grant("runtime.ask-late", "ask", { expiresAtMs: NOW }),
        grant("runtime.ask-used", "ask", { maxCalls: once }),
        grant("runtime.deny", "deny"),
        remembered("remembered.late", "a", { expiresAtMs: NOW }),
      ],
      ["runtime.used", "runtime.hourly", "runtime.ask-used"].map(spent),
    );
    const pending = made.grants.removeEnded(NOW);
    expect(gone(pending)).toEqual([
      ["runtime.late", "expired"],
      ["runtime.used", "used_up"],
      ["remembered.late", "expired"],
    ]);
    expect(gone(made.grants.removeEnded(NOW))).toEqual([]); // it is written once
    pending.settled(false);
    expect(made.grants.isSpent(made.grants.find("runtime.used")!.grant, NOW)).toBe(true);
    made.grants.removeEnded(NOW).settled(true);
    expect(ids(made)).toEqual([
      "runtime.early",
      "runtime.hourly",
      "runtime.ask-late",
      "runtime.ask-used",
      "runtime.deny",
    ]);
  });
});

describe("uses", () => {
  const hourly = grant("w", "allow", { maxCalls: { calls: 2, perMs: 3_600_000 } });
  const use = ({ grants }: Table, atMs: number): Used => grants.use(allowed([hourly]), atMs);

  it("count from the first one on, and anew when its period is over to the millisecond", () => {
    const made = table();
    expect(made.grants.isSpent(hourly, NOW)).toBe(false);
    expect(written(use(made, NOW).changes)).toEqual(new Map([["w", 1]]));
    expect(made.grants.isSpent(hourly, NOW + 5)).toBe(false);
    use(made, NOW + 3_599_999);
    expect(made.grants.isSpent(hourly, NOW + 3_599_999)).toBe(true);
    expect(made.grants.isSpent(hourly, NOW + 3_600_000)).toBe(false);
    expect(made.grants.uses(hourly, NOW + 3_600_000)).toBeUndefined();
    use(made, NOW + 3_600_001);
    expect(made.grants.uses(hourly, NOW + 3_600_001)).toEqual({
      grant: "w",
      sinceMs: NOW + 3_600_001,
      used: 1,
    });
  });

  it("of a grant without a period count for ever, and a time before the first one opens nothing", () => {
    const ever = { ...hourly, maxCalls: { calls: 1, perMs: undefined } };
    const made = table();
    made.grants.use(allowed([ever]), NOW);
    for (const atMs of [NOW, NOW - 1, 0, NOW * 2, Number.NaN])
      expect(made.grants.isSpent(ever, atMs)).toBe(true);
    use(made, NOW);
    use(made, NOW);
    for (const atMs of [NOW - 10 ** 9, 0, Number.NaN]) expect(made.grants.isSpent(hourly, atMs)).toBe(true);
  });

  it("no number of calls, or no length of a period, lets anything more through", () => {
    const odd = (calls: number, perMs: number) => ({ ...hourly, maxCalls: { calls, perMs } });
    const made = table([], [{ grant: "w", sinceMs: NOW, used: 2 }]);
    for (const calls of [Number.NaN, 0, -1, 2]) expect(made.grants.isSpent(odd(calls, 9), NOW)).toBe(true);
    expect(made.grants.isSpent(odd(2, Number.NaN), NOW + 10 ** 12)).toBe(true);
  });

  it("count for every grant that lets a call through, once each", () => {
    const limited = { maxCalls: { calls: 9, perMs: undefined } };
    const grants = [grant("w", "allow", limited), grant("a", "ask", limited), grant("free", "ask")];
    const standing = [remembered("r", "a", limited), remembered("rf", "free")];
    const made = table();
    const beside = made.grants.use(allowed([...grants, ...standing]), NOW);
    expect(written(beside.changes)).toEqual(
      new Map([
        ["w", 1],
        ["r", 1],
        ["a", 1],
      ]),
    );
    const alone = made.grants.use(allowed([...grants.slice(1), ...standing]), NOW);
    expect(written(alone.changes)).toEqual(
      new Map([
        ["r", 2],
        ["a", 2],
      ]),
    );
    const asked = made.grants.use(allowed(grants), NOW);
    expect(written(asked.changes)).toEqual(new Map([["a", 3]]));
  });

  it("are given back by themselves where they were not written, once, and by hand where nothing ran", () => {
    const made = table();
    const first = use(made, NOW);
    first.settled(false);
    first.settled(false);
    expect(first.giveBack()).toEqual([]);
    expect(made.grants.uses(hourly, NOW)).toBeUndefined();
    const [second, third] = [use(made, NOW + 1), use(made, NOW + 2)];
    second.settled(true);
    third.settled(true);
    third.settled(false);
    expect(made.grants.isSpent(hourly, NOW + 2)).toBe(true);
    expect(written(third.giveBack())).toEqual(new Map([["w", 1]]));
    expect(third.giveBack()).toEqual([]);
    expect(written(second.giveBack())).toEqual(new Map([["w", undefined]]));
  });

  it("of a period that is over give nothing back to the next one", () => {
    const made = table();
    const old = use(made, NOW);
    use(made, NOW + 3_600_000);
    use(made, NOW + 3_600_001);
    expect(old.giveBack()).toEqual([]);
    expect(made.grants.isSpent(hourly, NOW + 3_600_001)).toBe(true);
  });

  it("of its own make nothing used up for a call, others' do", () => {
    const made = table();
    const first = use(made, NOW);
    const second = use(made, NOW);
    expect([first, second].map((one) => one.isSpent(hourly, NOW))).toEqual([false, false]);
    const beyond = use(made, NOW);
    expect(beyond.isSpent(hourly, NOW)).toBe(true);
    beyond.giveBack();
    expect(beyond.isSpent(hourly, NOW)).toBe(true);
    const late = use(made, NOW + 3_600_000);
    use(made, NOW + 3_600_000);
    expect(first.isSpent(hourly, NOW + 3_600_000)).toBe(true);
    expect(late.isSpent(hourly, NOW + 3_600_000)).toBe(false);
  });

  it("change the version that decisions rest on, also when they are given back", () => {
    const made = table();
    const versions = new Set([made.grants.usesVersion]);
    const used = use(made, NOW);
    versions.add(made.grants.usesVersion);
    used.giveBack();
    versions.add(made.grants.usesVersion);
    expect(versions.size).toBe(3);
  });

  it("on disk are never fewer than what ran, whatever is written, refused or given back in any order", () => {
    const step = fc.record({ act: fc.constantFrom("use", "write", "refuse", "back"), which: fc.nat() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const made = table();
        const queued: { changes: readonly Change[]; used: Used | undefined }[] = [];
        const written: Used[] = [];
        const disk = new Map<string, GrantUses | undefined>();
        let ran = 0;
        const flush = (refuse: boolean) => {
          const next = queued.shift();
          if (next === undefined) return;
          if (!refuse)
            for (const one of next.changes) if (one.kind === "grant_used") disk.set(one.grant, one.uses);
          next.used?.settled(!refuse);
          if (next.used === undefined || refuse) return;
          written.push(next.used);
          ran += 1;
        };
        for (const { act, which } of steps) {
          if (act === "use" && !made.grants.isSpent(hourly, NOW)) {
            const used = use(made, NOW);
            queued.push({ changes: used.changes, used });
          } else if (act === "back" && written.length > 0) {
            const [used] = written.splice(which % written.length, 1);
            queued.push({ changes: used!.giveBack(), used: undefined });
            ran -= 1;
          } else flush(act === "refuse");
          expect(disk.get("w")?.used ?? 0).toBeGreaterThanOrEqual(ran);
          expect(ran).toBeLessThanOrEqual(2);
          const held = written.length + queued.filter(({ used }) => used !== undefined).length;
          expect(made.grants.uses(hourly, NOW)?.used ?? 0).toBe(held);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it("come back from the store, also those of a grant that nobody has just now", () => {
    const made = table([], [{ grant: "w", sinceMs: NOW - 5, used: 2 }]);
    expect(made.grants.isSpent(hourly, NOW)).toBe(true);
    expect(made.grants.isSpent(hourly, NOW - 5 + 3_600_000)).toBe(false);
  });
});
