// The service that answers: a frame comes in, and one sealed frame goes out, or nothing (spec: connector, 6). Whose frame it is
// and whether it may run is admission.ts; how it runs is service_turn.ts; sockets are serve.ts.
// Invariants: the backend is entered once for a claim and only after its record is durable; no byte of a turn's
// reply is given out before that reply is durable; what was recorded is given out byte for byte.

import type { Result } from "../base/faults.ts";
import { fault, ok } from "../base/faults.ts";
import type { Clock, Log } from "../base/ports.ts";
import {
  type Authentic,
  authenticate,
  type Callers,
  claim,
  type Unanswered,
  understand,
} from "./admission.ts";
import type { ProviderBackend } from "./backend.ts";
import { encodeResponseFrame, type Status } from "./carriage.ts";
import { type Claim, Claims } from "./claims.ts";
import type { Refusal, TransportResult } from "./contract.ts";
import { TRANSPORT_RESULT } from "./documents.ts";
import { encode } from "./encode.ts";
import { seal } from "./envelope.ts";
import type { ReplayStore } from "./replay.ts";
import { type Admitted, type CheckedConfig, checkService, type ServiceConfig } from "./service_config.ts";
import { Tally } from "./service_tally.ts";
import { type Ending, runTurn } from "./service_turn.ts";
import type { StartError } from "./start_error.ts";

/** Why a frame got no answer. The first five are rows of admission; the others are the service's own. */
export type Dropped =
  | Unanswered
  /** The answer is larger than a frame may be. */
  | "reply_size"
  /** The turn's record could not be written, so the backend was not entered. */
  | "claim_unwritten"
  /** The turn ran, and its outcome could not be written: the request is indeterminate. */
  | "outcome_unwritten"
  | "record_damaged"
  /** The service ends. */
  | "closing"
  /** A broken assumption of ours. */
  | "internal";

export interface ServiceOptions {
  readonly config: ServiceConfig;
  readonly backend: ProviderBackend;
  /** Opens the store, once the configuration is found good. The fault is a sentence for the owner. */
  readonly store: () => Promise<Result<ReplayStore>>;
  /** Its time is held against what callers took from theirs; going back it lets nothing run again (`forgottenUpToMs`). */
  readonly clock: Clock;
  /** Unguessable bytes: nonces must never come twice. */
  readonly random: (bytes: number) => Buffer;
  readonly log: Log;
}

/** For metrics. */
export interface ServiceFigures {
  readonly running: number;
  readonly dropped: ReadonlyMap<Dropped, number>;
  readonly refused: ReadonlyMap<Refusal, number>;
  readonly ended: ReadonlyMap<Ending, number>;
}

const NONCE_BYTES = 12;
const KEY_BYTES = 32;
/** Records that are deleted in one go. */
const PRUNED_AT_ONCE = 256;

export class TransportService {
  readonly config: CheckedConfig;
  readonly #options: ServiceOptions;
  readonly #store: ReplayStore;
  readonly #claims = new Claims();
  readonly #callers: Callers;
  readonly #dropped: Tally<Dropped>;
  readonly #refused: Tally<Refusal>;
  readonly #ended = new Map<Ending, number>();
  #closing = false;

  /** Checks the configuration, then opens the store. */
  static async open(options: ServiceOptions): Promise<Result<TransportService, StartError>> {
    const config = checkService(options.config, options.backend.transport);
    if (!config.ok) return config;
    const store = await options.store();
    if (!store.ok) return fault({ kind: "ReplayStore", sentence: store.fault });
    return ok(new TransportService(config.value, store.value, options));
  }

  private constructor(config: CheckedConfig, store: ReplayStore, options: ServiceOptions) {
    this.config = config;
    this.#options = options;
    this.#store = store;
    this.#callers = { admitted: config.callers, nobodysKey: options.random(KEY_BYTES) };
    this.#dropped = new Tally(options.clock, options.log, "warn", "connector.dropped");
    this.#refused = new Tally(options.clock, options.log, "info", "connector.refused");
  }

  get figures(): ServiceFigures {
    const { size: running } = this.#claims;
    return { running, dropped: this.#dropped.counts, refused: this.#refused.counts, ended: this.#ended };
  }

  /**
   * Answers one frame, without its length prefix. Resolves once the answer may be sent; undefined: there is none, and the
   * connection is to be closed without a byte. Never rejects. A caller that goes away changes nothing.
   */
  async deliver(frame: Buffer): Promise<Buffer | undefined> {
    if (this.#closing) return this.#drop("closing");
    try {
      return await this.#answer(frame);
    } catch (error) {
      // Its text may quote what nobody should read.
      const name = error instanceof Error ? error.name : typeof error;
      this.#options.log("error", "connector.fault", { name });
      return this.#drop("internal");
    }
  }

  async #answer(frame: Buffer): Promise<Buffer | undefined> {
    const nowMs = this.#options.clock.nowMs();
    const authentic = authenticate(frame, this.#callers);
    if (!authentic.ok) return this.#drop(authentic.fault);
    const understood = understand(authentic.value);
    if (!understood.ok) return this.#refuse(authentic.value, understood.fault);
    const { expiryHorizonMs } = this.config;
    const verdict = claim(understood.value, {
      claims: this.#claims,
      store: this.#store,
      nowMs,
      expiryHorizonMs,
    });
    switch (verdict.kind) {
      case "refused":
        return this.#refuse(authentic.value, verdict.refusal);
      case "replay":
        return this.#fitting(verdict.frame);
      case "damaged":
        return this.#drop("record_damaged");
      case "claimed":
        return this.#execute(verdict.claim);
    }
  }

  /** Deletes every record that may be deleted; resolves to how many were. What runs now keeps its record. */
  async prune(): Promise<number> {
    const beforeMs = this.#options.clock.nowMs() - this.config.retentionMs;
    let pruned = 0;
    for (;;) {
      // Of what runs there is at most one record a claim, so that so many more are enough to find others.
      const keys = this.#store.expiringBefore(beforeMs, PRUNED_AT_ONCE + this.#claims.size);
      const idle = keys.filter((key) => this.#claims.find(key) === undefined);
      if (idle.length === 0) return pruned;
      const gone = await this.#store.forget(idle);
      pruned += gone;
      if (gone === 0) return pruned;
    }
  }

  /** Takes nothing more; resolves when nothing runs any more, or nobody waits longer. What still runs then is indeterminate. */
  async drain(graceMs: number): Promise<void> {
    this.#closing = true;
    const { clock } = this.#options;
    const stop = clock.after(graceMs, () => this.#claims.abortAll());
    await this.#claims.idle();
    stop();
  }

  /** Resolves when what was recorded is on disk and the store is let go of. What still runs is given up. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#claims.abortAll();
    await this.#claims.idle();
    this.#dropped.flush();
    this.#refused.flush();
    await this.#store.close();
  }

  /** Row 20: the claim is durable, the backend runs, its outcome is durable, the reply may go. */
  async #execute(claimed: Claim): Promise<Buffer | undefined> {
    const { key, head, caller } = claimed;
    try {
      if (!(await this.#store.activate(key, head))) return this.#drop("claim_unwritten");
      const { backend, clock } = this.#options;
      const { transport, executionLimitMs: limitMs } = this.config;
      const startedAtMs = clock.nowMs();
      const turn = await runTurn(claimed, { backend, transport, limitMs, clock });
      if (turn === "abandoned") return this.#drop("closing");
      this.#end(caller, turn.ending, clock.nowMs() - startedAtMs);
      const frame = this.#sealed(caller, head.requestId, "accepted", turn.plaintext);
      if (!(await this.#store.complete(key, head, frame))) return this.#drop("outcome_unwritten");
      return this.#fitting(frame);
    } finally {
      this.#claims.release(claimed);
    }
  }

  #end(caller: Admitted, ending: Ending, ms: number): void {
    this.#ended.set(ending, (this.#ended.get(ending) ?? 0) + 1);
    this.#options.log("info", "connector.turn", { caller: caller.id, ending, ms });
  }

  #refuse({ caller, envelope }: Authentic, refusal: Refusal): Buffer | undefined {
    this.#refused.add(refusal);
    const plaintext = encode<TransportResult>(TRANSPORT_RESULT, {
      schema_id: "gamecult.model.transport_result.v3",
      request_id: envelope.request_id,
      caller_runtime_id: caller.id,
      disposition: { Refused: refusal },
    });
    if (plaintext === undefined) throw new Error("a refusal is a valid result");
    return this.#fitting(this.#sealed(caller, envelope.request_id, "rejected", plaintext));
  }

  #sealed({ key, id }: Admitted, requestId: string, status: Status, plaintext: Buffer): Buffer {
    const nonce = this.#options.random(NONCE_BYTES);
    const envelope = seal({ key, caller: id, requestId, kind: "Result", nonce }, plaintext);
    return encodeResponseFrame(requestId, status, envelope);
  }

  #fitting(frame: Buffer): Buffer | undefined {
    return frame.length <= this.config.frameBytesMax ? frame : this.#drop("reply_size");
  }

  #drop(why: Dropped): undefined {
    this.#dropped.add(why);
    return undefined;
  }
}
