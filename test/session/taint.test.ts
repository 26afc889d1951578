import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { covers, DATA_CLASSES, type Labels } from "../../src/base/labels.ts";
import { StoreTaints } from "../../src/session/store_taints.ts";
import { itemName, Taint, Versions } from "../../src/session/taint.ts";

const BY = { role: "agent", session: "s", call: 1n };
const SECRET: Labels = { class: "confidential", untrusted: true };
const labels = fc.record({ class: fc.constantFrom(...DATA_CLASSES), untrusted: fc.boolean() });

describe("a taint", () => {
  it("only rises, and asks to be written until it is", () => {
    fc.assert(
      fc.property(fc.array(fc.record({ labels, written: fc.boolean() })), (rises) => {
        const taint = new Taint(new Versions());
        for (const rise of rises) {
          const before = taint.now;
          const asked = taint.raise(rise.labels, BY);
          expect(covers(taint.now, before) && covers(taint.now, rise.labels)).toBe(true);
          expect(asked).toBe(!covers(taint.written, rise.labels));
          if (rise.written) taint.wrote(taint.now);
          expect(covers(taint.now, taint.written)).toBe(true);
        }
      }),
    );
  });
});

describe("what comes out of a store", () => {
  it("covers whatever was put where it may come from", () => {
    const item = fc.option(fc.constantFrom("a", "b", "c"), { nil: undefined });
    fc.assert(
      fc.property(fc.array(fc.record({ item, labels })), item, (puts, read) => {
        const stores = new StoreTaints(new Versions());
        for (const put of puts) stores.raise("store", put.item, put.labels, BY);
        for (const put of puts) {
          const reaches = put.item === undefined || read === undefined || put.item === read;
          if (reaches) expect(covers(stores.of("store", read), put.labels)).toBe(true);
        }
        expect(stores.of("other", read)).toEqual({ class: "public", untrusted: false });
      }),
    );
  });

  it("stays bounded when an agent names endless items: past the bound all of them are tainted", () => {
    const stores = new StoreTaints(new Versions());
    for (let i = 0; i < 65_536; i += 1) stores.raise("store", `i${i}`, SECRET, BY);
    expect(stores.of("store", "new")).toEqual({ class: "public", untrusted: false });
    expect(stores.raise("store", "one-more", SECRET, BY)).toEqual({ key: undefined, labels: SECRET });
    expect(stores.of("store", "new")).toEqual(SECRET);
    expect(stores.of("elsewhere", "new")).toEqual({ class: "public", untrusted: false });
  });
});

describe("the name of an item", () => {
  it.each([
    ["a/b", "a/b"],
    ["/a/b", "a/b"],
    ["//a/./b/", "a/b"],
    ["/A/B", "a/b"],
    ["/\uff41/b", "a/b"],
    ["inbox:5", "inbox:5"],
    ["/a/../b", undefined],
    ["..", undefined],
    ["/a/%2e%2e/b", undefined],
    ["a\\b", undefined],
    ["a\0b", undefined],
    ["a\u200bb", undefined],
    ["a\ud800b", undefined],
    ["x".repeat(1025), undefined],
  ])("of %j is %j", (text, name) => {
    expect(itemName(text)).toBe(name);
  });

  it("is its own name", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
        const name = itemName(text);
        if (name !== undefined) expect(itemName(name)).toBe(name);
      }),
    );
  });
});
