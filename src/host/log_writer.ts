// Lines to a descriptor without ever waiting for whoever reads it: what the reader does not take is
// kept up to a bound, and what comes on top is dropped, as whole lines, and counted. Nothing is in
// flight between two turns of the event loop, so a flush at the very end loses nothing and doubles nothing.

import { constants, fstatSync, openSync, type Stats, writeSync } from "node:fs";
import { Socket } from "node:net";
import { errnoCode } from "./trusted_paths.ts";

export interface LineWriter {
  /** Takes one line with its line feed, or drops it. */
  write(line: string): void;
  /** Writes what waits, now; waits for a reader that is behind for `FLUSH_MS_MAX` at most. */
  flush(): void;
}

export interface LineWriterOptions {
  readonly fd: number;
  /** Bytes that may wait for the reader. */
  readonly heldBytesMax: number;
  /** The reader has caught up after lines were dropped: how many. A line written here is the next one. */
  readonly onDropped: (lines: number) => void;
}

/** Room for the line that tells of dropped ones. */
const REPORT_BYTES = 512;

/** `full`: the reader is behind. `gone`: there is none, and the next line tries again. `broken`: no space, no device. */
type Outcome = "written" | "full" | "gone" | "broken";

/** How long a reader that is behind may keep the process from ending. */
const FLUSH_MS_MAX = 1000;
const FLUSH_NAP_MS = 10;
/** Between two writes while lines come all the time. */
const GATHER_MS = 4;
/** Before a full pipe, and a descriptor that can't be written, are tried again. */
const RETRY_MS = 20;
const RETRY_BROKEN_MS = 1000;
const WRITE_BYTES_MAX = 65_536;

export function openLineWriter(options: LineWriterOptions): LineWriter {
  return new Writer(withoutWaiting(options.fd), options);
}

class Writer implements LineWriter {
  readonly #fd: number;
  readonly #options: LineWriterOptions;
  #lines: string[] = [];
  #linesBytes = 0;
  /** Taken out of `#lines` and not yet written to its end. */
  #writing: Buffer | undefined;
  #dropped = 0;
  #asked = false;
  #wroteAtMs = Number.NEGATIVE_INFINITY;

  constructor(fd: number, options: LineWriterOptions) {
    this.#fd = fd;
    this.#options = options;
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    const reserved = this.#dropped > 0 ? REPORT_BYTES : 0;
    if (this.#heldBytes() + reserved + bytes > this.#options.heldBytesMax) {
      this.#dropped += 1;
      return;
    }
    this.#reportDropped(); // so that it stands where the lines are missing
    this.#lines.push(line);
    this.#linesBytes += bytes;
    if (!this.#asked) this.#later(Math.max(0, this.#wroteAtMs + GATHER_MS - performance.now()));
  }

  flush(): void {
    const until = performance.now() + FLUSH_MS_MAX;
    while (this.#pump() === "full" && performance.now() < until) nap(FLUSH_NAP_MS);
  }

  #heldBytes(): number {
    return this.#linesBytes + (this.#writing?.length ?? 0);
  }

  /** The lines of one turn of the event loop leave in one write; while many come, those of some milliseconds. */
  #later(ms: number): void {
    this.#asked = true;
    const again = () => {
      this.#asked = false;
      const outcome = this.#pump();
      if (outcome === "full") this.#later(RETRY_MS);
      if (outcome === "broken") this.#later(RETRY_BROKEN_MS);
    };
    if (ms === 0) setImmediate(again);
    else setTimeout(again, ms).unref();
  }

  /** Writes until nothing waits, or until the descriptor takes no more. */
  #pump(): Outcome {
    this.#wroteAtMs = performance.now();
    for (;;) {
      this.#writing ??= this.#takeLines();
      if (this.#writing === undefined && !this.#reportDropped()) return "written";
      const stopped = this.#writing === undefined ? undefined : this.#writeSome(this.#writing);
      if (stopped !== undefined) return stopped;
    }
  }

  #writeSome(bytes: Buffer): Outcome | undefined {
    try {
      const written = writeSync(this.#fd, bytes, 0, Math.min(bytes.length, WRITE_BYTES_MAX));
      this.#writing = written < bytes.length ? bytes.subarray(written) : undefined;
      return undefined;
    } catch (error) {
      const code = errnoCode(error);
      if (code === "EAGAIN") return "full";
      if (code !== "EPIPE") return "broken";
      this.#discard();
      return "gone";
    }
  }

  #reportDropped(): boolean {
    const dropped = this.#dropped;
    if (dropped === 0) return false;
    this.#dropped = 0;
    this.#options.onDropped(dropped);
    return true;
  }

  #takeLines(): Buffer | undefined {
    if (this.#lines.length === 0) return undefined;
    const bytes = Buffer.from(this.#lines.join(""));
    this.#lines = [];
    this.#linesBytes = 0;
    return bytes;
  }

  /** The reader has gone for good: no use in holding what it would have read. */
  #discard(): void {
    this.#dropped += this.#lines.length;
    this.#lines = [];
    this.#linesBytes = 0;
    this.#writing = undefined;
  }
}

/**
 * A descriptor of the same file whose writes never wait. A pipe or terminal is opened once more, so that
 * others who share ours keep what they have; a socket can't be, and is set for all. Files don't wait.
 */
function withoutWaiting(fd: number): number {
  let stats: Stats;
  try {
    stats = fstatSync(fd);
  } catch {
    return fd; // nothing there: every write will say so
  }
  if (stats.isFIFO() || stats.isCharacterDevice()) {
    try {
      const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
      return openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
    } catch {
      // another user's pipe, or no /proc
    }
  }
  if (stats.isFIFO() || stats.isSocket()) setNonBlocking(fd);
  return fd;
}

/** libuv makes a descriptor non-blocking when a stream takes it over. */
const kept: Socket[] = [];
function setNonBlocking(fd: number): void {
  try {
    const socket = new Socket({ fd, readable: false, writable: true });
    socket.on("error", () => undefined);
    socket.unref();
    kept.push(socket); // collected, it would close the descriptor
  } catch {
    // it stays as it is
  }
}

const NAP = new Int32Array(new SharedArrayBuffer(4));
function nap(ms: number): void {
  Atomics.wait(NAP, 0, 0, ms);
}
