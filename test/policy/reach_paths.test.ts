// Ways from untrusted content to an effect without a person: the kinds of them, and none that an attacker finds and
// they do not.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLEAN, join, type Labels } from "../../src/base/labels.ts";
import { decide } from "../../src/policy/decision.ts";
import { indexGrants } from "../../src/policy/grant_index.ts";
import type { Grant, ToolEffect } from "../../src/policy/policy.ts";
import { PATHS_MAX, SINKS_DEFAULT } from "../../src/policy/reach.ts";
import { TAINTS } from "../../src/policy/reach_verdict.ts";
import { condition, grant, NOW, subject } from "./grants.ts";
import { allows, CLEAN_FLOOR, reachOf, surface, tool, UNTRUSTED, type World } from "./reach_world.ts";

const ROLES = { agent: [], writer: [], web: [], notes: [], mail: [] };
const FETCH = tool("web.fetch", "read");
const SEND = tool("mail.send", "send", { floor: CLEAN_FLOOR });
const ADD = tool("notes.add", "write", { floor: CLEAN_FLOOR });
const READ = tool("notes.read", "read", { floor: CLEAN_FLOOR });

function pathsOf(tools: World["tools"], ...grants: readonly Grant[]) {
  return reachOf({ roles: ROLES, tools, grants }).paths;
}

/** Those that begin at a tool whose results always count as untrusted. */
function fetchedOf(tools: World["tools"], ...grants: readonly Grant[]) {
  return pathsOf(tools, ...grants).filter(({ source }) => source === "web.fetch");
}

describe("a way from untrusted content to an effect", () => {
  it("is open where one role reads and sends, and names the grant that opens the end of it", () => {
    expect(
      pathsOf([FETCH, SEND], allows("agent-reads", ["web.fetch"]), allows("agent-sends", ["mail.send"])),
    ).toEqual([
      {
        ...{ role: "agent", source: "web.fetch", through: [], sink_role: "agent", sink: "mail.send" },
        ...{ effect: "send", taint: UNTRUSTED, carries: "public", verdict: "allow", by: ["agent-sends"] },
      },
    ]);
  });

  it("is shut by a person, by a taint that the grant does not hold at, and by a deny; a condition leaves it open", () => {
    const reads = allows("agent-reads", ["web.fetch"]);
    const sends = allows("agent-sends", ["mail.send"]);
    const verdicts = (...grants: readonly Grant[]) =>
      pathsOf([FETCH, SEND], ...grants).map(({ verdict }) => verdict);
    const asked = grant("asks", "ask", { tools: ["mail.send"] });
    expect(verdicts(reads, sends, asked)).toEqual([]);
    expect(verdicts({ ...reads, effect: "ask" }, sends)).toEqual([]);
    expect(verdicts(reads, { ...sends, taintMax: CLEAN })).toEqual([]);
    expect(verdicts(reads, { ...sends, taintMax: CLEAN, aboveTaint: "ask" })).toEqual([]);
    expect(verdicts(reads, sends, grant("never", "deny", { tools: ["mail.*"] }))).toEqual([]);
    expect(verdicts(reads, { ...sends, when: condition("match") })).toEqual(["conditional"]);
    expect(verdicts({ ...reads, sessions: ["s*"] }, sends)).toEqual(["conditional"]);
    expect(verdicts(reads, sends, { ...asked, when: condition("match") })).toEqual(["conditional"]);
  });

  it("leads through a store that another role reads, however trusted the tool that reads it is", () => {
    const paths = fetchedOf(
      [FETCH, SEND, ADD, READ],
      allows("agent-reads", ["web.fetch", "notes.add"]),
      allows("writer-sends", ["notes.read", "mail.send"]),
    );
    expect(paths).toMatchObject([
      {
        ...{ role: "agent", source: "web.fetch", sink_role: "writer", sink: "mail.send", taint: UNTRUSTED },
        through: [
          { by: "store", role: "agent", tool: "notes.add", store: "notes", taken_with: "notes.read" },
        ],
      },
    ]);
    const clean = { taintMax: CLEAN };
    expect(
      pathsOf(
        [FETCH, SEND, ADD, READ],
        allows("agent-reads", ["web.fetch", "notes.add"]),
        allows("writer-reads", ["notes.read"]),
        allows("writer-sends", ["mail.send"], clean),
      ),
    ).toEqual([]);
  });

  it.each<ToolEffect>(["write", "send", "spend", "execute"])(
    "leads into a store by a tool that %ss, and by none that reads",
    (effect) => {
      const grants = [
        allows("agent-puts", ["web.fetch", "notes.add"]),
        allows("writer-sends", ["notes.read", "mail.send"]),
      ];
      const through = (put: ToolEffect) =>
        pathsOf([FETCH, SEND, { ...ADD, effect: put }, READ], ...grants)
          .filter(({ sink_role, source }) => sink_role === "writer" && source === "web.fetch")
          .map(({ through: hops }) => hops.map(({ by }) => by));
      expect(through(effect)).toEqual([["store"]]);
      expect(through("read")).toEqual([]);
    },
  );

  it("does not lead through a tool that keeps nothing, nor out of a store by what only writes to it", () => {
    const grants = [
      allows("agent-reads", ["web.fetch", "notes.add"]),
      allows("writer-sends", ["notes.*", "mail.send"]),
    ];
    expect(fetchedOf([FETCH, SEND, { ...ADD, store: undefined }, READ], ...grants)).toEqual([]);
    expect(fetchedOf([FETCH, SEND, ADD], ...grants)).toEqual([]);
  });

  it("leads to a provider that calls in turn, at the taint of the call that it was given", () => {
    const reads = allows("agent-reads", ["web.fetch", "notes.add"]);
    const through = [{ by: "call", role: "agent", tool: "notes.add", store: "", taken_with: null }];
    expect(pathsOf([FETCH, SEND, ADD], reads, allows("notes-sends", ["mail.send"]))).toMatchObject([
      { sink_role: "notes", through, taint: UNTRUSTED },
    ]);
    expect(
      pathsOf([FETCH, SEND, ADD], reads, allows("notes-sends", ["mail.send"], { taintMax: CLEAN })),
    ).toEqual([]);
  });

  it("leads from a provider that reads by itself to whoever takes its answers for trusted, and then counts as clean", () => {
    const paths = pathsOf(
      [FETCH, SEND, READ],
      allows("notes-reads", ["web.fetch"]),
      allows("writer-reads", ["notes.read"]),
      allows("writer-sends", ["mail.send"], { taintMax: CLEAN }),
    );
    expect(paths).toMatchObject([
      {
        ...{ role: "notes", source: "web.fetch", sink_role: "writer", taint: CLEAN },
        through: [{ by: "answer", role: "notes", tool: "notes.read" }],
      },
    ]);
  });

  it("carries what the role may read beside it, up to where the end is still open", () => {
    const secret = tool("notes.secret", "read", { floor: { class: "confidential", untrusted: false } });
    const top = tool("notes.top", "read", { floor: { class: "restricted", untrusted: false } });
    const reads = allows("agent-reads", ["web.fetch", "notes.secret", "notes.top"]);
    const upTo = (taintMax: Labels) =>
      fetchedOf([FETCH, SEND, secret, top], reads, allows("agent-sends", ["mail.send"], { taintMax })).map(
        ({ carries }) => carries,
      );
    expect(upTo({ class: "restricted", untrusted: true })).toEqual(["restricted"]);
    expect(upTo({ class: "confidential", untrusted: true })).toEqual(["confidential"]);
    expect(upTo(UNTRUSTED)).toEqual(["public"]);
  });

  it("begins also where a provider may say of what it read that it is untrusted, floor or not", () => {
    const sends = allows("agent-sends", ["mail.send"]);
    const reads = allows("agent-reads", ["notes.read"]);
    expect(pathsOf([SEND, READ], reads, sends)).toMatchObject([
      { source: "notes.read", sink: "mail.send", taint: UNTRUSTED, verdict: "conditional" },
    ]);
    expect(pathsOf([SEND, READ], reads, { ...sends, taintMax: CLEAN })).toEqual([]);
    expect(pathsOf([SEND, ADD], allows("agent-writes", ["notes.add"]), sends)).toEqual([]);
  });

  it("ends in a write only where one asks for that", () => {
    const world = {
      roles: ROLES,
      tools: [FETCH, ADD],
      grants: [allows("agent-reads", ["web.fetch", "notes.add"])],
    };
    expect(reachOf(world).paths).toEqual([]);
    expect(reachOf(world, new Set<ToolEffect>([...SINKS_DEFAULT, "write"])).paths).toMatchObject([
      { sink: "notes.add", effect: "write" },
    ]);
  });

  it("is told the shortest, and once for each tool that is read, role and tool that it ends at", () => {
    const paths = pathsOf(
      [FETCH, tool("web.list", "read"), SEND, ADD, READ],
      allows("agent-all", ["*"]),
      allows("writer-all", ["*"]),
    );
    const ends = paths.map(
      ({ source, sink_role, sink, through }) => `${source} ${sink_role} ${sink} ${through.length}`,
    );
    expect(ends.toSorted()).toEqual([
      "notes.read agent mail.send 0",
      "notes.read writer mail.send 0",
      "web.fetch agent mail.send 0",
      "web.fetch writer mail.send 0",
      "web.list agent mail.send 0",
      "web.list writer mail.send 0",
    ]);
  });

  it("is one of at most so many, of which every end is told before a second source of any", () => {
    const sources = Array.from({ length: 60 }, (_, i) => tool(`web.r${i}`, "read"));
    const sinks = Array.from({ length: 60 }, (_, i) => tool(`mail.s${i}`, "send", { floor: CLEAN_FLOOR }));
    const { paths, more } = reachOf({
      roles: ROLES,
      tools: [...sources, ...sinks],
      grants: [allows("agent-all", ["*"])],
    });
    expect(paths).toHaveLength(PATHS_MAX);
    expect(more).toBe(true);
    expect(new Set(paths.slice(0, 60).map(({ sink }) => sink)).size).toBe(60);
  });
});

/** Roles of the random worlds; every one may provide and may call. */
const WALKERS = ["a", "b", "c"];
const STORES = ["x", "y", undefined];
const EFFECTS: readonly ToolEffect[] = ["read", "read", "write", "execute", "send"];

const walkTool = fc
  .record({
    role: fc.constantFrom(...WALKERS),
    effect: fc.constantFrom(...EFFECTS),
    floor: fc.constantFrom(CLEAN, CLEAN, UNTRUSTED, { class: "internal", untrusted: false } as const),
    store: fc.constantFrom(...STORES),
  })
  .map((one) => ({ ...one, name: "" }));
const walkTools = fc
  .array(walkTool, { minLength: 2, maxLength: 6 })
  .map((tools) => tools.map((one, i) => ({ ...one, name: `${one.role}.t${i}` })));
const walkGrant = fc.record({
  role: fc.constantFrom(...WALKERS),
  tools: fc.constantFrom(["*"], ["a.*"], ["b.*"], ["c.*", "a.t0"], ["b.t1"]),
  effect: fc.constantFrom<Grant["effect"]>("allow", "allow", "allow", "allow", "ask", "deny"),
  when: fc.constantFrom(
    undefined,
    undefined,
    condition(({ args }) => ({ kind: args.has("fits") ? "match" : "no_match" })),
  ),
  taintMax: fc.constantFrom(...TAINTS, ...TAINTS.slice(-2), ...TAINTS.slice(-2)),
  aboveTaint: fc.constantFrom<Grant["aboveTaint"]>("deny", "ask"),
});
const walkWorld: fc.Arbitrary<World> = fc
  .tuple(walkTools, fc.array(walkGrant, { minLength: 1, maxLength: 8 }))
  .map(([tools, grants]) => ({
    roles: { a: [], b: [], c: [] },
    tools,
    grants: grants.map(({ effect, taintMax, ...rest }, i) =>
      grant(`g${i}`, effect, { ...rest, taintMax: effect === "deny" ? undefined : taintMax }),
    ),
  }));
const walk = fc.array(
  fc.record({
    by: fc.constantFrom(...WALKERS),
    tool: fc.nat({ max: 5 }),
    fits: fc.boolean(),
    untrusted: fc.boolean(),
  }),
  { minLength: 20, maxLength: 60 },
);

/** What has outside content in it, and the broker's taints, as calls go on one after the other. */
class Walk {
  readonly ends = new Set<string>();
  readonly #world: World;
  readonly #index;
  readonly #taints = new Map<string, Labels>();
  /** Roles (`role r`: by a call of its own, `given r`: by a caller's) and stores (`store s`) that have some. */
  readonly #has = new Set<string>();

  constructor(world: World) {
    this.#world = world;
    const { policy } = surface(world);
    this.#index = indexGrants({ grants: world.grants, tools: policy.tools });
  }

  /** `untrusted`: so the provider itself labels what it has read. */
  call(role: string, nth: number, fits: boolean, untrusted: boolean): void {
    const called = this.#world.tools[nth % this.#world.tools.length];
    if (called === undefined) return;
    const { name, role: provider, effect, floor, store } = called;
    const args = new Map(fits ? [["fits", true]] : []);
    const taint = this.#taint(`role ${role}`);
    if (decide(this.#index, subject({ role, tool: name, taint, args, nowMs: NOW })).kind !== "allow") return;
    const has = this.#has.has(`role ${role}`) || this.#has.has(`given ${role}`);
    if (has && SINKS_DEFAULT.has(effect)) this.ends.add(`${role} ${name}`);
    this.#raise(`role ${provider}`, taint);
    if (has && provider !== role) this.#has.add(`given ${provider}`);
    if (store !== undefined && effect !== "read") {
      this.#raise(`store ${store}`, taint);
      if (has) this.#has.add(`store ${store}`);
    }
    const brings = effect === "read" || effect === "execute";
    const fromStore = brings && store !== undefined && this.#has.has(`store ${store}`);
    const fromProvider = brings && this.#has.has(`role ${provider}`) && !floor.untrusted;
    const labels = { ...floor, untrusted: floor.untrusted || (brings && untrusted) };
    if (labels.untrusted || fromStore || fromProvider) this.#has.add(`role ${role}`);
    this.#raise(`role ${role}`, store === undefined ? labels : join(labels, this.#taint(`store ${store}`)));
  }

  #taint(of: string): Labels {
    return this.#taints.get(of) ?? CLEAN;
  }

  #raise(of: string, labels: Labels): void {
    this.#taints.set(of, join(this.#taint(of), labels));
  }
}

describe("an attacker who writes the content and lets the roles call at random", () => {
  it("gets no content to an effect without a person by a way that is not told", () => {
    let ends = 0;
    fc.assert(
      fc.property(walkWorld, walk, (world, calls) => {
        const walked = new Walk(world);
        for (const { by, tool: nth, fits, untrusted } of calls) walked.call(by, nth, fits, untrusted);
        const { paths, more } = reachOf(world);
        expect(more).toBe(false);
        const told = paths.map(({ sink_role, sink }) => `${sink_role} ${sink}`);
        for (const end of walked.ends) expect(told).toContain(end);
        ends += walked.ends.size;
      }),
      { numRuns: 3000 },
    );
    expect(ends).toBeGreaterThan(500);
  });
});
