// The bound on one line of the log: the journal cuts what is longer into several messages, of which none is JSON any
// more. A line that is too long keeps its level, time and event, and of the rest what fits, with how much it was.

/** Of a line without its line feed. The journal's own (LineMax=, 48 KiB) has to hold the priority beside it. */
export const LOG_LINE_BYTES_MAX = 48_000;

const TEXT_CHARS_MAX = 500;
const LIST_ENTRIES_MAX = 20;

/** The line as it is, mostly: a text is encoded to look only where it could be too long. */
export function boundedLine(line: string): string {
  if (line.length * 3 <= LOG_LINE_BYTES_MAX || Buffer.byteLength(line) <= LOG_LINE_BYTES_MAX) return line;
  const { level, time, event, ...rest } = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const cut_bytes = Buffer.byteLength(line);
  const shorter = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, shortened(value)]));
  const whole = JSON.stringify({ level, time, event, cut_bytes, ...shorter });
  if (Buffer.byteLength(whole) <= LOG_LINE_BYTES_MAX) return `${whole}\n`;
  return `${JSON.stringify({ level, time, event, cut_bytes })}\n`;
}

function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, LIST_ENTRIES_MAX).map(shortened);
  return typeof value === "string" ? value.slice(0, TEXT_CHARS_MAX) : value;
}
