// Which calls are open, and which have an answer that no client has heard. A client that asks again what it has asked
// already joins that call; the broker then answers from its record. Invariant: a call whose answer was not delivered is
// found by the next request that equals it, and by that one alone; one whose answer was delivered is never found again.

import { newCallId } from "../../../client/call_ids.ts";
import type { Caller } from "../../../client/caller.ts";
import type { Effects } from "../../../client/effects.ts";
import { CallgateError } from "../../../client/error.ts";
import { noticeIn } from "../progress.ts";
import { type Answer, type AskedCall, OpenCall } from "./open_call.ts";

export interface BookSettings {
  readonly caller: Pick<Caller, "call">;
  readonly session: string;
  readonly effects: Pick<Effects, "epochMs" | "monotonicMs" | "random">;
}

/** Calls that are open at the broker at once; more are told so. */
export const OPEN_CALLS_MAX = 256;
const KEPT_MAX = 512;
const KEPT_CHARS_MAX = 8_388_608;
/**
 * How long an answer that nobody heard is kept for the one who asks again. To run a `read` twice does no harm, and an old
 * answer to a new question might.
 */
export const KEPT_MS = { read: 120_000, other: 3_600_000 } as const;
/**
 * An equal request while the first still waits is most often a second call that is meant so. After this long it is a
 * client whose time was over and that did not say so.
 */
export const SILENT_RETRY_MS = 10_000;

interface Kept {
  readonly asked: AskedCall;
  readonly id: bigint;
  readonly untilMs: number;
}

export class CallBook {
  readonly #settings: BookSettings;
  readonly #open = new Map<bigint, OpenCall>();
  readonly #openByKey = new Map<string, OpenCall[]>();
  #kept: Kept[] = [];

  constructor(settings: BookSettings) {
    this.#settings = settings;
  }

  get openCount(): number {
    return this.#open.size;
  }

  get keptCount(): number {
    return this.#kept.length;
  }

  isOpen(key: string): boolean {
    return this.#openByKey.has(key);
  }

  /** The call that this is, or a new one; undefined: too many are open. Whoever has it gives it back with `leave` or `delivered`. */
  async take(asked: AskedCall): Promise<OpenCall | undefined> {
    for (;;) {
      const equal = this.#openByKey.get(asked.key) ?? [];
      const known = equal.find((one) => this.#isMeant(one));
      if (known !== undefined) return joined(known);
      const ending = equal.find((one) => one.calledOff);
      if (ending === undefined) break;
      await new Promise<void>((resolve) => ending.listen(resolve));
    }
    if (this.#open.size >= OPEN_CALLS_MAX) return undefined;
    const kept = this.#takeKept((one) => one.asked.key === asked.key);
    return this.#begin(kept?.asked ?? asked, kept?.id);
  }

  /** The very call of that id, whether it is open or has ended. */
  takeById(asked: AskedCall, id: bigint): OpenCall | undefined {
    const known = this.#open.get(id);
    if (known !== undefined && known.asked.key === asked.key) return joined(known);
    if (this.#open.size >= OPEN_CALLS_MAX) return undefined;
    const kept = this.#takeKept((one) => one.id === id);
    return this.#begin(kept?.asked ?? asked, id);
  }

  /** A request goes without the answer. */
  leave(call: OpenCall): void {
    call.attached -= 1;
    this.#settle(call);
  }

  /** The request goes, and its client wants no answer at all. Other requests may. */
  cancel(call: OpenCall): void {
    this.callOff(call);
    this.leave(call);
  }

  /** Asks the broker to end the call, where no other request waits for it. Its answer comes all the same. */
  callOff(call: OpenCall): void {
    if (call.attached > 1 || call.answer !== undefined) return;
    call.calledOff = true;
    call.callOff();
  }

  delivered(call: OpenCall): void {
    call.attached -= 1;
    call.delivered = true;
  }

  /** What `delivered` said was too early: the client had gone. */
  undelivered(call: OpenCall): void {
    call.delivered = false;
    this.#settle(call);
  }

  #isMeant(call: OpenCall): boolean {
    if (call.calledOff) return false;
    if (call.attached === 0 || call.question !== undefined) return true;
    return this.#settings.effects.monotonicMs() - call.sinceMs >= SILENT_RETRY_MS;
  }

  #begin(asked: AskedCall, given: bigint | undefined): OpenCall {
    const { caller, session, effects } = this.#settings;
    const abort = new AbortController();
    const id = given ?? newCallId(effects);
    const call = new OpenCall(asked, id, effects.monotonicMs(), () => abort.abort());
    this.#open.set(id, call);
    const equal = this.#openByKey.get(asked.key);
    if (equal === undefined) this.#openByKey.set(asked.key, [call]);
    else equal.push(call);
    const asking = caller.call(asked.tool, asked.text, { session, call: id, signal: abort.signal });
    void this.#follow(call, asking);
    return call;
  }

  async #follow(call: OpenCall, asking: ReturnType<Caller["call"]>): Promise<void> {
    try {
      for await (const message of asking) {
        if (message.status === "pending_approval")
          call.asking({ approval: message.approval, expiresAtMs: Number(message.expires) });
        const notice = message.status === "result" ? noticeIn(message.content) : undefined;
        if (notice !== undefined) call.progressed(notice);
      }
      this.#end(call, await asking.final);
    } catch (error) {
      if (!(error instanceof CallgateError)) throw error;
      this.#end(call, error);
    }
  }

  #end(call: OpenCall, answer: Answer): void {
    this.#open.delete(call.id);
    const equal = (this.#openByKey.get(call.asked.key) ?? []).filter((one) => one !== call);
    if (equal.length === 0) this.#openByKey.delete(call.asked.key);
    else this.#openByKey.set(call.asked.key, equal);
    call.end(answer);
    this.#settle(call);
  }

  /** Keeps the call where it has ended and nobody has heard how. */
  #settle(call: OpenCall): void {
    if (call.answer === undefined || call.attached > 0 || call.delivered) return;
    if (!isWorthKeeping(call, call.answer)) return;
    const untilMs = this.#settings.effects.monotonicMs() + (call.asked.isRead ? KEPT_MS.read : KEPT_MS.other);
    this.#kept.push({ asked: call.asked, id: call.id, untilMs });
    this.#prune();
  }

  #takeKept(fits: (kept: Kept) => boolean): Kept | undefined {
    if (this.#kept.length === 0) return undefined;
    this.#prune();
    const at = this.#kept.findIndex(fits);
    return at < 0 ? undefined : this.#kept.splice(at, 1)[0];
  }

  #prune(): void {
    const now = this.#settings.effects.monotonicMs();
    this.#kept = this.#kept.filter((one) => one.untilMs > now).slice(-KEPT_MAX);
    let chars = this.#kept.reduce((sum, { asked }) => sum + asked.text.length, 0);
    while (chars > KEPT_CHARS_MAX) chars -= this.#kept.shift()?.asked.text.length ?? chars;
  }
}

function joined(call: OpenCall): OpenCall {
  call.attached += 1;
  return call;
}

/** Not where certainly nothing ran and asking again is all that is left: then the same request may as well be a new call. */
function isWorthKeeping(call: OpenCall, answer: Answer): boolean {
  if (answer instanceof CallgateError) return answer.mayHaveRun;
  if (answer.status !== "failed") return true;
  return !(call.calledOff && call.question !== undefined && answer.message.startsWith("cancelled"));
}
