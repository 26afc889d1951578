// Keeps the batches of the process that writes a store apart from openings and closings of the same file by other processes.
// Whoever opens LMDB's file, if only to read, notes for all of them which transaction is the newest, as it has just seen:
// one that is committed in between is undone by the next (OpenLDAP's ITS#9496, mended there and not in the library's copy);
// and whoever closes it as the last makes locks useless that another has just found. The lock is the state directory's own.
// Invariant: between `enter` and `leave` no other process is there that keeps to this.

import { closeSync, constants, openSync } from "node:fs";
import { fault, ok, type Result } from "../base/faults.ts";
import type { OpeningGate } from "../store/lmdb.ts";
import { ERRNO, type Libc } from "./libc.ts";
import { errnoCode } from "./trusted_paths.ts";

/** How often, and how long at most, one looks again who waits for it at once. */
const LOOK_MS = 0.2;
const LOOKS_MAX = 50_000;
/** How long until a batch that found somebody there tries again. */
const RETRY_MS = 1;
/** Under load batch follows batch: after so many somebody who waits is let in. */
const ROW_MAX = 64;
const LET_IN_MS = 2;
/** With a pause this long between two batches there was room enough. */
const PAUSE_MS = 1;

export class DirectoryGate implements OpeningGate {
  readonly #libc: Libc;
  readonly #fd: number;
  #leftAtMs = 0;
  #row = 0;

  /** Entered already. Waits at once; of ours nothing runs meanwhile. The fault is the end of a sentence. */
  static entered(directory: string, libc: Libc | undefined, looksMax = LOOKS_MAX): Result<DirectoryGate> {
    if (libc === undefined) return fault("koffi did not load.");
    let fd: number;
    try {
      fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
    } catch (error) {
      return fault(`its directory can't be opened (${errnoCode(error)}).`);
    }
    const gate = new DirectoryGate(libc, fd);
    const entered = gate.#enterAtOnce(looksMax);
    if (!entered.ok) gate.close();
    return entered.ok ? ok(gate) : entered;
  }

  private constructor(libc: Libc, fd: number) {
    this.#libc = libc;
    this.#fd = fd;
  }

  enter(then: () => void): void {
    this.#row = performance.now() - this.#leftAtMs < PAUSE_MS ? this.#row + 1 : 0;
    if (this.#row < ROW_MAX) return this.#tryToEnter(then);
    this.#row = 0;
    setTimeout(() => this.#tryToEnter(then), LET_IN_MS);
  }

  leave(): void {
    this.#libc.unlock(this.#fd);
    this.#leftAtMs = performance.now();
  }

  close(): void {
    closeSync(this.#fd);
  }

  #tryToEnter(then: () => void): void {
    if (this.#libc.lockExclusive(this.#fd) === 0) then();
    else setTimeout(() => this.#tryToEnter(then), RETRY_MS);
  }

  #enterAtOnce(looksMax: number): Result<void> {
    const asleep = new Int32Array(new SharedArrayBuffer(4));
    for (let looks = 0; looks < looksMax; looks += 1) {
      const outcome = this.#libc.lockExclusive(this.#fd);
      if (outcome === 0) return ok(undefined);
      if (outcome !== -ERRNO.EAGAIN) return fault(`its directory can't be locked (errno ${-outcome}).`);
      Atomics.wait(asleep, 0, 0, LOOK_MS);
    }
    return fault("a process that has its directory locked does not go on: is one stopped (ps, state T)?");
  }
}

/**
 * `work` while nobody writes, opens or closes the store in that directory. Ctrl-Z waits meanwhile: who is stopped there holds
 * up the daemon.
 */
export async function aloneIn<T>(
  directory: string,
  libc: Libc | undefined,
  work: () => T | Promise<T>,
): Promise<Result<T>> {
  process.on("SIGTSTP", later);
  const gate = DirectoryGate.entered(directory, libc);
  try {
    return gate.ok ? ok(await work()) : gate;
  } finally {
    if (gate.ok) gate.value.close();
    process.off("SIGTSTP", later);
  }
}

function later(): void {
  // pressed again it stops us
}
