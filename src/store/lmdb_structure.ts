// Whether the tree in a file of LMDB's holds together, looked at before the library maps it: it trusts its pages, and one
// damaged offset ends the process. Every page that the newest state of the file reaches is read once; values are not.
// Where somebody writes meanwhile it may find faults that there are not. Invariant: nothing that was read is used as a place before it was found to be one.

import { closeSync, openSync, readSync } from "node:fs";

/** Where a page has what; little-endian, as on every machine that this runs on. */
const PAGE = { number: 0, flags: 18, lower: 20, upper: 22, pages: 20, headBytes: 24 } as const;
/** Where the first two pages have what: each tells a state of the file, the later one holds. */
const META = {
  pageBytes: 48,
  freeTree: 48,
  mainTree: 96,
  lastPage: 144,
  transaction: 152,
  bytes: 160,
} as const;
const TREE = { depth: 6, entries: 32, root: 40 } as const;
/** Of an entry: sizes before the key, and what is behind it where the value has pages of its own. */
const NODE = { low: 0, high: 2, flags: 4, keyBytes: 6, headBytes: 8, elsewhereBytes: 24 } as const;
const BRANCH = 1;
const LEAF = 2;
const OVERFLOW = 4;
/** What else a page may be marked with while it is in memory stays above. */
const KINDS = 0xff;
const ELSEWHERE = 1;
const NO_ROOT = 0xffff_ffff_ffff_ffffn;
const DEPTH_MAX = 32;
const FIRST_TREE_PAGE = 2;
const PAGE_BYTES = { min: 4096, max: 65_536 } as const;

/** Of a file that `unfitFile` admits. undefined: it holds together; else a symbolic name for what does not. @throws what the system throws */
export function brokenStructure(path: string): string | undefined {
  const file = openSync(path, "r");
  try {
    new Walk(file).run();
    return undefined;
  } catch (error) {
    if (error instanceof Broken) return error.message;
    throw error;
  } finally {
    closeSync(file);
  }
}

/** Caught above, and nowhere else. */
class Broken extends Error {}

function expected(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Broken(what);
}

class Walk {
  readonly #file: number;
  readonly #pageBytes: number;
  readonly #meta: Buffer;
  readonly #lastPage: number;
  /** No page is reached twice. */
  readonly #reached = new Set<number>();

  constructor(file: number) {
    this.#file = file;
    this.#pageBytes = this.#bytes(0, META.bytes).readUInt32LE(META.pageBytes);
    const { min, max } = PAGE_BYTES;
    expected(this.#pageBytes >= min && this.#pageBytes <= max && this.#pageBytes % min === 0, "PAGE_SIZE");
    const metas = [this.#bytes(0, META.bytes), this.#bytes(this.#pageBytes, META.bytes)];
    const at = (meta: Buffer | undefined) => meta?.readBigUInt64LE(META.transaction) ?? 0n;
    this.#meta = (at(metas[1]) > at(metas[0]) ? metas[1] : metas[0]) ?? Buffer.alloc(META.bytes);
    this.#lastPage = numberAt(this.#meta, META.lastPage);
  }

  run(): void {
    for (const at of [META.freeTree, META.mainTree]) {
      const root = this.#meta.readBigUInt64LE(at + TREE.root);
      const depth = this.#meta.readUInt16LE(at + TREE.depth);
      expected(depth <= DEPTH_MAX && (root === NO_ROOT) === (depth === 0), "DEPTH");
      const entries = root === NO_ROOT ? 0 : this.#tree(asNumber(root), depth);
      expected(entries === numberAt(this.#meta, at + TREE.entries), "ENTRIES");
    }
  }

  /** Returns how many entries are below. */
  #tree(number: number, depth: number): number {
    this.#reach(number, 1);
    const page = this.#bytes(number * this.#pageBytes, this.#pageBytes);
    expected(numberAt(page, PAGE.number) === number, "PAGE_NUMBER");
    expected((page.readUInt16LE(PAGE.flags) & KINDS) === (depth > 1 ? BRANCH : LEAF), "PAGE_KIND");
    const nodes = this.#nodesOf(page);
    if (depth === 1) {
      for (const node of nodes) this.#leaf(node);
      return nodes.length;
    }
    return nodes.reduce((sum, node) => {
      expected(NODE.headBytes + node.readUInt16LE(NODE.keyBytes) <= node.length, "NODE");
      return sum + this.#tree(node.readUIntLE(NODE.low, 6), depth - 1);
    }, 0);
  }

  /** From the beginning of each to the end of the page. */
  #nodesOf(page: Buffer): readonly Buffer[] {
    const lower = page.readUInt16LE(PAGE.lower);
    const upper = page.readUInt16LE(PAGE.upper);
    const roomBytes = this.#pageBytes - PAGE.headBytes;
    expected(lower >= 2 && lower % 2 === 0 && lower <= upper && upper <= roomBytes, "PAGE_BOUNDS");
    return Array.from({ length: lower / 2 }, (_, i) => {
      const at = page.readUInt16LE(PAGE.headBytes + 2 * i);
      expected(at >= upper && at + NODE.headBytes <= roomBytes, "NODE");
      return page.subarray(PAGE.headBytes + at);
    });
  }

  #leaf(node: Buffer): void {
    const flags = node.readUInt16LE(NODE.flags);
    const keyBytes = node.readUInt16LE(NODE.keyBytes);
    const valueBytes = node.readUInt16LE(NODE.low) + node.readUInt16LE(NODE.high) * 0x1_0000;
    expected((flags === 0 || flags === ELSEWHERE) && keyBytes > 0, "NODE");
    const hereBytes = flags === ELSEWHERE ? NODE.elsewhereBytes : valueBytes;
    expected(NODE.headBytes + keyBytes + hereBytes <= node.length, "NODE");
    if (flags !== ELSEWHERE) return;
    const first = numberAt(node, NODE.headBytes + keyBytes);
    const pages = Math.floor((PAGE.headBytes - 1 + valueBytes) / this.#pageBytes) + 1;
    this.#reach(first, pages);
    const head = this.#bytes(first * this.#pageBytes, PAGE.headBytes);
    expected(numberAt(head, PAGE.number) === first, "PAGE_NUMBER");
    expected((head.readUInt16LE(PAGE.flags) & KINDS) === OVERFLOW, "PAGE_KIND");
    expected(head.readUInt32LE(PAGE.pages) === pages, "PAGE_BOUNDS");
    this.#bytes((first + pages) * this.#pageBytes - 1, 1); // it is all there
  }

  #reach(first: number, pages: number): void {
    expected(first >= FIRST_TREE_PAGE && first + pages - 1 <= this.#lastPage, "PAGE_NUMBER");
    for (let number = first; number < first + pages; number += 1) {
      expected(!this.#reached.has(number), "PAGE_TWICE");
      this.#reached.add(number);
    }
  }

  #bytes(at: number, length: number): Buffer {
    const bytes = Buffer.alloc(length);
    expected(readSync(this.#file, bytes, 0, length, at) === length, "CUT_SHORT");
    return bytes;
  }
}

function numberAt(bytes: Buffer, at: number): number {
  return asNumber(bytes.readBigUInt64LE(at));
}

/** A page number past what a number holds is no page. */
function asNumber(value: bigint): number {
  expected(value <= 0xffff_ffff_ffffn, "PAGE_NUMBER");
  return Number(value);
}
