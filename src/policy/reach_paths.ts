// Ways from untrusted content to an effect without a person in them: from each tool that brings such content, breadth
// first along the hops of reach_content.ts, to each sink that is open at the taint it comes there with.
// Invariant: of each way the shortest is told; bounded, what is nearest first, and says so where more was left out.

import { CLEAN, type DataClass, type Labels } from "../base/labels.ts";
import type { ToolEffect } from "./policy.ts";
import {
  BRINGS_BACK,
  ContentMap,
  type Hop,
  type Place,
  placeKey,
  surestFirst,
  taintIndex,
  verdictOf,
} from "./reach_content.ts";
import type { Reaching, ReachTool } from "./reach_tools.ts";
import { isOpen } from "./reach_verdict.ts";

export interface OpenPath {
  readonly role: string;
  readonly source: string;
  readonly through: readonly Hop[];
  readonly sink_role: string;
  readonly sink: string;
  readonly effect: string;
  readonly taint: Labels;
  readonly carries: DataClass;
  readonly verdict: "allow" | "conditional";
  readonly by: readonly string[];
}

export interface FoundPaths {
  readonly paths: readonly OpenPath[];
  readonly more: boolean;
}

export interface PathQuestion {
  readonly reachings: readonly Reaching[];
  readonly sinks: ReadonlySet<ToolEffect>;
}

/** Before they are told one by one: more are not looked for. */
const WAYS_MAX = 4000;

export function findPaths({ reachings, sinks }: PathQuestion, pathsMax: number): FoundPaths {
  const map = new ContentMap(reachings, sinks);
  const { ways, more } = nearestWays(startsOf(reachings).map((start) => new Spread(map, start)));
  const paths: OpenPath[] = [];
  for (const { way, source } of toldOneByOne(ways)) {
    if (paths.length >= pathsMax) return { paths, more: true };
    paths.push(openPath(map, way, source));
  }
  return { paths, more };
}

/** Level by level from all starts at once, so that the bound cuts what is far. The nearest are all there. */
function nearestWays(spreads: readonly Spread[]): { readonly ways: readonly Way[]; readonly more: boolean } {
  const ways: Way[] = [];
  for (let open = spreads, level = 0; open.length > 0; level++) {
    for (const spread of open) {
      if (level > 0 && ways.length >= WAYS_MAX) return { ways, more: true };
      ways.push(...spread.next());
    }
    open = open.filter(({ isDone }) => !isDone);
  }
  return { ways, more: false };
}

/** Tools of one role that bring untrusted content of the same class. */
interface Start {
  readonly role: string;
  readonly floor: Labels;
  /** Those that every call gets through to first. */
  readonly sources: readonly Reaching[];
}

interface Way {
  readonly start: Start;
  readonly end: Place;
  readonly sink: Reaching;
}

function startsOf(reachings: readonly Reaching[]): readonly Start[] {
  const starts = new Map<string, { role: string; floor: Labels; sources: Reaching[] }>();
  for (const reaching of reachings) {
    const { role, tool } = reaching;
    if (!bringsContent(tool) || !isOpen(verdictOf(reaching, CLEAN))) continue;
    const key = `${role} ${tool.floor.class}`;
    const start = starts.get(key);
    const floor = { ...tool.floor, untrusted: true };
    if (start === undefined) starts.set(key, { role, floor, sources: [reaching] });
    else start.sources.push(reaching);
  }
  return [...starts.values()].map((start) => ({ ...start, sources: surestFirst(start.sources) }));
}

/** A floor is the least that results are: a provider may label one of a tool that reads as untrusted, by what it read. */
function bringsContent({ floor, effect, isBuiltin }: ReachTool): boolean {
  return floor.untrusted || (!isBuiltin && BRINGS_BACK.has(effect));
}

/** Where content from one start has got to. */
class Spread {
  readonly #map: ContentMap;
  readonly #start: Start;
  readonly #told = new Set<Reaching>();
  readonly #seen = new Set<string>();
  #first: Place | undefined;
  /** Where it got to last. */
  #frontier: readonly Place[] = [];

  constructor(map: ContentMap, start: Start) {
    this.#map = map;
    this.#start = start;
    const { role, floor } = start;
    const first = {
      role,
      taint: floor,
      taken: true,
      certain: true,
      hop: undefined,
      before: undefined,
      hops: 0,
    };
    this.#seen.add(placeKey(first));
    this.#first = first;
  }

  /** Nothing new was left to get to. */
  get isDone(): boolean {
    return this.#first === undefined && this.#frontier.length === 0;
  }

  /** Goes one hop on (at first: none), and tells the sinks there, each of a role once in all. */
  next(): readonly Way[] {
    this.#frontier =
      this.#first === undefined ? this.#frontier.flatMap((place) => this.#onward(place)) : [this.#first];
    this.#first = undefined;
    return this.#frontier.flatMap((end) => this.#waysTo(end));
  }

  #onward(place: Place): readonly Place[] {
    return [...this.#map.next(place)].filter((one) => this.#isNew(one));
  }

  #waysTo(end: Place): readonly Way[] {
    const index = taintIndex(end.taint);
    return this.#map.sinksOf(end.role).flatMap((sink) => {
      if (this.#told.has(sink) || !isOpen(sink.at[index]?.verdict ?? "deny")) return [];
      this.#told.add(sink);
      return [{ start: this.#start, end, sink }];
    });
  }

  #isNew(place: Place): boolean {
    const key = placeKey(place);
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    return true;
  }
}

function hopsOf(end: Place): readonly Hop[] {
  const hops: Hop[] = [];
  for (let at: Place | undefined = end; at !== undefined; at = at.before) {
    if (at.hop !== undefined) hops.unshift(at.hop);
  }
  return hops;
}

/**
 * The shortest first, and of each way one source before another of any: cut, the list has lost no sink before it must. Who
 * reads a source does not make another way of it: of those the shortest is told.
 */
function* toldOneByOne(ways: readonly Way[]): Iterable<{ readonly way: Way; readonly source: Reaching }> {
  const nearest = [...ways].sort((a, b) => a.end.hops - b.end.hops);
  const told = new Set<string>();
  for (const [from, to] of [
    [0, 1],
    [1, undefined],
  ]) {
    for (const way of nearest) {
      for (const source of way.start.sources.slice(from, to)) {
        const key = `${source.tool.name} ${way.sink.role} ${way.sink.tool.name}`;
        if (told.has(key)) continue;
        told.add(key);
        yield { way, source };
      }
    }
  }
}

function openPath(map: ContentMap, { end, sink }: Way, source: Reaching): OpenPath {
  const found = sink.at[taintIndex(end.taint)];
  const { floor } = source.tool;
  const always =
    floor.untrusted && end.certain && found?.verdict === "allow" && verdictOf(source, CLEAN) === "allow";
  return {
    role: source.role,
    source: source.tool.name,
    through: hopsOf(end),
    sink_role: sink.role,
    sink: sink.tool.name,
    effect: sink.tool.effect,
    taint: end.taint,
    carries: map.carries(end, sink),
    verdict: always ? "allow" : "conditional",
    by: found?.by ?? [],
  };
}
