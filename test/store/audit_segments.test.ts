import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EMPTY_HEAD, exportLine, readBlock, readExportLine } from "../../src/store/audit_chain.ts";
import { auditEvent } from "../../src/store/audit_event.ts";
import { type AuditBlocks, auditReader, type StoredBlock } from "../../src/store/audit_reader.ts";
import {
  type AuditBounds,
  type AuditState,
  emptyAuditState,
  planAudit,
  segmentBytesMax,
} from "../../src/store/audit_segments.ts";
import { decodeAuditState, encodeSeals, encodeTail } from "../../src/store/audit_state.ts";
import { AuditVerifier } from "../../src/store/audit_verify.ts";
import { verifyStored } from "../../src/store/audit_walk.ts";
import type { AuditHead } from "../../src/store/port.ts";

const DAY_MS = 86_400_000;
const NOW_MS = 1_700_000_000_000;
const YEAR: AuditBounds = { keepForMs: 365 * DAY_MS, bytesMax: 1_073_741_824 };
/** Segments of 64 KiB. */
const SMALL: AuditBounds = { keepForMs: 365 * DAY_MS, bytesMax: 300_000 };

/** An engine in a map; every transaction passes through the text that is stored of the state. */
class Blocks implements AuditBlocks {
  readonly blocks: StoredBlock[] = [];
  stored: AuditState = emptyAuditState(EMPTY_HEAD);
  reads = 0;

  write(records: number, nowMs: number, bounds: AuditBounds, note = ""): void {
    const events = Array.from({ length: records }, () => auditEvent("outcome", { role: "agent", note }));
    const { firstSeq, block, state, remove } = planAudit(this.stored, events, nowMs, bounds);
    if (remove !== undefined) {
      const kept = this.blocks.filter(
        (one) => one.firstSeq < remove.firstSeq || one.firstSeq > remove.lastSeq,
      );
      this.blocks.splice(0, Number.POSITIVE_INFINITY, ...kept);
    }
    if (block !== "") this.blocks.push({ firstSeq, block });
    const read = decodeAuditState(encodeTail(state), encodeSeals(state));
    if (!read.ok) throw new Error(read.fault);
    expect(read.value).toEqual(state);
    this.stored = read.value;
  }

  state(): AuditState {
    return this.stored;
  }

  blockUpTo(seq: bigint): StoredBlock | undefined {
    this.reads += 1;
    return this.blocks.findLast(({ firstSeq }) => firstSeq <= seq);
  }

  blockAbove(seq: bigint): StoredBlock | undefined {
    this.reads += 1;
    return this.blocks.find(({ firstSeq }) => firstSeq > seq);
  }

  verify(checkpoint?: AuditHead, alone = true) {
    return verifyStored(auditReader(this), { checkpoint, alone, pause: () => Promise.resolve() });
  }

  records(): Record<string, unknown>[] {
    const { lines } = auditReader(this);
    return lines(1n, Number.MAX_SAFE_INTEGER).map(({ text }) => JSON.parse(text) as Record<string, unknown>);
  }
}

describe("segments of the audit", () => {
  it("are sealed after a day, and the seal is a record that names what it covers", () => {
    const store = new Blocks();
    store.write(3, NOW_MS, YEAR);
    store.write(2, NOW_MS + DAY_MS - 1, YEAR);
    const { head } = store.stored;
    store.write(1, NOW_MS + DAY_MS, YEAR);
    expect(store.records().map(({ kind }) => kind)).toEqual([
      ...Array.from({ length: 5 }, () => "outcome"),
      "sealed",
      "outcome",
    ]);
    expect(store.records()[5]).toMatchObject({
      first_seq: "1",
      last_seq: "5",
      before: EMPTY_HEAD.hash,
      hash: head.hash,
      first_at_ms: NOW_MS,
      last_at_ms: NOW_MS + DAY_MS - 1,
    });
    expect(store.stored.seals).toHaveLength(1);
  });

  it("are sealed when they are full: a 64th of all that may be kept, at most 16 MiB", () => {
    const store = new Blocks();
    for (let batch = 0; batch < 10; batch += 1) store.write(100, NOW_MS, SMALL);
    const [seal] = store.stored.seals;
    expect(seal?.bytes).toBeGreaterThanOrEqual(segmentBytesMax(SMALL));
    expect(segmentBytesMax(YEAR)).toBe(16_777_216);
  });

  it("go whole, oldest first, when they are past their time; what is left verifies, and says what is gone", async () => {
    const store = new Blocks();
    const bounds = { ...YEAR, keepForMs: 3 * DAY_MS };
    for (let day = 0; day < 10; day += 1) store.write(4, NOW_MS + day * DAY_MS, bounds);
    const { firstSeq, finding } = await store.verify();
    expect(finding).toBeUndefined();
    expect(firstSeq).toBeGreaterThan(1n);
    const last = store.records().findLast(({ kind }) => kind === "removed");
    expect(last).toMatchObject({
      first_seq: "1",
      last_seq: (firstSeq - 1n).toString(),
      why: "keep_for",
      by: { role: "[host]" },
    });
    expect(store.stored.seals.map(({ removed }) => removed)).toEqual([true, false, false, false]);
  });

  it("go when all are too large, and never the one that is written to", async () => {
    const store = new Blocks();
    for (let batch = 0; batch < 100; batch += 1) store.write(100, NOW_MS + batch, SMALL);
    const bytes = store.blocks.reduce((sum, { block }) => sum + block.length, 0);
    expect(bytes).toBeLessThanOrEqual(SMALL.bytesMax + segmentBytesMax(SMALL));
    expect((await store.verify()).finding).toBeUndefined();
    const tight = { ...SMALL, bytesMax: 1 };
    for (let batch = 0; batch < 8; batch += 1) store.write(1, NOW_MS + 1000, tight);
    expect(store.stored.seals.map(({ removed }) => removed)).toEqual([true]);
    expect(store.blocks.length).toBeGreaterThan(0);
    expect((await store.verify()).finding).toBeUndefined();
  });

  it("keep the chain together whatever is written when: verify holds, from the store and from an export", async () => {
    const steps = fc.array(
      fc.record({
        records: fc.integer({ min: 0, max: 120 }),
        passMs: fc.constantFrom(0, 1000, DAY_MS / 3, DAY_MS * 2),
        note: fc.string({ unit: "binary", maxLength: 40 }),
      }),
      { maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (given, byTime) => {
        const store = new Blocks();
        const bounds = byTime
          ? { keepForMs: DAY_MS, bytesMax: 1 << 30 }
          : { keepForMs: 99 * DAY_MS, bytesMax: 70_000 };
        let nowMs = NOW_MS;
        for (const { records, passMs, note } of given) {
          nowMs += passMs;
          store.write(records, nowMs, bounds, note);
        }
        const verified = await store.verify(store.stored.head);
        expect(verified.finding).toBeUndefined();
        const verifier = new AuditVerifier({ begins: undefined, checkpoint: store.stored.head });
        for (const line of auditReader(store).lines(1n, Number.MAX_SAFE_INTEGER))
          verifier.add(readExportLine(line.seq, exportLine(line)));
        expect(verifier.end(store.stored.head)).toEqual(verified);
      }),
      { numRuns: 50 },
    );
  });

  it("that retention did not remove are missed: blocks deleted from the beginning, with or without forged notes", async () => {
    const store = new Blocks();
    for (let day = 0; day < 5; day += 1) store.write(60, NOW_MS + day * DAY_MS, YEAR);
    const [seal] = store.stored.seals;
    if (seal === undefined) throw new Error("nothing was sealed");
    const rest = store.blocks.filter(({ firstSeq }) => firstSeq > seal.lastSeq);
    store.blocks.splice(0, Number.POSITIVE_INFINITY, ...rest);
    expect((await store.verify()).finding).toMatchObject({ kind: "missing", seq: 1n });
    store.stored = { ...store.stored, seals: [{ ...seal, removed: true }, ...store.stored.seals.slice(1)] };
    expect((await store.verify()).finding).toMatchObject({ kind: "missing_start", seq: 1n });
  });

  it("that are gone can't be vouched for by an old checkpoint, but by the one of their very end", async () => {
    const store = new Blocks();
    for (let batch = 0; batch < 100; batch += 1) store.write(100, NOW_MS, SMALL);
    const [gone] = store.stored.seals;
    if (gone === undefined) throw new Error("nothing was removed");
    expect((await store.verify({ seq: gone.lastSeq, hash: gone.hash })).finding).toBeUndefined();
    expect((await store.verify({ seq: gone.lastSeq, hash: EMPTY_HEAD.hash })).finding?.kind).toBe(
      "checkpoint_differs",
    );
    expect((await store.verify({ seq: 1n, hash: EMPTY_HEAD.hash })).finding?.kind).toBe("checkpoint_removed");
  });
});

describe("reading the audit", () => {
  it("gives every record once and in order, however short the stretches are", () => {
    const store = new Blocks();
    for (const records of [1, 7, 1, 30, 2]) store.write(records, NOW_MS, YEAR);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), (linesMax) => {
        const reader = auditReader(store);
        const texts: string[] = [];
        for (let seq = 1n; ; ) {
          const lines = reader.lines(seq, linesMax);
          const last = lines.at(-1);
          if (last === undefined) break;
          expect(lines.length).toBeLessThanOrEqual(linesMax);
          texts.push(...lines.map(({ text }) => text));
          seq = last.seq + 1n;
        }
        const whole = store.blocks.flatMap(({ firstSeq, block }) => readBlock(firstSeq, block));
        expect(texts).toEqual(whole.map(({ text }) => text));
      }),
    );
  });

  it("takes a long block apart once, though it is read in slices", () => {
    const store = new Blocks();
    store.write(5000, NOW_MS, YEAR);
    const reader = auditReader(store);
    for (let seq = 1n; seq <= 5000n; seq += 100n) expect(reader.lines(seq, 100)).toHaveLength(100);
    expect(store.reads).toBeLessThan(10);
  });

  it("verifies up to where the chain ended when it began, while records go on coming and old ones go", async () => {
    const store = new Blocks();
    for (let batch = 0; batch < 40; batch += 1) store.write(100, NOW_MS, SMALL);
    let more = 60;
    const verified = await verifyStored(auditReader(store), {
      checkpoint: undefined,
      alone: false,
      pause: async () => {
        if (more-- > 0) store.write(100, NOW_MS, SMALL);
      },
    });
    expect(verified.finding).toBeUndefined();
  });

  it("refuses notes on the chain that are damaged, instead of beginning a new one", () => {
    const store = new Blocks();
    store.write(3, NOW_MS, YEAR);
    const tail = encodeTail(store.stored);
    for (const broken of ["", "null", "[]", tail.slice(0, -1), tail.replace('"seq":"3"', '"seq":"x"')])
      expect(decodeAuditState(broken, undefined)).toMatchObject({ ok: false });
    expect(decodeAuditState(undefined, encodeSeals(store.stored))).toMatchObject({ ok: false });
    expect(decodeAuditState(undefined, undefined)).toEqual({ ok: true, value: emptyAuditState(EMPTY_HEAD) });
  });
});
