// The audit from one record on, as it grows, to a collector: pages in, spans out, and the place remembered when the
// spans are taken. Nothing is read beyond what was sent, so a collector that is away for a day costs no memory, and the
// audit keeps what it will be told.
// Invariant: the place that is saved is never beyond what the collector has taken (or refused for good); spans that are sent
// a second time, after a crash in between, have the same ids.

import { fault, ok, type Result } from "../../base/faults.ts";
import { type AuditEntry, readEntry } from "./audit_line.ts";
import { AuditSpans } from "./audit_spans.ts";
import type { OpenCall } from "./call_span.ts";
import type { Span } from "./otlp.ts";
import type { Sent } from "./sender.ts";

/** One page of the audit from a record on (itself, where it is kept). */
export interface AuditLines {
  readonly lines: readonly string[];
  /** There is more now. */
  readonly more: boolean;
}

export interface FollowPorts {
  /** `later`: the broker can't answer now. */
  readonly page: (fromSeq: bigint) => Promise<AuditLines | "later">;
  /** The number of the last record there is. */
  readonly head: () => Promise<bigint | "later">;
  readonly send: (spans: readonly Span[], stop: AbortSignal) => Promise<Result<Sent | "stopped">>;
  /** Called when everything up to there is dealt with. The fault is a sentence. */
  readonly save: (place: Place) => Promise<Result<void>>;
  /** Between two looks at an audit that has not grown. */
  readonly pause: () => Promise<void>;
  readonly say: (sentence: string) => void;
}

/** Where the reading stands. JSON holds it. */
export interface Place {
  /** The record that was read last, with its hash: whether the chain is still the same shows in it. */
  readonly seq: string;
  readonly hash: string;
  /** Calls that had not ended there. */
  readonly open: readonly OpenCall[];
}

/** Where to begin: at a place that was saved, at a record, or with what is still to come. */
export type Start =
  | { readonly at: "place"; readonly place: Place }
  | { readonly at: "record"; readonly seq: bigint }
  | { readonly at: "end" };

export interface Told {
  taken: number;
  dropped: number;
  /** Records that were gone before they were read. */
  missed: bigint;
}

const SPANS_AT_ONCE = 512;

/** Until told to stop. The fault ends it: a sentence. */
export async function followAudit(
  start: Start,
  ports: FollowPorts,
  told: Told,
  stop: AbortSignal,
): Promise<Result<void>> {
  const follower = new Follower(ports, told, stop);
  return follower.run(start);
}

class Follower {
  readonly #ports: FollowPorts;
  readonly #told: Told;
  readonly #stop: AbortSignal;
  #spans = new AuditSpans();
  /** The last record that was read; undefined: none was. */
  #last: { readonly seq: bigint; readonly hash: string } | undefined;
  /** Where that is undefined: the first to read. */
  #first = 1n;
  #isSaved = true;

  constructor(ports: FollowPorts, told: Told, stop: AbortSignal) {
    this.#ports = ports;
    this.#told = told;
    this.#stop = stop;
  }

  async run(start: Start): Promise<Result<void>> {
    if (start.at === "place") {
      this.#spans = new AuditSpans(start.place.open);
      this.#last = { seq: BigInt(start.place.seq), hash: start.place.hash };
    } else if (start.at === "record") this.#first = start.seq;
    else await this.#beginAtEnd();
    this.#ports.say(`following the audit from record ${this.#next} on`);
    while (!this.#stop.aborted) {
      const page = await this.#ports.page(this.#last?.seq ?? this.#first);
      const went = page === "later" ? ok(undefined) : await this.#take(page);
      if (!went.ok) return went;
      if (page === "later" || !page.more) await this.#ports.pause();
    }
    return ok(undefined);
  }

  /** The number of the record that comes now. */
  get #next(): bigint {
    return this.#last === undefined ? this.#first : this.#last.seq + 1n;
  }

  async #beginAtEnd(): Promise<void> {
    for (let head = await this.#ports.head(); !this.#stop.aborted; head = await this.#ports.head()) {
      if (head === "later") {
        await this.#ports.pause();
        continue;
      }
      this.#last = undefined;
      this.#first = head + 1n;
      return this.#remember(head);
    }
  }

  /** Where the end is now is a place too: what comes while nobody follows is told of the next time. */
  async #remember(head: bigint): Promise<void> {
    const page = head === 0n ? "later" : await this.#ports.page(head);
    const [line] = page === "later" ? [] : page.lines;
    const entry = line === undefined ? undefined : readEntry(line);
    if (entry?.seq !== head) return;
    this.#last = { seq: head, hash: entry.hash };
    this.#isSaved = false;
  }

  async #take(page: AuditLines): Promise<Result<void>> {
    const entries: AuditEntry[] = [];
    for (const line of page.lines) {
      const entry = readEntry(line);
      if (entry === undefined) return fault("the broker sent a line that is no audit record");
      entries.push(entry);
    }
    if (!this.#continues(entries)) return this.#beginAnew();
    for (const entry of entries) this.#read(entry);
    if (!page.more) this.#spans.caughtUp();
    return this.#deliver();
  }

  /** Whether the record that was read last is where it was. */
  #continues(entries: readonly AuditEntry[]): boolean {
    const last = this.#last;
    const [first] = entries;
    if (last === undefined) return true;
    if (first === undefined || first.seq < last.seq) return false;
    return first.seq > last.seq || first.hash === last.hash; // later: the ones between were removed
  }

  async #beginAnew(): Promise<Result<void>> {
    this.#ports.say(
      "the audit is another one than before (was a backup put back?): going on with what comes from now on",
    );
    this.#spans.giveUp();
    const sent = await this.#deliver();
    if (sent.ok) await this.#beginAtEnd();
    return sent;
  }

  #read(entry: AuditEntry): void {
    const expected = this.#next;
    if (entry.seq < expected) return; // the one that was read last
    if (entry.seq > expected) {
      const gone = entry.seq - expected;
      this.#told.missed += gone;
      this.#ports.say(`${gone} audit records were removed before they were read`);
    }
    this.#spans.take(entry);
    this.#last = { seq: entry.seq, hash: entry.hash };
    this.#isSaved = false;
  }

  async #deliver(): Promise<Result<void>> {
    const spans = this.#spans.finished();
    for (let at = 0; at < spans.length; at += SPANS_AT_ONCE) {
      const sent = await this.#ports.send(spans.slice(at, at + SPANS_AT_ONCE), this.#stop);
      if (!sent.ok) return sent;
      if (sent.value === "stopped") return ok(undefined); // not saved: read again the next time
      this.#told.taken += sent.value.taken;
      this.#told.dropped += sent.value.dropped;
    }
    if (this.#isSaved || this.#last === undefined) return ok(undefined);
    this.#isSaved = true;
    return this.#ports.save({
      seq: this.#last.seq.toString(),
      hash: this.#last.hash,
      open: this.#spans.open,
    });
  }
}
