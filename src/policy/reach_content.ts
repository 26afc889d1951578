// Where content can go from a role that has it, one hop at a time, as whoever wrote that content would have it go: to
// whoever takes it out of a store that the role writes to, to a provider that calls in turn (a call's taint becomes the
// provider's own), and from a provider to the callers of its tools whose results count as trusted.
// More taint only narrows a decision, so whoever takes content in is taken to have been clean, and a read to add no more
// than the floor. Items of a store are not told apart.

import { CLEAN, classAbove, type DataClass, join, type Labels } from "../base/labels.ts";
import type { ToolEffect } from "./policy.ts";
import type { Reaching } from "./reach_tools.ts";
import { isOpen } from "./reach_verdict.ts";

/** How content goes from `role` to the next one. */
export interface Hop {
  /**
   * `store`: the role puts it into `store` with `tool`, the next takes it out with `taken_with`. `call`: the role calls
   * `tool`, whose provider is the next and calls in turn. `answer`: the role is the provider of `tool`, and answers the next with it.
   */
  readonly by: "store" | "call" | "answer";
  readonly role: string;
  readonly tool: string;
  /** Empty where there is none in between. */
  readonly store: string;
  readonly taken_with: string | null;
}

/** What a role may have been given, as far as it matters where it can go: content from outside, under this taint. */
export interface Place {
  readonly role: string;
  readonly taint: Labels;
  /** Its own call brought it; else a caller's arguments did. */
  readonly taken: boolean;
  readonly certain: boolean;
  readonly hop: Hop | undefined;
  readonly before: Place | undefined;
  readonly hops: number;
}

export function verdictOf({ at }: Reaching, taint: Labels) {
  return at[taintIndex(taint)]?.verdict ?? "deny";
}

const CLASS_INDEX: Readonly<Record<DataClass, number>> = {
  public: 0,
  internal: 1,
  confidential: 2,
  restricted: 3,
};

/** Where a taint stands in TAINTS. */
export function taintIndex({ class: dataClass, untrusted }: Labels): number {
  return CLASS_INDEX[dataClass] + (untrusted ? 4 : 0);
}

/** Of several that do the same, what every call gets through, and what only reads. */
export function surestFirst(reachings: readonly Reaching[]): Reaching[] {
  const doubt = (one: Reaching) =>
    (verdictOf(one, CLEAN) === "allow" ? 0 : 2) + (one.tool.effect === "read" ? 0 : 1);
  return [...reachings].sort((a, b) => doubt(a) - doubt(b));
}

export function placeKey({ role, taint, taken }: Pick<Place, "role" | "taint" | "taken">): string {
  return `${role} ${taintIndex(taint)} ${taken}`;
}

/** What a write, a send or a spend answers is its provider's word on it, not what somebody put there. */
export const BRINGS_BACK: ReadonlySet<ToolEffect> = new Set<ToolEffect>(["read", "execute"]);

/** Where content can go from a place; each question is answered once. */
export class ContentMap {
  readonly #ofRole = new Map<string, Reaching[]>();
  readonly #sinks = new Map<string, readonly Reaching[]>();
  /** By store: who takes something out of it without a person, of a role and floor the surest. */
  readonly #takers = new Map<string, Map<string, Reaching>>();
  /** By provider: whose calls of its tools are answered with what counts as trusted. */
  readonly #asking = new Map<string, Map<string, Reaching>>();
  readonly #next = new Map<string, readonly Step[]>();
  readonly #clean = new Map<string, readonly Labels[]>();

  constructor(reachings: readonly Reaching[], sinks: ReadonlySet<ToolEffect>) {
    for (const one of surestFirst(reachings)) {
      const ofRole = this.#ofRole.get(one.role);
      if (ofRole === undefined) this.#ofRole.set(one.role, [one]);
      else ofRole.push(one);
      if (one.tool.isBuiltin || !isOpen(verdictOf(one, CLEAN))) continue;
      const { store, floor, provider } = one.tool;
      if (!BRINGS_BACK.has(one.tool.effect)) continue;
      const key = `${one.role} ${taintIndex(floor)}`;
      if (store !== undefined) put(this.#takers, store, key, one);
      if (!floor.untrusted) put(this.#asking, provider, key, one);
    }
    for (const [role, ofRole] of this.#ofRole)
      this.#sinks.set(
        role,
        ofRole.filter(({ tool }) => sinks.has(tool.effect) && !tool.isBuiltin),
      );
  }

  sinksOf(role: string): readonly Reaching[] {
    return this.#sinks.get(role) ?? [];
  }

  ofRole(role: string): readonly Reaching[] {
    return this.#ofRole.get(role) ?? [];
  }

  *next(place: Place): Iterable<Place> {
    const key = placeKey(place);
    const known = this.#next.get(key) ?? nearestOf(this.#steps(place));
    this.#next.set(key, known);
    for (const { role, taint, taken, certain, hop } of known)
      yield {
        ...{ role, taint, taken, certain: place.certain && certain },
        ...{ hop, before: place, hops: place.hops + 1 },
      };
  }

  *#steps(place: Place): Iterable<Step> {
    const written = new Set<string>();
    const called = new Set<string>();
    for (const one of this.ofRole(place.role)) {
      const verdict = verdictOf(one, place.taint);
      const { tool } = one;
      if (tool.isBuiltin || !isOpen(verdict)) continue;
      const { store, provider } = tool;
      if (store !== undefined && tool.effect !== "read" && !written.has(store)) {
        written.add(store);
        yield* this.#takenFrom(place, one, store, verdict === "allow");
      }
      if (provider !== place.role && this.#ofRole.has(provider) && !called.has(provider)) {
        called.add(provider);
        const hop: Hop = { by: "call", role: place.role, tool: tool.name, store: "", taken_with: null };
        yield { role: provider, taint: place.taint, taken: false, certain: verdict === "allow", hop };
      }
    }
    if (place.taken) yield* this.#answeredBy(place.role);
  }

  *#takenFrom(place: Place, { tool }: Reaching, store: string, certain: boolean): Iterable<Step> {
    for (const taker of this.#takers.get(store)?.values() ?? []) {
      if (taker.role === place.role) continue;
      const hop = { by: "store", role: place.role, tool: tool.name, store } as const;
      yield {
        role: taker.role,
        taint: join(place.taint, taker.tool.floor),
        taken: true,
        certain: certain && verdictOf(taker, CLEAN) === "allow",
        hop: { ...hop, taken_with: taker.tool.name },
      };
    }
  }

  *#answeredBy(provider: string): Iterable<Step> {
    for (const asking of this.#asking.get(provider)?.values() ?? []) {
      if (asking.role === provider) continue;
      const hop = { by: "answer", role: provider, tool: asking.tool.name, store: "" } as const;
      yield {
        role: asking.role,
        taint: asking.tool.floor,
        taken: true,
        certain: verdictOf(asking, CLEAN) === "allow",
        hop: { ...hop, taken_with: null },
      };
    }
  }

  /** The highest class of what the role may have read by itself, before or after, with the sink still open. */
  carries({ role, taint }: Place, sink: Reaching): DataClass {
    let highest = taint.class;
    for (const own of this.#ownTaints(role)) {
      const all = join(own, taint);
      if (classAbove(all.class, highest) && isOpen(verdictOf(sink, all))) highest = all.class;
    }
    return highest;
  }

  /** Every taint that a role can come to by its own calls without a person. */
  #ownTaints(role: string): readonly Labels[] {
    const known = this.#clean.get(role);
    if (known !== undefined) return known;
    const taints = [CLEAN];
    const seen = new Set([taintIndex(CLEAN)]);
    for (const taint of taints) {
      for (const one of this.ofRole(role)) {
        const after = join(taint, one.tool.floor);
        if (seen.has(taintIndex(after)) || !isOpen(verdictOf(one, taint))) continue;
        seen.add(taintIndex(after));
        taints.push(after);
      }
    }
    this.#clean.set(role, taints);
    return taints;
  }
}

/** One step to each place. */
function nearestOf(steps: Iterable<Step>): readonly Step[] {
  const nearest = new Map<string, Step>();
  for (const step of steps) {
    const key = placeKey(step);
    if (!nearest.has(key)) nearest.set(key, step);
  }
  return [...nearest.values()];
}

type Step = Pick<Place, "role" | "taint" | "taken" | "certain"> & { readonly hop: Hop };

function put(of: Map<string, Map<string, Reaching>>, name: string, key: string, one: Reaching): void {
  const found = of.get(name);
  if (found === undefined) of.set(name, new Map([[key, one]]));
  else if (!found.has(key)) found.set(key, one);
}
