// The log: pino, one JSON object a line. Writing never blocks the daemon, is bounded when nobody
// reads, and everything is out before the process ends.

import { fstatSync } from "node:fs";
import pino from "pino";
import type { Log, LogFields, LogLevel } from "../base/ports.ts";
import { boundedLine } from "./log_line.ts";
import { openLineWriter } from "./log_writer.ts";

export interface LogSink {
  readonly log: Log;
  setLevel(level: LogLevel): void;
  /** Writes out what is buffered, now; waits a second at most for a reader that is behind. */
  flush(): void;
}

export interface LogOptions {
  readonly level: LogLevel;
  /** File descriptor that lines go to. */
  readonly fd: number;
  /** Standard output is the journal: each line begins with its syslog priority (sd-daemon(3)). */
  readonly journal: boolean;
  /** Bytes that may wait for a reader of the log; what comes on top is dropped and counted. Default 8 MiB. */
  readonly heldBytesMax?: number;
}

const HELD_BYTES_MAX = 8_388_608;

const SYSLOG_PRIORITY: Readonly<Record<LogLevel, number>> = { debug: 7, info: 6, warn: 4, error: 3 };
const LEVEL_NUMBERS: Readonly<Record<number, LogLevel>> = {
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
};

export function openLog({ level, fd, journal, heldBytesMax = HELD_BYTES_MAX }: LogOptions): LogSink {
  const writer = openLineWriter({
    fd,
    heldBytesMax,
    onDropped: (lines) => logger.warn({ event: "log.dropped", lines }),
  });
  const bounded = { write: (line: string) => writer.write(boundedLine(line)) };
  const logger = pino(
    {
      level,
      base: null,
      timestamp: isoTime(Date.now),
      formatters: { level: (label) => ({ level: label }) },
    },
    journal ? withPriority(bounded) : bounded,
  );
  const log: Log = (at: LogLevel, event: string, fields: LogFields) => {
    if (logger.isLevelEnabled(at)) logger[at]({ event, ...fields });
  };
  return {
    log,
    setLevel(next) {
      logger.level = next;
    },
    flush: () => writer.flush(),
  };
}

/** The time as a member of the line, made once a millisecond. */
function isoTime(nowMs: () => number): () => string {
  let madeAtMs = Number.NaN;
  let made = "";
  return () => {
    const now = nowMs();
    if (now !== madeAtMs) {
      madeAtMs = now;
      made = `,"time":"${new Date(now).toISOString()}"`;
    }
    return made;
  };
}

/** pino tells a stream that asks for metadata the level of the line it is about to write. */
function withPriority(destination: { write(line: string): unknown }) {
  return {
    [Symbol.for("pino.metadata")]: true,
    lastLevel: 30,
    write(line: string): void {
      destination.write(`<${SYSLOG_PRIORITY[LEVEL_NUMBERS[this.lastLevel] ?? "error"]}>${line}`);
    },
  };
}

/** Whether a descriptor is the journal's: JOURNAL_STREAM names its device and inode (systemd.exec(5)). */
export function isJournal(stream: string | undefined, stat: { dev: number; ino: number }): boolean {
  return stream === `${stat.dev}:${stat.ino}`;
}

/** For whoever started us by hand. The journal has the log, which says the same with a priority. */
export function tellStandardError(text: string): void {
  if (!isJournal(process.env["JOURNAL_STREAM"], fstatSync(2))) process.stderr.write(text);
}
