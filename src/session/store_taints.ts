// What was put into the stores behind tools: into the whole of each, and into its items where they are told
// apart. Invariant: what may come out of an item covers all that was put where it may come from, since
// the last endorsement of it.

import { CLEAN, covers, join, type Labels } from "../base/labels.ts";
import type { CallKey } from "../store/records.ts";
import { Taint, type Versions } from "./taint.ts";

/** Items told apart in one store. */
const STORE_ITEMS_MAX = 65_536;

/** One store. */
export class StoreTaint {
  readonly whole: Taint;
  readonly items = new Map<string, Taint>();
  readonly #versions: Versions;
  /** Whole and items joined: what may come out where nobody says which item is read. */
  #everything: Labels = CLEAN;
  /** 0: not changed in this run. */
  #version = 0;

  constructor(versions: Versions) {
    this.whole = new Taint(versions);
    this.#versions = versions;
  }

  of(item: string | undefined): Labels {
    if (item === undefined) return this.#everything;
    const ofItem = this.items.get(item);
    return ofItem === undefined ? this.whole.now : join(this.whole.now, ofItem.now);
  }

  /** Of an item: changes with it and with the whole. Of the store: with anything in it. */
  version(item: string | undefined): number {
    if (item === undefined) return this.#version || this.#versions.first;
    return Math.max(this.whole.version, this.items.get(item)?.version ?? 0);
  }

  raise(
    item: string | undefined,
    labels: Labels,
    by: CallKey,
  ): { key: string | undefined; labels: Labels } | undefined {
    // An endorsement of the whole lowers its items too, so what is covered by the whole needs no item.
    if (!this.whole.isEndorsing && covers(this.whole.written, labels)) return undefined;
    const { key, taint } = this.#itemFor(item);
    const { version } = taint;
    const unwritten = taint.raise(labels, by);
    if (taint.version !== version) this.#version = taint.version;
    this.#everything = join(this.#everything, labels);
    return unwritten ? { key, labels: taint.now } : undefined;
  }

  wrote(item: string | undefined, labels: Labels): void {
    this.#itemFor(item).taint.wrote(labels);
    this.#everything = join(this.#everything, labels);
  }

  restore(item: string | undefined, labels: Labels, by: CallKey | undefined): void {
    this.#itemFor(item).taint.restore(labels, by);
    this.#everything = join(this.#everything, labels);
  }

  /** Something in it has been lowered. */
  lowered(version: number): void {
    this.#version = Math.max(this.#version, version);
    let everything = this.whole.now;
    for (const item of this.items.values()) everything = join(everything, item.now);
    this.#everything = everything;
  }

  /** Past the bound an agent's endless new items go to the whole store, which only rises. */
  #itemFor(item: string | undefined): { key: string | undefined; taint: Taint } {
    if (item === undefined) return { key: undefined, taint: this.whole };
    let taint = this.items.get(item);
    if (taint === undefined) {
      if (this.items.size >= STORE_ITEMS_MAX) return { key: undefined, taint: this.whole };
      taint = new Taint(this.#versions);
      this.items.set(item, taint);
    }
    return { key: item, taint };
  }
}

export class StoreTaints {
  readonly #stores = new Map<string, StoreTaint>();
  readonly #versions: Versions;

  constructor(versions: Versions) {
    this.#versions = versions;
  }

  find(store: string): StoreTaint | undefined {
    return this.#stores.get(store);
  }

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
    return covers(CLEAN, labels) ? undefined : this.#store(store).raise(item, labels, by);
  }

  wrote(store: string, item: string | undefined, labels: Labels): void {
    this.#store(store).wrote(item, labels);
  }

  restore(store: string, item: string | undefined, labels: Labels, by: CallKey | undefined): void {
    this.#store(store).restore(item, labels, by);
  }

  #store(name: string): StoreTaint {
    let store = this.#stores.get(name);
    if (store === undefined) {
      store = new StoreTaint(this.#versions);
      this.#stores.set(name, store);
    }
    return store;
  }
}
