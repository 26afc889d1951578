// Calls in memory: those that run, and the archive of those that have ended, per role up to an age and
// a number of bytes. What goes leaves its session's watermark behind.
// Invariant: a pruned call is never found again, and its id stays at or below its watermark.

import { CallArchive } from "./archive.ts";
import type { EndedPlace, FoundCall } from "./port.ts";
import type { CallKey, CallRecord, Change } from "./records.ts";
import { Watermarks } from "./watermarks.ts";

/** How long calls that have ended are kept. */
export interface CallBounds {
  /** What ended before may go. */
  endedBeforeMs(): number;
  /** Bytes of ended calls kept for a role. */
  storedBytesMax(role: string): number;
}

/** One role's calls, by session and call. */
class RoleCalls {
  readonly running = new Map<string, Map<bigint, CallRecord>>();
  readonly archive: CallArchive;
  readonly watermarks = new Watermarks();

  constructor(role: string) {
    this.archive = new CallArchive(role);
  }

  find(session: string, call: bigint): CallRecord | undefined {
    return this.running.get(session)?.get(call) ?? this.archive.find(session, call);
  }

  put(record: CallRecord): void {
    const { session, call } = record.key;
    const calls = this.running.get(session);
    if (calls === undefined) this.running.set(session, new Map([[call, record]]));
    else calls.set(call, record);
  }

  /** Takes a running call out without a trace. */
  drop(record: CallRecord): void {
    const { session, call } = record.key;
    const calls = this.running.get(session);
    if (calls?.get(call) !== record) return;
    calls.delete(call);
    if (calls.size === 0) this.running.delete(session);
  }

  end(record: CallRecord): void {
    this.drop(record);
    // An operator's words for a call whose record was read anew stand in for the one that ran.
    this.running.get(record.key.session)?.delete(record.key.call);
    this.archive.append(record);
  }

  prune(bytesMax: number, endedBeforeMs: number): void {
    this.archive.prune(bytesMax, endedBeforeMs, (session, call) => this.watermarks.raise(session, call));
  }
}

export class MemoryCalls {
  readonly #bounds: CallBounds;
  readonly #roles = new Map<string, RoleCalls>();

  constructor(bounds: CallBounds) {
    this.#bounds = bounds;
  }

  find(key: CallKey): CallRecord | undefined {
    return this.#roles.get(key.role)?.find(key.session, key.call);
  }

  watermark(role: string, session: string): bigint | undefined {
    return this.#roles.get(role)?.watermarks.of(session);
  }

  /** Newest first. */
  withoutOutcome(): readonly CallRecord[] {
    const running = [...this.#roles.values()].flatMap((role) =>
      [...role.running.values()].flatMap((calls) => [...calls.values()]),
    );
    return running.reverse().sort((a, b) => b.askedAtMs - a.askedAtMs);
  }

  /** Newest first. */
  ended(): Iterable<CallRecord> {
    return newestFirst([...this.#roles.values()].map(({ archive }) => archive.newestFirst()));
  }

  /** As the port's `open`. */
  open(): Iterable<FoundCall> {
    return this.withoutOutcome().map((record) => {
      const { key, arguments: args } = record;
      return { key, endedAtMs: 0, number: 0, bytes: args.length, read: () => record };
    });
  }

  /** As the port's `ended`. A place with a number is behind all of its millisecond here. */
  found(role: string | undefined, behind: EndedPlace | undefined): Iterable<FoundCall> {
    const roles = role === undefined ? [...this.#roles.keys()].sort() : [role];
    return newestFirst(roles.map((name) => this.#foundOf(name, behind)));
  }

  #foundOf(role: string, behind: EndedPlace | undefined): Iterable<FoundCall> {
    const archive = this.#roles.get(role)?.archive;
    if (archive === undefined) return [];
    if (behind === undefined) return archive.found(Number.POSITIVE_INFINITY);
    const { key, endedAtMs, number } = behind;
    const isOwn = number === 0 && key?.role === role;
    if (isOwn && archive.find(key.session, key.call) !== undefined) return archive.found(endedAtMs, key);
    const isLater = number === 0 && key !== undefined && key.role < role;
    return archive.found(isLater ? endedAtMs : endedAtMs - 1);
  }

  apply(change: Change): void {
    switch (change.kind) {
      case "intent":
        return this.#role(change.record.key.role).put(change.record);
      case "withdrawn":
        return this.#role(change.record.key.role).drop(change.record);
      case "message":
        change.record.messages.push(change.message);
        return;
      case "outcome":
        return this.#end(change);
      default:
    }
  }

  #end({ record, message, status, code, atMs }: Extract<Change, { kind: "outcome" }>): void {
    const { role } = record.key;
    const calls = this.#role(role);
    record.messages.push(message);
    record.state = "ended";
    record.status = status;
    record.code = code;
    record.endedAtMs = atMs;
    calls.end(record);
    calls.prune(this.#bounds.storedBytesMax(role), this.#bounds.endedBeforeMs());
  }

  #role(name: string): RoleCalls {
    let role = this.#roles.get(name);
    if (role === undefined) {
      role = new RoleCalls(name);
      this.#roles.set(name, role);
    }
    return role;
  }
}

/** Several streams of calls, each with the one that ended last first, as one; of one millisecond, those of the first stream come first. */
export function newestFirst<T extends { readonly endedAtMs: number }>(
  streams: readonly Iterable<T>[],
): Generator<T> {
  return merged(streams, (a, b) => a.endedAtMs > b.endedAtMs);
}

/** Ordered streams as one. `isBefore`: strictly. */
export function* merged<T>(streams: readonly Iterable<T>[], isBefore: (a: T, b: T) => boolean): Generator<T> {
  const heads: { current: T; readonly rest: Iterator<T> }[] = [];
  for (const stream of streams) {
    const rest = stream[Symbol.iterator]();
    const first = rest.next();
    if (!first.done) heads.push({ current: first.value, rest });
  }
  while (heads.length > 0) {
    const newest = heads.reduce((a, b) => (isBefore(b.current, a.current) ? b : a));
    yield newest.current;
    const next = newest.rest.next();
    if (next.done) heads.splice(heads.indexOf(newest), 1);
    else newest.current = next.value;
  }
}
