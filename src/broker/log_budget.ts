// A log that a peer can't flood with what no limit of its role bounds: of such lines each role gets so
// many a second, and what is beyond is counted and said once. Lines of calls within their role's limits
// are not among them: every such call has its line, and `calls_per_second` bounds them.

import type { Clock, Log } from "../base/ports.ts";

/** Lines a second of one event and role. */
const LINES_PER_SECOND = 100;

/** Events that cost a peer nothing to cause. */
const BOUNDED: ReadonlySet<string> = new Set([
  "answer.ignored",
  "call.turned_away",
  "connection.refused",
  "limit.reached",
  "peer.error",
  "peer.refused",
  "tool.announced",
]);

interface Window {
  second: number;
  lines: number;
  suppressed: number;
}

/** Events and roles both come from closed sets, so there are few windows. */
export function boundedLog(log: Log, clock: Clock): Log {
  const windows = new Map<string, Window>();
  return (level, event, fields) => {
    if (!BOUNDED.has(event)) return log(level, event, fields);
    const { role } = fields;
    const name = `${event} ${String(role)}`;
    const second = Math.floor(clock.nowMs() / 1000);
    let window = windows.get(name);
    if (window === undefined) {
      window = { second, lines: 0, suppressed: 0 };
      windows.set(name, window);
    }
    if (window.second !== second) {
      const { suppressed } = window;
      Object.assign(window, { second, lines: 0, suppressed: 0 });
      if (suppressed > 0) log("warn", "log.suppressed", { of: event, role, lines: suppressed });
    }
    window.lines += 1;
    if (window.lines <= LINES_PER_SECOND) log(level, event, fields);
    else window.suppressed += 1;
  };
}
