// A store on disk that is only read: a backup, the state of a daemon that does not run, or of one that
// does, beside it. And copies of it, each as one transaction left it.
// Invariant: nothing in the store is changed.

import { statSync } from "node:fs";
import { fault, ok, type Result } from "../base/faults.ts";
import type { Engine, EngineFault, Entry, KeyRange } from "./engine.ts";
import { entriesOf, keysOf } from "./lmdb.ts";
import { type Environment, lmdbCode, openEnvironment } from "./lmdb_environment.ts";
import { endsEarly, unfitFile } from "./lmdb_file.ts";
import { brokenStructure } from "./lmdb_structure.ts";
import { WriteBatch } from "./write_batch.ts";

/** A daemon that lives may write in the midst of one look. */
const LOOKS = 3;

/** Whoever reads a page that is missing would be ended by the system. */
function isBroken(path: string): boolean {
  return Array.from({ length: LOOKS }).every(() => brokenStructure(path) !== undefined);
}

export class LmdbSnapshot implements Engine {
  readonly #environment: Environment;
  readonly #path: string;

  /** `path`: the file. The fault is a symbolic name. */
  static open(path: string): Result<LmdbSnapshot> {
    try {
      if (!statSync(path).isFile()) return fault("NO_FILE");
      const unfit = unfitFile(path);
      if (unfit !== undefined) return fault(unfit);
      if (endsEarly(path) && isBroken(path)) return fault("CUT_SHORT");
      return ok(new LmdbSnapshot(path, openEnvironment(path, true)));
    } catch (error) {
      return fault(lmdbCode(error));
    }
  }

  private constructor(path: string, environment: Environment) {
    this.#path = path;
    this.#environment = environment;
  }

  /** Writes the whole store, as it is now, to a file that is not there yet; not flushed. The fault is a symbolic name. */
  async copyTo(path: string): Promise<Result<void>> {
    try {
      await this.#environment.backup(path, true);
      return ok(undefined);
    } catch (error) {
      return fault(lmdbCode(error));
    }
  }

  get(key: Uint8Array): Buffer | undefined {
    return this.#environment.getBinary(key);
  }

  range(range: KeyRange): readonly Entry[] {
    return entriesOf(this.#environment, range);
  }

  keys(range: KeyRange): readonly Buffer[] {
    return keysOf(this.#environment, range);
  }

  batch(): WriteBatch {
    return new WriteBatch(new ArrayBuffer(0));
  }

  write(_: WriteBatch, done: (fault: EngineFault | undefined) => void): void {
    done({ code: "EROFS" });
  }

  usedBytes(): number {
    return statSync(this.#path).size;
  }

  async close(): Promise<void> {
    await this.#environment.close();
  }
}
