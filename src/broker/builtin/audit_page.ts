// One page of an export of the audit: the records that fit, in order or the newest first, and where the next page
// goes on. Labels: records name sessions and tools as their callers chose them, and opted-in arguments; so a page
// carries the taint that its records tell of, and the present one of every role that they name.
// Invariant: one turn, and one page, look at a bounded number of records, whether they fit or not.

import { CLEAN, DATA_CLASSES, join, type Labels } from "../../base/labels.ts";
import { exportLine } from "../../store/audit_chain.ts";
import { SLICE_RECORDS } from "../../store/audit_walk.ts";
import type { AuditLine } from "../../store/port.ts";
import { HOST } from "../../store/records.ts";
import { type AuditFilter, matchesFilter, quickLook, readNames, recordAtMs } from "../audit_filter.ts";
import type { Core } from "../core.ts";
import { grantWordsLabels, writerLabels } from "./grant_words.ts";

/** Of one answer's lines, which have to fit into a frame with room for escapes. */
const ANSWER_BYTES_MAX = 393_216;
/** Records looked at for one answer, whether they fit or not. */
const SCANNED_MAX = 65_536;

/** One answer's lines, and where the next one goes on. */
export class AuditPage {
  readonly lines: string[] = [];
  labels: Labels = CLEAN;
  nextSeq: bigint | undefined;
  readonly #core: Core;
  readonly #filter: AuditFilter;
  readonly #mayFit: (record: string) => boolean;
  readonly #linesMax: number;
  #bytes = 0;

  constructor(core: Core, filter: AuditFilter, linesMax: number) {
    this.#core = core;
    this.#filter = filter;
    this.#mayFit = quickLook(filter);
    this.#linesMax = linesMax;
  }

  /** In order, from that record on. `pause` lets others run. */
  async fill(from: bigint, pause: () => Promise<void>): Promise<void> {
    let seq = this.#skipOld(from);
    for (let scanned = 0; scanned < SCANNED_MAX; await pause()) {
      const lines = this.#core.store.audit.lines(seq, SLICE_RECORDS);
      const full = lines.find((line) => !this.#take(line));
      const last = lines.at(-1);
      if (full !== undefined || last === undefined) {
        this.nextSeq = full?.seq;
        return;
      }
      scanned += lines.length;
      seq = last.seq + 1n;
    }
    this.nextSeq = seq;
  }

  /** The newest first, from the last record before that one on. */
  async fillBackward(before: bigint, pause: () => Promise<void>): Promise<void> {
    let seq = this.#skipNew(before);
    for (let scanned = 0; scanned < SCANNED_MAX; await pause()) {
      const lines = this.#core.store.audit.linesBefore(seq, SLICE_RECORDS);
      const last = lines.at(-1);
      if (last === undefined) return;
      for (const line of lines) {
        if (this.#isOlder(line)) return; // as are all before it
        if (!this.#take(line)) {
          this.nextSeq = line.seq + 1n;
          return;
        }
      }
      scanned += lines.length;
      seq = last.seq;
    }
    this.nextSeq = seq;
  }

  /** Segments that began after the time asked for are not read. */
  #skipNew(before: bigint): bigint {
    let seq = before;
    for (const { firstSeq, firstAtMs } of this.#core.store.audit.seals().toReversed()) {
      if (firstAtMs >= this.#filter.untilMs && firstSeq < seq) seq = firstSeq;
    }
    return seq;
  }

  /** Written before the time asked for. */
  #isOlder({ text }: AuditLine): boolean {
    const { sinceMs } = this.#filter;
    return sinceMs > 0 && (recordAtMs(text) ?? sinceMs) < sinceMs;
  }

  /** Segments that ended before the time asked for are not read. */
  #skipOld(from: bigint): bigint {
    let seq = from;
    for (const { lastSeq, lastAtMs } of this.#core.store.audit.seals()) {
      if (lastAtMs < this.#filter.sinceMs && lastSeq >= seq) seq = lastSeq + 1n;
    }
    return seq;
  }

  /** false: there is no room for it any more. */
  #take(line: AuditLine): boolean {
    if (!this.#mayFit(line.text)) return true;
    const names = readNames(line.text);
    if (!matchesFilter(names, this.#filter)) return true;
    const bytes = 2 * line.text.length; // quotes are escaped once more
    if (this.lines.length >= this.#linesMax || (this.#bytes > 0 && this.#bytes + bytes > ANSWER_BYTES_MAX))
      return false;
    this.#bytes += bytes;
    this.lines.push(exportLine(line));
    this.labels = join(this.labels, this.#labelsOf(names));
    return true;
  }

  #labelsOf({ role, taint, writer, grants }: ReturnType<typeof readNames>): Labels {
    const told = DATA_CLASSES.find((name) => name === taint?.class);
    const then: Labels = told === undefined ? CLEAN : { class: told, untrusted: taint?.untrusted !== false };
    const words = join(grantWordsLabels(this.#core, grants), this.#labelsOfWriter(writer));
    const quoted = join(then, words);
    return role === undefined ? quoted : join(quoted, this.#core.sessions.roleTaint(role));
  }

  #labelsOfWriter(writer: string | undefined): Labels {
    return writer === undefined || writer === HOST.role ? CLEAN : writerLabels(this.#core, writer);
  }
}
