import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLEAN, covers, DATA_CLASSES, join, type Labels } from "../../src/base/labels.ts";
import { ROLE_LIMITS_DEFAULT } from "../../src/base/limits.ts";
import type { RolePolicy } from "../../src/policy/policy.ts";
import { type Endorsement, type EndorseTarget, LOWERED_MAX } from "../../src/session/endorsement.ts";
import { SessionTable } from "../../src/session/sessions.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import type { Change } from "../../src/store/records.ts";

const BY = { role: "agent", session: "s", call: 1n };
const OPERATOR = { role: "operator", uid: 7 };
const SECRET: Labels = { class: "restricted", untrusted: true };
const INTERNAL: Labels = { class: "internal", untrusted: false };

function role(taintScope: "role" | "session"): RolePolicy {
  return {
    name: "agent",
    admits: "anyone",
    socket: { mode: 0o600, gid: undefined },
    sessions: "opened",
    taintScope,
    isolated: false,
    operator: false,
    broker: false,
    classMax: "restricted",
    provides: [],
    limits: ROLE_LIMITS_DEFAULT,
  };
}

function table(): SessionTable {
  const sessions = new SessionTable();
  sessions.restore({ sessions: [], taints: [], frozen: [] }, 1000);
  return sessions;
}

const OF_ROLE: EndorseTarget = { of: "role", role: "agent", leftovers: true };

function lower(sessions: SessionTable, target: EndorseTarget, version: number, labels: Labels = CLEAN) {
  return sessions.endorse({ target, version, labels, by: OPERATOR, reason: "read it" });
}

function begun(endorsement: Endorsement | string): Endorsement {
  if (typeof endorsement === "string") throw new Error(`refused: ${endorsement}`);
  return endorsement;
}

describe("an endorsement", () => {
  it("lowers nothing before it is written, then to its labels, under a version of its own", () => {
    const sessions = table();
    sessions.raiseRole("agent", SECRET, BY);
    const { version } = sessions.ofRole("agent");
    const endorsement = begun(lower(sessions, OF_ROLE, version, INTERNAL));
    expect(endorsement.changes).toEqual([
      {
        kind: "endorsed",
        scope: { of: "role", role: "agent" },
        before: SECRET,
        labels: INTERNAL,
        by: OPERATOR,
        reason: "read it",
      },
    ]);
    expect(sessions.roleTaint("agent")).toEqual(SECRET);
    endorsement.settled(true);
    expect(sessions.roleTaint("agent")).toEqual(INTERNAL);
    expect(sessions.ofRole("agent").version).toBe(endorsement.version);
    expect(sessions.ofRole("agent").raisedBy).toBeUndefined();
  });

  it("that can't be written leaves the taint and its version as they were", () => {
    const sessions = table();
    sessions.raiseRole("agent", SECRET, BY);
    const { version } = sessions.ofRole("agent");
    begun(lower(sessions, OF_ROLE, version)).settled(false);
    expect([sessions.roleTaint("agent"), sessions.ofRole("agent").version]).toEqual([SECRET, version]);
    expect(sessions.ofRole("agent").raisedBy).toEqual(BY);
  });

  it("that a rise overtakes while it is being written lowers nothing, and what rose is written again", () => {
    const sessions = table();
    sessions.wrote([{ kind: "taint", scope: { of: "role", role: "agent" }, labels: SECRET, by: BY }]);
    const { version } = sessions.ofRole("agent");
    const endorsement = begun(lower(sessions, OF_ROLE, version));
    const later = { ...BY, call: 2n };
    const rise = sessions.raiseRole("agent", { class: "restricted", untrusted: false }, later);
    expect(rise).toMatchObject({ kind: "taint", labels: SECRET, by: later });
    endorsement.settled(true);
    expect(sessions.roleTaint("agent")).toEqual(SECRET);
    expect(lower(sessions, OF_ROLE, endorsement.version)).toBe("changed");
    expect(sessions.raiseRole("agent", SECRET, later)).toBeDefined(); // until it is written
    sessions.wrote(rise === undefined ? [] : [rise]);
    expect(sessions.raiseRole("agent", SECRET, later)).toBeUndefined();
  });

  it("is not overtaken by what it allows", () => {
    const sessions = table();
    sessions.wrote([{ kind: "taint", scope: { of: "role", role: "agent" }, labels: SECRET, by: BY }]);
    const endorsement = begun(lower(sessions, OF_ROLE, sessions.ofRole("agent").version, INTERNAL));
    expect(sessions.raiseRole("agent", INTERNAL, BY)).toBeUndefined();
    endorsement.settled(true);
    expect(sessions.roleTaint("agent")).toEqual(INTERNAL);
  });

  it("that fails leaves nothing unwritten that was given while it was being written", () => {
    const sessions = table();
    sessions.raiseRole("agent", SECRET, BY); // its own write has failed
    const endorsement = begun(lower(sessions, OF_ROLE, sessions.ofRole("agent").version, INTERNAL));
    expect(sessions.raiseRole("agent", INTERNAL, BY)).toBeDefined();
    endorsement.settled(false);
    expect(sessions.roleTaint("agent")).toEqual(SECRET);
  });

  it("of a whole store is overtaken by what is put into an item meanwhile", () => {
    const sessions = table();
    sessions.wrote([
      { kind: "taint", scope: { of: "store", store: "notes", key: undefined }, labels: SECRET, by: BY },
    ]);
    const target = { of: "store", store: "notes", item: undefined } as const;
    const endorsement = begun(lower(sessions, target, sessions.ofStore("notes")?.version(undefined) ?? 0));
    expect(sessions.raiseStore("notes", "a", SECRET, BY)).toBeDefined();
    endorsement.settled(true);
    expect(sessions.storeTaint("notes", "a")).toEqual(SECRET);
    expect(sessions.storeTaint("notes", "b")).toEqual(CLEAN);
  });

  it("is refused for what the operator did not see", () => {
    const sessions = table();
    sessions.raiseRole("agent", INTERNAL, BY);
    const { version } = sessions.ofRole("agent");
    sessions.raiseRole("agent", SECRET, BY);
    expect(lower(sessions, OF_ROLE, version)).toBe("changed");
  });

  it("of the same labels come back under another version: what was seen once is not what is there now", () => {
    const sessions = table();
    sessions.raiseRole("agent", SECRET, BY);
    const { version } = sessions.ofRole("agent");
    begun(lower(sessions, OF_ROLE, version)).settled(true);
    sessions.raiseRole("agent", SECRET, { ...BY, call: 2n });
    expect(lower(sessions, OF_ROLE, version)).toBe("changed");
  });

  it("only lowers, and one at a time", () => {
    const sessions = table();
    sessions.raiseRole("agent", INTERNAL, BY);
    const { version } = sessions.ofRole("agent");
    expect(lower(sessions, OF_ROLE, version, { class: "public", untrusted: true })).toBe("not_covered");
    expect(lower(sessions, OF_ROLE, version, INTERNAL)).toBe("not_lower");
    begun(lower(sessions, OF_ROLE, version));
    expect(lower(sessions, OF_ROLE, version)).toBe("busy");
  });

  it("of a session is never below its role's taint, and does not touch another session", () => {
    const sessions = table();
    const [a, b] = [sessions.ofKept("agent", "a", 0), sessions.ofKept("agent", "b", 0)];
    for (const session of [a, b]) sessions.raise(role("session"), session, SECRET, BY);
    sessions.raiseRole("agent", INTERNAL, BY);
    const target = { of: "session", role: "agent", session: "a" } as const;
    expect(lower(sessions, target, sessions.version(a))).toBe("above");
    begun(lower(sessions, target, sessions.version(a), INTERNAL)).settled(true);
    expect([sessions.taint(a), sessions.taint(b)]).toEqual([INTERNAL, SECRET]);
  });

  it("of the role does not lower what a session of its own was given", () => {
    const sessions = table();
    const session = sessions.ofKept("agent", "a", 0);
    sessions.raiseRole("agent", SECRET, BY);
    sessions.wrote([{ kind: "taint", scope: { of: "role", role: "agent" }, labels: SECRET, by: BY }]);
    sessions.raise(role("session"), session, SECRET, BY);
    const target = { of: "role", role: "agent", leftovers: false } as const;
    begun(lower(sessions, target, sessions.ofRole("agent").version)).settled(true);
    expect([sessions.roleTaint("agent"), sessions.taint(session)]).toEqual([CLEAN, SECRET]);
  });

  it("in role scope takes along what sessions were given before, so that no reload brings it back", () => {
    const sessions = table();
    const session = sessions.ofKept("agent", "a", 0);
    sessions.raise(role("session"), session, SECRET, BY);
    sessions.widenToRole("agent");
    expect(sessions.version(session)).toBe(sessions.ofRole("agent").version);
    const endorsement = begun(lower(sessions, OF_ROLE, sessions.version(session)));
    expect(endorsement.changes).toHaveLength(2);
    endorsement.settled(true);
    sessions.widenToRole("agent");
    expect(sessions.taint(session)).toEqual(CLEAN);
  });

  it("of more single taints than fit in one transaction says how many are left", () => {
    const sessions = table();
    for (let i = 0; i < LOWERED_MAX + 10; i += 1) sessions.raiseStore("notes", `n${i}`, SECRET, BY);
    const target = { of: "store", store: "notes", item: undefined } as const;
    const version = () => sessions.ofStore("notes")?.version(undefined) ?? 0;
    const first = begun(lower(sessions, target, version()));
    expect([first.changes.length, first.remaining, first.taint]).toEqual([LOWERED_MAX, 10, SECRET]);
    first.settled(true);
    expect(sessions.storeTaint("notes", undefined)).toEqual(SECRET);
    const second = begun(lower(sessions, target, version()));
    second.settled(true);
    expect([second.remaining, sessions.storeTaint("notes", undefined)]).toEqual([0, CLEAN]);
  });

  it("of one item leaves the others and the whole", () => {
    const sessions = table();
    for (const item of ["a", "b"]) sessions.raiseStore("notes", item, SECRET, BY);
    const target = { of: "store", store: "notes", item: "a" } as const;
    begun(lower(sessions, target, sessions.ofStore("notes")?.version("a") ?? 0)).settled(true);
    const taints = ["a", "b", undefined].map((item) => sessions.storeTaint("notes", item));
    expect(taints).toEqual([CLEAN, SECRET, SECRET]);
  });
});

/** Mostly the highest and the lowest: what an endorsement and a rise have to disagree about. */
const labels = fc.oneof(
  fc.constantFrom(SECRET, CLEAN),
  fc.record({ class: fc.constantFrom(...DATA_CLASSES), untrusted: fc.boolean() }),
);
const target = fc.constantFrom("role", "a", "b", "store", "item");
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("give" as const), to: target, labels }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("endorse" as const), of: target, labels }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("write" as const), ok: fc.constantFrom(true, true, true, false) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("restart" as const, "scope" as const) }) },
);

interface Given {
  readonly where: string;
  readonly labels: Labels;
  readonly atStep: number;
}

/** A role with two sessions and a store over one memory of what is written, with commits that wait, fail and are lost. */
class World {
  sessions = table();
  scope: "role" | "session" = "session";
  given: Given[] = [];
  readonly #kept = new MemoryStore(
    { nowMs: () => 0, after: () => () => undefined, afterInput: () => undefined },
    { replayForMs: 1000, storedBytesMax: () => 1000 },
  );
  #queue: { readonly changes: readonly Change[]; readonly done: (written: boolean) => void }[] = [];
  #step = 0;
  #starts = 0;

  give(to: string, given: Labels): void {
    this.#step += 1;
    const entry = { where: this.#where(to), labels: given, atStep: this.#step };
    const change = this.#raise(to, given);
    if (change === undefined) this.given.push(entry);
    else
      this.#queue.push({
        changes: [change],
        done: (written) => {
          if (!written) return;
          this.sessions.wrote([change]);
          this.given.push(entry);
        },
      });
  }

  #raise(to: string, given: Labels): Change | undefined {
    if (to === "role") return this.sessions.raiseRole("agent", given, BY);
    if (to === "store" || to === "item")
      return this.sessions.raiseStore("notes", to === "item" ? "i" : undefined, given, BY);
    return this.sessions.raise(role(this.scope), this.sessions.ofKept("agent", to, 0), given, BY);
  }

  /** What was given to a session in role scope is the role's. */
  #where(to: string): string {
    return (to === "a" || to === "b") && this.scope === "role" ? "role" : to;
  }

  endorse(of: string, lowered: Labels): void {
    this.#step += 1;
    const begunAt = this.#step;
    const { to, version } = this.#target(of);
    const endorsement = lower(this.sessions, to, version, lowered);
    if (typeof endorsement === "string") return;
    const reached = this.#reached(to);
    this.#queue.push({
      changes: endorsement.changes,
      done: (written) => {
        endorsement.settled(written);
        if (!written) return;
        this.given = this.given.filter(({ where, atStep }) => !reached.includes(where) || atStep > begunAt);
      },
    });
  }

  #target(of: string): { to: EndorseTarget; version: number } {
    const { sessions, scope } = this;
    if (of === "store" || of === "item") {
      const item = of === "item" ? "i" : undefined;
      return {
        to: { of: "store", store: "notes", item },
        version: sessions.ofStore("notes")?.version(item) ?? 0,
      };
    }
    if (of === "role" || scope === "role")
      return {
        to: { of: "role", role: "agent", leftovers: scope === "role" },
        version: sessions.ofRole("agent").version,
      };
    const version = sessions.version(sessions.ofKept("agent", of, 0));
    return { to: { of: "session", role: "agent", session: of }, version };
  }

  #reached(to: EndorseTarget): readonly string[] {
    if (to.of === "store") return to.item === undefined ? ["store", "item"] : ["item"];
    if (to.of === "session") return [to.session];
    return to.leftovers ? ["role", "a", "b"] : ["role"];
  }

  write(ok: boolean): void {
    const first = this.#queue.shift();
    if (first === undefined) return;
    if (ok) this.#kept.commit(first.changes, () => undefined);
    first.done(ok);
  }

  restart(): void {
    this.#queue = [];
    this.#starts += 1;
    this.sessions = new SessionTable();
    this.sessions.restore(this.#kept.load(), this.#starts * 1_000_000);
    if (this.scope === "role") this.sessions.widenToRole("agent");
  }

  rescope(): void {
    this.scope = this.scope === "role" ? "session" : "role";
    if (this.scope === "role") this.sessions.widenToRole("agent");
  }

  check(): void {
    const { sessions } = this;
    const roles = this.scope === "role" ? ["role", "a", "b"] : ["role"];
    expect(covers(sessions.roleTaint("agent"), this.#sum(roles))).toBe(true);
    for (const id of ["a", "b"]) {
      expect(covers(sessions.taintOf("agent", id), this.#sum(["role", id]))).toBe(true);
    }
    expect(covers(sessions.storeTaint("notes", "i"), this.#sum(["store", "item"]))).toBe(true);
    expect(covers(sessions.storeTaint("notes", "other"), this.#sum(["store"]))).toBe(true);
    expect(covers(sessions.storeTaint("notes", undefined), this.#sum(["store", "item"]))).toBe(true);
    for (const { scope, labels } of this.#kept.load().taints) {
      const now =
        scope.of === "role"
          ? sessions.roleTaint(scope.role)
          : scope.of === "session"
            ? sessions.taintOf(scope.role, scope.session)
            : sessions.storeTaint(scope.store, scope.key);
      expect(covers(now, labels)).toBe(true);
    }
  }

  #sum(where: readonly string[]): Labels {
    return this.given
      .filter((one) => where.includes(one.where))
      .reduce((sum: Labels, one) => join(sum, one.labels), CLEAN);
  }
}

describe("whatever is written, lost, endorsed, reloaded and started again", () => {
  it("a taint covers all that was given since the last endorsement of it, and all that is written of it", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: "max" }), (steps) => {
        const world = new World();
        for (const one of steps) {
          if (one.do === "give") world.give(one.to, one.labels);
          else if (one.do === "endorse") world.endorse(one.of, one.labels);
          else if (one.do === "write") world.write(one.ok);
          else if (one.do === "restart") world.restart();
          else world.rescope();
          world.check();
        }
        world.restart();
        world.check();
      }),
      { numRuns: 600 },
    );
  });
});
