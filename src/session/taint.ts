// Taints: labels that only rise, how much of them is written down, and what was put into stores.
// Invariant: a taint in memory covers the written one, and a rise is asked to be written until it is.

import { CLEAN, covers, join, type Labels } from "../base/labels.ts";
import type { CallKey } from "../store/records.ts";

export class Taint {
  #now: Labels = CLEAN;
  #written: Labels = CLEAN;
  #raisedBy: CallKey | undefined;

  get now(): Labels {
    return this.#now;
  }

  get written(): Labels {
    return this.#written;
  }

  /** The call that raised it last. */
  get raisedBy(): CallKey | undefined {
    return this.#raisedBy;
  }

  /** Whether the rise has still to be written: also where memory knows it and an earlier write of it failed. */
  raise(labels: Labels, by: CallKey): boolean {
    if (!covers(this.#now, labels)) {
      this.#now = join(this.#now, labels);
      this.#raisedBy = by;
    }
    return !covers(this.#written, labels);
  }

  /** Covers another taint too, which is written down where it came from. */
  widen(labels: Labels): void {
    this.#now = join(this.#now, labels);
  }

  wrote(labels: Labels): void {
    this.#now = join(this.#now, labels);
    this.#written = join(this.#written, labels);
  }
}

/** Items told apart in one store. */
const STORE_ITEMS_MAX = 65_536;

/** What was put into one store: into the whole of it, into its items, and all of that together. */
class StoreTaint {
  readonly whole = new Taint();
  readonly items = new Map<string, Taint>();
  /** Whole and items joined: what may come out where nobody says which item is read. */
  everything: Labels = CLEAN;

  of(item: string | undefined): Labels {
    if (item === undefined) return this.everything;
    const ofItem = this.items.get(item);
    return ofItem === undefined ? this.whole.now : join(this.whole.now, ofItem.now);
  }

  /** Past the bound an agent's endless new items go to the whole store, which only rises. */
  itemFor(item: string | undefined): { key: string | undefined; taint: Taint } {
    if (item === undefined) return { key: undefined, taint: this.whole };
    let taint = this.items.get(item);
    if (taint === undefined) {
      if (this.items.size >= STORE_ITEMS_MAX) return { key: undefined, taint: this.whole };
      taint = new Taint();
      this.items.set(item, taint);
    }
    return { key: item, taint };
  }
}

export class StoreTaints {
  readonly #stores = new Map<string, StoreTaint>();

  /** Labels of what may come out of an item; `undefined`: of any of them. */
  of(store: string, item: string | undefined): Labels {
    return this.#stores.get(store)?.of(item) ?? CLEAN;
  }

  /** Puts labels into an item, or into all (`undefined`). Returns what has still to be written. */
  raise(
    store: string,
    item: string | undefined,
    labels: Labels,
    by: CallKey,
  ): { key: string | undefined; labels: Labels } | undefined {
    if (covers(CLEAN, labels)) return undefined;
    const taints = this.#store(store);
    if (covers(taints.whole.written, labels)) return undefined;
    const { key, taint } = taints.itemFor(item);
    const unwritten = taint.raise(labels, by);
    taints.everything = join(taints.everything, labels);
    return unwritten ? { key, labels: taint.now } : undefined;
  }

  wrote(store: string, item: string | undefined, labels: Labels): void {
    this.#store(store).itemFor(item).taint.wrote(labels);
  }

  #store(name: string): StoreTaint {
    let store = this.#stores.get(name);
    if (store === undefined) {
      store = new StoreTaint();
      this.#stores.set(name, store);
    }
    return store;
  }
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
