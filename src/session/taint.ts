// One taint: labels that only rise, how much of them is written down, which call raised them last, and
// how an operator's endorsement lowers them. What belongs to which role, session or store is not here.
// Invariants: outside an endorsement a taint in memory covers the written one; a rise is asked to be written
// until it is; a rise that comes while an endorsement is being written wins over it.

import { CLEAN, classAbove, covers, join, type Labels } from "../base/labels.ts";
import type { CallKey } from "../store/records.ts";

/** So many changes of taints a millisecond, on average over a run, before versions of two runs could meet. */
const VERSIONS_PER_MS = 1024;

/**
 * Numbers for the states of taints: every change of any taint takes the next one, so a number that an operator
 * has seen never comes back for other labels. A restart begins above all that an earlier run can have given out.
 */
export class Versions {
  #first = 0;
  #last = 0;

  /** Of taints that have not changed since this process began. */
  get first(): number {
    return this.#first;
  }

  /** Before any taint has changed. `nowMs` never goes back between two runs. */
  begin(nowMs: number): void {
    this.#first = nowMs * VERSIONS_PER_MS;
    this.#last = this.#first;
  }

  next(): number {
    this.#last += 1;
    return this.#last;
  }
}

/** An endorsement that is being written. */
interface Endorsing {
  readonly labels: Labels;
  /** Its version once it is written and nothing has risen meanwhile. */
  readonly version: number;
  overtaken: boolean;
}

export class Taint {
  readonly #versions: Versions;
  #now: Labels = CLEAN;
  #written: Labels = CLEAN;
  #raisedBy: CallKey | undefined;
  /** 0: not changed in this run. */
  #version = 0;
  #endorsing: Endorsing | undefined;

  constructor(versions: Versions) {
    this.#versions = versions;
  }

  get now(): Labels {
    return this.#now;
  }

  get written(): Labels {
    return this.#written;
  }

  /** The call that raised it last; undefined after an endorsement. */
  get raisedBy(): CallKey | undefined {
    return this.#raisedBy;
  }

  get version(): number {
    return this.#version || this.#versions.first;
  }

  get isEndorsing(): boolean {
    return this.#endorsing !== undefined;
  }

  /** Whether `now` has still to be written: also where memory knows it and an earlier write of it failed. */
  raise(labels: Labels, by: CallKey): boolean {
    if (!covers(this.#now, labels)) this.#rise(labels, by);
    const endorsing = this.#endorsing;
    if (endorsing === undefined) return !covers(this.#written, labels);
    // Whichever of the two the store holds in the end, this has to be covered by it.
    if (covers(this.#written, labels) && covers(endorsing.labels, labels)) return false;
    if (!endorsing.overtaken) this.#rise(labels, by);
    endorsing.overtaken = true;
    return true;
  }

  /** Covers another taint too, which is written down where it came from. */
  widen(labels: Labels, by: CallKey | undefined): void {
    if (!covers(this.#now, labels)) this.#rise(labels, by);
    if (this.#endorsing !== undefined && !covers(this.#endorsing.labels, labels))
      this.#endorsing.overtaken = true;
  }

  wrote(labels: Labels): void {
    if (!covers(this.#now, labels)) this.#rise(labels, this.#raisedBy);
    this.#written = join(this.#written, labels);
  }

  /** Takes a new version, for what an operator saw of it under another scope. */
  renumber(): void {
    this.#version = this.#versions.next();
  }

  /** As an earlier process wrote it down. */
  restore(labels: Labels, by: CallKey | undefined): void {
    this.#now = join(this.#now, labels);
    this.#written = join(this.#written, labels);
    this.#raisedBy = by;
  }

  /**
   * Begins to lower it, to labels that it covers; nothing is lower before `endorsed`. Returns the version that
   * the lowered taint will have.
   */
  endorse(labels: Labels): number {
    const version = this.#versions.next();
    this.#endorsing = { labels, version, overtaken: false };
    return version;
  }

  endorsed(written: boolean): void {
    const endorsing = this.#endorsing;
    this.#endorsing = undefined;
    if (!written || endorsing === undefined) return;
    this.#written = endorsing.labels;
    if (endorsing.overtaken) return;
    this.#now = endorsing.labels;
    this.#raisedBy = undefined;
    this.#version = endorsing.version;
  }

  #rise(labels: Labels, by: CallKey | undefined): void {
    this.#now = join(this.#now, labels);
    this.#raisedBy = by;
    this.#version = this.#versions.next();
  }
}

/** The highest labels that both cover. */
export function meet(a: Labels, b: Labels): Labels {
  return {
    class: classAbove(a.class, b.class) ? b.class : a.class,
    untrusted: a.untrusted && b.untrusted,
  };
}

/** Text that is its own canonical form: no empty, `.` or `..` segment, nothing to fold or to decode. */
const PLAIN_ITEM = /^[a-z0-9_-][a-z0-9_.-]*(?:\/[a-z0-9_-][a-z0-9_.-]*)*$/;
const JUDGEABLE_ITEM = /^[^\p{C}\p{Zl}\p{Zp}\\%]*$/u;
const ITEM_CHARS_MAX = 1024;

/**
 * One name for all spellings of an item, so that `/a//b`, `a/./b` and `/A/b` share what was put into
 * them. undefined: it can't be judged (`..`, an escape, a control, too long), so it may be any item.
 */
export function itemName(text: string): string | undefined {
  if (text.length > ITEM_CHARS_MAX) return undefined;
  if (PLAIN_ITEM.test(text)) return text;
  if (!text.isWellFormed() || !JUDGEABLE_ITEM.test(text)) return undefined;
  const segments = text.normalize("NFKC").toLowerCase().normalize("NFKC").split("/");
  if (segments.some((segment) => segment.trim() === "..")) return undefined;
  return segments.filter((segment) => segment !== "" && segment !== ".").join("/");
}
