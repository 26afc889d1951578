// The lexical half of strict JSON: a cursor over the text, and the tokens that need more than one
// look: white space, strings, numbers. No structure here (json.ts). Every scan moves the cursor
// forward only, so the whole parse is linear in the text.

/** Where a parse stands. A scan that fails leaves its message here and answers undefined. */
export interface Cursor {
  readonly text: string;
  /** UTF-16 unit that is looked at next. */
  at: number;
  /** Values and keys that may still come. */
  nodesLeft: number;
  readonly integerDigitsMax: number;
  message: string | undefined;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const LETTER_U = 0x75;
/** The longest run of digits that a double still adds up exactly. */
const EXACT_DIGITS = 15;

export function fail(cursor: Cursor, message: string, at: number): undefined {
  cursor.message = message;
  cursor.at = at;
  return undefined;
}

export function skipSpace(cursor: Cursor): number {
  const { text } = cursor;
  let at = cursor.at;
  let unit = text.charCodeAt(at);
  while (unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09) unit = text.charCodeAt(++at);
  cursor.at = at;
  return unit;
}

/** The cursor stands behind the opening quote; afterwards behind the closing one. */
export function scanString(cursor: Cursor): string | undefined {
  const { text } = cursor;
  const start = cursor.at;
  for (let at = start; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      cursor.at = at + 1;
      return text.slice(start, at);
    }
    if (unit < 0x20 || unit === BACKSLASH || isSurrogate(unit)) return scanOddString(cursor, start, at);
  }
  return fail(cursor, "a string does not end", text.length);
}

/** As scanString, from the first unit that needs a closer look. */
function scanOddString(cursor: Cursor, start: number, from: number): string | undefined {
  const { text } = cursor;
  let escaped = false;
  for (let at = from; at < text.length; ) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      cursor.at = at + 1;
      return escaped ? decoded(text.slice(start - 1, at + 1)) : text.slice(start, at);
    }
    const width = unit === BACKSLASH ? escapeWidth(cursor, at) : plainWidth(cursor, unit, at);
    if (width === undefined) return undefined;
    escaped ||= unit === BACKSLASH;
    at += width;
  }
  return fail(cursor, "a string does not end", text.length);
}

/** Only for a literal that was found valid, so the engine's own parser cannot refuse it. */
function decoded(literal: string): string {
  return JSON.parse(literal) as string;
}

function plainWidth(cursor: Cursor, unit: number, at: number): number | undefined {
  if (unit < 0x20) return fail(cursor, "a control character stands raw in a string", at);
  if (!isSurrogate(unit)) return 1;
  if (isHighSurrogate(unit) && isLowSurrogate(cursor.text.charCodeAt(at + 1))) return 2;
  return fail(cursor, "a lone surrogate stands in a string", at);
}

function escapeWidth(cursor: Cursor, at: number): number | undefined {
  const unit = cursor.text.charCodeAt(at + 1);
  if (unit === LETTER_U) return unicodeEscapeWidth(cursor, at);
  return isShortEscape(unit) ? 2 : fail(cursor, "an unknown escape stands in a string", at);
}

/** One of `" \\ / b f n r t`. */
function isShortEscape(unit: number): boolean {
  switch (unit) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return true;
    default:
      return false;
  }
}

function unicodeEscapeWidth(cursor: Cursor, at: number): number | undefined {
  const unit = hexUnit(cursor.text, at);
  if (unit === undefined) return fail(cursor, "\\u needs four hexadecimal digits", at);
  if (!isSurrogate(unit)) return 6;
  const next = hexUnit(cursor.text, at + 6);
  if (isHighSurrogate(unit) && next !== undefined && isLowSurrogate(next)) return 12;
  return fail(cursor, "a lone surrogate is escaped in a string", at);
}

const UNICODE_ESCAPE = /\\u([0-9a-fA-F]{4})/y;

function hexUnit(text: string, at: number): number | undefined {
  UNICODE_ESCAPE.lastIndex = at;
  const digits = UNICODE_ESCAPE.exec(text)?.[1];
  return digits === undefined ? undefined : Number.parseInt(digits, 16);
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** An integer literal is a bigint (`-0` is 0n), one with a fraction or an exponent a finite number. */
export function scanNumber(cursor: Cursor): bigint | number | undefined {
  const { text } = cursor;
  const start = cursor.at;
  const first = text.charCodeAt(start) === MINUS ? start + 1 : start;
  const end = skipDigits(text, first);
  if (end === first) return fail(cursor, "a value is expected", start);
  if (text.charCodeAt(first) === ZERO && end > first + 1)
    return fail(cursor, "a number begins with a needless zero", first);
  const next = text.charCodeAt(end);
  if (next === POINT || next === 0x65 || next === 0x45) return scanDouble(cursor, start, end);
  if (end - first > cursor.integerDigitsMax) return fail(cursor, "an integer has too many digits", start);
  cursor.at = end;
  const digits = text.slice(start, end);
  return BigInt(end - first <= EXACT_DIGITS ? Number(digits) : digits);
}

function scanDouble(cursor: Cursor, start: number, pointOrExponent: number): number | undefined {
  const { text } = cursor;
  let at = pointOrExponent;
  if (text.charCodeAt(at) === POINT) {
    const end = skipDigits(text, at + 1);
    if (end === at + 1) return fail(cursor, "a number needs a digit behind its point", at);
    at = end;
  }
  if (text.charCodeAt(at) === 0x65 || text.charCodeAt(at) === 0x45) {
    const sign = text.charCodeAt(at + 1);
    const first = sign === PLUS || sign === MINUS ? at + 2 : at + 1;
    const end = skipDigits(text, first);
    if (end === first) return fail(cursor, "a number needs a digit in its exponent", at);
    at = end;
  }
  const value = Number(text.slice(start, at));
  if (!Number.isFinite(value)) return fail(cursor, "a number is too large", start);
  cursor.at = at;
  return value;
}

function skipDigits(text: string, from: number): number {
  let at = from;
  let unit = text.charCodeAt(at);
  while (unit >= ZERO && unit <= NINE) unit = text.charCodeAt(++at);
  return at;
}
