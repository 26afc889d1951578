import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EMPTY_HEAD, exportLine, readBlock, readExportLine, sealBlock } from "../../src/store/audit_chain.ts";
import { auditEvent } from "../../src/store/audit_event.ts";
import { AuditVerifier, type Verified } from "../../src/store/audit_verify.ts";
import type { AuditHead } from "../../src/store/port.ts";

const NOW_MS = 1_700_000_000_000;

function chain(records: number): { readonly lines: readonly string[]; readonly head: AuditHead } {
  const events = Array.from({ length: records }, (_, index) =>
    auditEvent("outcome", { role: "agent", session: `s${index % 7}`, note: "é\u2028", bytes: index * 13 }),
  );
  const { block, head } = sealBlock(EMPTY_HEAD, events, NOW_MS);
  return { lines: block.split(/(?<=\n)/), head };
}

function verify(text: string, head: AuditHead | undefined, checkpoint?: AuditHead): Verified {
  const verifier = new AuditVerifier({ begins: EMPTY_HEAD, checkpoint });
  for (const line of readBlock(1n, text)) verifier.add(line);
  return verifier.end(head);
}

/** A file tells neither where the chain begins nor where it ends. */
function verifyFile(lines: readonly string[], checkpoint?: AuditHead): Verified {
  const verifier = new AuditVerifier({ begins: undefined, checkpoint });
  for (const [index, line] of lines.entries()) verifier.add(readExportLine(BigInt(index + 1), line));
  return verifier.end(undefined);
}

const size = fc.integer({ min: 2, max: 40 });
const sized = size.chain((records) => fc.tuple(fc.constant(records), fc.nat(records - 1)));
const twoOf = size
  .chain((records) => fc.tuple(fc.constant(records), fc.nat(records - 1), fc.nat(records - 1)))
  .filter(([, a, b]) => a !== b);

describe("a chain of audit records", () => {
  it("can be computed with SHA-256 alone: over the hash before as text and the record's text", () => {
    const { lines } = chain(3);
    let hash = "0".repeat(64);
    for (const line of lines) {
      const text = line.slice(65, -1);
      hash = createHash("sha256").update(hash).update(text).digest("hex");
      expect(line).toBe(`${hash} ${text}\n`);
    }
  });

  it("is printable ASCII, one record a line, and each record is JSON that keeps its texts", () => {
    const { lines } = chain(1);
    expect(lines[0]).toMatch(/^[\x20-\x7e]+\n$/);
    expect(JSON.parse(lines[0]?.slice(65) ?? "")).toEqual({
      seq: "1",
      at_ms: NOW_MS,
      kind: "outcome",
      role: "agent",
      session: "s0",
      note: "é\u2028",
      bytes: 0,
    });
  });

  it("goes on over blocks as in one", () => {
    const events = Array.from({ length: 6 }, (_, index) => auditEvent("part", { index }));
    const whole = sealBlock(EMPTY_HEAD, events, NOW_MS);
    const first = sealBlock(EMPTY_HEAD, events.slice(0, 2), NOW_MS);
    const second = sealBlock(first.head, events.slice(2), NOW_MS);
    expect(first.block + second.block).toBe(whole.block);
    expect(second.head).toEqual(whole.head);
  });
});

describe("verifying a chain", () => {
  it("holds as written, with its head and any checkpoint of it", () => {
    fc.assert(
      fc.property(sized, ([records, index]) => {
        const { lines, head } = chain(records);
        const line = readBlock(1n, lines.join(""))[index];
        const verified = verify(lines.join(""), head, line);
        expect(verified).toEqual({ records, firstSeq: 1n, lastSeq: BigInt(records), finding: undefined });
      }),
    );
  });

  it("of nothing at all finds nothing wrong", () => {
    expect(verify("", EMPTY_HEAD)).toEqual({ records: 0, firstSeq: 0n, lastSeq: 0n, finding: undefined });
  });

  it("finds any single altered byte, and names its record", () => {
    fc.assert(
      fc.property(sized, fc.nat(), fc.integer({ min: 0, max: 255 }), ([records, index], at, byte) => {
        const { lines, head } = chain(records);
        const bytes = Buffer.from(lines.join(""), "latin1");
        const start = lines.slice(0, index).join("").length;
        const place = start + (at % (lines[index]?.length ?? 1));
        fc.pre(bytes[place] !== byte);
        bytes[place] = byte;
        const { finding } = verify(bytes.toString("latin1"), head);
        const isLastLineFeed = place === bytes.length - 1;
        expect(finding?.kind).toBe(isLastLineFeed ? "torn" : "altered");
        expect(finding?.seq).toBe(BigInt(index + 1));
        expect(finding?.sentence).toContain(`${index + 1}`);
      }),
      { numRuns: 1000 },
    );
  });

  it("finds records taken out of the middle, and names them", () => {
    fc.assert(
      fc.property(twoOf, ([records, a, b]) => {
        const { lines, head } = chain(records);
        const [first, last] = [Math.min(a, b), Math.max(a, b) - 1];
        const rest = lines.filter((_, index) => index < first || index > last);
        const { finding } = verify(rest.join(""), head);
        expect(finding).toMatchObject({ kind: "missing", seq: BigInt(first + 1) });
      }),
    );
    const { lines, head } = chain(9);
    expect(verify(lines.toSpliced(3, 1).join(""), head).finding?.sentence).toBe(
      "Record 4 is missing: record 5 follows record 3.",
    );
    expect(verify(lines.toSpliced(3, 2).join(""), head).finding?.sentence).toBe(
      "Records 4 to 5 are missing: record 6 follows record 3.",
    );
  });

  it("finds a doubled record wherever its copy stands behind it", () => {
    fc.assert(
      fc.property(twoOf, ([records, a, b]) => {
        const { lines, head } = chain(records);
        const [from, to] = [Math.min(a, b), Math.max(a, b)];
        const doubled = lines.toSpliced(to, 0, lines[from] ?? "");
        expect(verify(doubled.join(""), head).finding).toMatchObject({
          kind: "doubled",
          seq: BigInt(from + 1),
        });
      }),
    );
  });

  it("finds two records that changed places", () => {
    fc.assert(
      fc.property(twoOf, ([records, a, b]) => {
        const { lines, head } = chain(records);
        const swapped = lines.with(a, lines[b] ?? "").with(b, lines[a] ?? "");
        const seq = BigInt(Math.min(a, b) + 1);
        expect(verify(swapped.join(""), head).finding).toMatchObject({ kind: "reordered", seq });
      }),
    );
  });

  it("finds a cut tail with the head that the store notes", () => {
    fc.assert(
      fc.property(sized, ([records, kept]) => {
        const { lines, head } = chain(records);
        const { finding } = verify(lines.slice(0, kept).join(""), head);
        expect(finding).toMatchObject({ kind: "cut_tail", seq: BigInt(kept + 1) });
      }),
    );
  });

  it("finds a cut tail with a checkpoint also where the notes were changed with it", () => {
    fc.assert(
      fc.property(sized, ([records, kept]) => {
        const { lines, head } = chain(records);
        const shorter = chain(kept);
        const { finding } = verify(lines.slice(0, kept).join(""), shorter.head, head);
        expect(finding).toMatchObject({ kind: "cut_tail", seq: BigInt(kept + 1) });
        expect(finding?.sentence).toContain("checkpoint");
      }),
    );
  });

  it("finds with a checkpoint that all of the chain was written anew", () => {
    const { lines, head } = chain(5);
    const other = sealBlock(
      EMPTY_HEAD,
      [1, 2, 3, 4, 5].map((index) => auditEvent("outcome", { forged: index })),
      NOW_MS,
    );
    expect(verify(other.block, other.head, head).finding).toMatchObject({
      kind: "checkpoint_differs",
      seq: 5n,
    });
    expect(verify(lines.join(""), other.head).finding).toMatchObject({ kind: "head_differs", seq: 5n });
  });

  it("finds records behind the head that the store notes", () => {
    const { lines } = chain(5);
    expect(verify(lines.join(""), chain(3).head).finding).toMatchObject({ kind: "head_differs", seq: 5n });
  });

  it("names a torn last record, wherever it was cut", () => {
    fc.assert(
      fc.property(size, fc.nat(), (records, at) => {
        const { lines, head } = chain(records);
        const last = lines.at(-1) ?? "";
        const cut = last.slice(0, 1 + (at % (last.length - 2)));
        const { finding } = verify(lines.slice(0, -1).join("") + cut, head);
        expect(finding).toMatchObject({ kind: "torn", seq: BigInt(records) });
      }),
    );
  });

  it("finds a number that is not the next though every hash holds", () => {
    const first = sealBlock(EMPTY_HEAD, [auditEvent("part", {})], NOW_MS);
    const wrong = sealBlock({ ...first.head, seq: 7n }, [auditEvent("part", {})], NOW_MS);
    expect(verify(first.block + wrong.block, wrong.head).finding).toMatchObject({
      kind: "wrong_seq",
      seq: 2n,
    });
  });

  it("takes an export for what it is: every byte of it counts, also without anybody's notes", () => {
    fc.assert(
      fc.property(sized, fc.nat(), fc.integer({ min: 0x20, max: 0x7e }), ([records, index], at, byte) => {
        const { lines, head } = chain(records);
        const exported = readBlock(1n, lines.join("")).map(exportLine);
        expect(verifyFile(exported, head).finding).toBeUndefined();
        const line = Buffer.from(exported[index] ?? "", "latin1");
        const place = at % line.length;
        fc.pre(line[place] !== byte);
        line[place] = byte;
        const { finding } = verifyFile(exported.with(index, line.toString("latin1")), head);
        expect(["altered", "torn"]).toContain(finding?.kind);
        expect(finding?.seq).toBe(BigInt(index + 1));
      }),
      { numRuns: 500 },
    );
  });

  it("finds that an export's beginning is gone, since no record accounts for it", () => {
    const { lines } = chain(5);
    const exported = readBlock(1n, lines.join("")).map(exportLine);
    expect(verifyFile(exported.slice(2)).finding).toMatchObject({ kind: "missing_start", seq: 1n });
  });
});
