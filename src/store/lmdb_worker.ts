// The thread that writes: a batch comes as one buffer, becomes one transaction that is on disk when it
// returns, and the buffer goes back with what came of it. Nothing is read here.
// Invariant: one answer for each batch, in order; a transaction that threw has left nothing behind.

import { parentPort, workerData } from "node:worker_threads";
import { type Environment, lmdbCode, openEnvironment } from "./lmdb_environment.ts";
import type { BatchAnswer, BatchRequest, WorkerData } from "./lmdb_messages.ts";
import { WriteBatch } from "./write_batch.ts";

const BATCHES_PER_LOOK = 256;

/** Starts when the thread does: this file is the thread's program. */
function serve(path: string): void {
  const environment = openEnvironment(path);
  let batches = 0;
  const answer = (message: BatchAnswer, transfer: ArrayBuffer[] = []) =>
    parentPort?.postMessage(message, transfer);
  parentPort?.on("message", (request: BatchRequest) => {
    if (request === "close") {
      void environment.close().then(() => parentPort?.close());
      return;
    }
    const { buffer, length } = request;
    const fault = writeAll(environment, new WriteBatch(buffer, length));
    answer({ buffer, fault }, [buffer]);
    batches += 1;
    if (batches % BATCHES_PER_LOOK === 0) forgetTheDead(environment);
  });
  answer("ready");
}

/** A reader that was killed in the midst of a look keeps all that was there from being written over, until somebody sees that it is gone. */
function forgetTheDead(environment: Environment): void {
  try {
    environment.readerCheck();
  } catch {
    // the file grows; what is written is no worse for it
  }
}

function writeAll(environment: Environment, batch: WriteBatch): string | undefined {
  try {
    environment.transactionSync(() => {
      batch.each(
        (key, value) => environment.putSync(key, value),
        (key) => void environment.removeSync(key),
      );
    });
    return undefined;
  } catch (error) {
    return lmdbCode(error);
  }
}

serve((workerData as WorkerData).path);
