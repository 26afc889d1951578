// Times and lengths of time as people write and read them. Local time with its offset, so that a line
// stays true when it is read elsewhere.

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `2026-11-30T13:14:05+01:00`, in the time zone of this process. */
export function localTime(ms: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  const eastMinutes = -date.getTimezoneOffset();
  const shifted = new Date(ms + eastMinutes * MINUTE_MS);
  if (Number.isNaN(shifted.getTime())) return String(ms);
  return `${shifted.toISOString().replace(/\.\d{3}Z$/, "")}${offsetText(eastMinutes)}`;
}

function offsetText(eastMinutes: number): string {
  const two = (number: number) => String(number).padStart(2, "0");
  const minutes = Math.abs(eastMinutes);
  return `${eastMinutes < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

/** A length of time in its two largest units, rounded down: `40 s`, `14 min`, `2 h 5 min`, `3 d 4 h`. */
export function span(ms: number): string {
  if (ms < SECOND_MS) return "0 s";
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)} s`;
  if (ms < 10 * MINUTE_MS) return inTwo(ms, MINUTE_MS, "min", SECOND_MS, "s");
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < DAY_MS) return inTwo(ms, HOUR_MS, "h", MINUTE_MS, "min");
  return inTwo(ms, DAY_MS, "d", HOUR_MS, "h");
}

function inTwo(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % large) / small);
  const first = `${Math.floor(ms / large)} ${largeName}`;
  return rest === 0 ? first : `${first} ${rest} ${smallName}`;
}

/** A moment with how far it is away. */
export function moment(ms: number, nowMs: number): string {
  return `${localTime(ms)} (${ms <= nowMs ? `${span(nowMs - ms)} ago` : `in ${span(ms - nowMs)}`})`;
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { "": 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** `90`, `90s`, `15m`, `1h`, `7d` as seconds; undefined for anything else, and for none at all. */
export function secondsOf(text: string): number | undefined {
  const [, digits = "", unit = ""] = /^([1-9][0-9]{0,8})([smhd]?)$/.exec(text) ?? [];
  const seconds = Number(digits) * (UNIT_SECONDS[unit] ?? 0);
  return seconds > 0 && Number.isSafeInteger(seconds) ? seconds : undefined;
}
