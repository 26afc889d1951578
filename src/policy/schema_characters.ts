// The character classes of ECMA-262, as code points, and the Unicode properties that RE2 has too.

/** First and last code point, both in it. */
export type Range = readonly [number, number];

const LAST_CODE_POINT = 0x10ffff;

export const DIGIT: readonly Range[] = [[0x30, 0x39]];

export const WORD: readonly Range[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];

/** White space and line ends. */
export const SPACE: readonly Range[] = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];

/** What `.` does not match. */
export const LINE_END: readonly Range[] = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];

/** All others; `ranges` are in order and apart. */
export function complement(ranges: readonly Range[]): readonly Range[] {
  const others: Range[] = [];
  let from = 0;
  for (const [low, high] of ranges) {
    if (from < low) others.push([from, low - 1]);
    from = high + 1;
  }
  if (from <= LAST_CODE_POINT) others.push([from, LAST_CODE_POINT]);
  return others;
}

const CATEGORIES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    Letter: "L",
    Cased_Letter: "LC",
    Uppercase_Letter: "Lu",
    Lowercase_Letter: "Ll",
    Titlecase_Letter: "Lt",
    Modifier_Letter: "Lm",
    Other_Letter: "Lo",
    Mark: "M",
    Combining_Mark: "M",
    Nonspacing_Mark: "Mn",
    Spacing_Mark: "Mc",
    Enclosing_Mark: "Me",
    Number: "N",
    Decimal_Number: "Nd",
    digit: "Nd",
    Letter_Number: "Nl",
    Other_Number: "No",
    Punctuation: "P",
    punct: "P",
    Connector_Punctuation: "Pc",
    Dash_Punctuation: "Pd",
    Open_Punctuation: "Ps",
    Close_Punctuation: "Pe",
    Initial_Punctuation: "Pi",
    Final_Punctuation: "Pf",
    Other_Punctuation: "Po",
    Symbol: "S",
    Math_Symbol: "Sm",
    Currency_Symbol: "Sc",
    Modifier_Symbol: "Sk",
    Other_Symbol: "So",
    Separator: "Z",
    Space_Separator: "Zs",
    Line_Separator: "Zl",
    Paragraph_Separator: "Zp",
    Other: "C",
    Control: "Cc",
    cntrl: "Cc",
    Format: "Cf",
    Surrogate: "Cs",
    Private_Use: "Co",
    Unassigned: "Cn",
  }),
);
const SHORT_CATEGORIES: ReadonlySet<string> = new Set(CATEGORIES.values());
const SCRIPT_NAME = /^[A-Z][a-z]+(?:_[A-Z][a-z]+)*$/;
/** RE2's own names beside its scripts, which as a script ECMA-262 does not know. */
const NO_SCRIPTS: ReadonlySet<string> = new Set(["Any", "Ascii", "Assigned"]);

/** RE2's text for the inside of `\p{…}`; undefined where RE2 has no such property. */
export function unicodeClass(property: string, negated: boolean): string | undefined {
  if (property === "Any") return negated ? undefined : `\\x{0}-\\x{${LAST_CODE_POINT.toString(16)}}`;
  if (property === "ASCII")
    return negated ? `\\x{80}-\\x{${LAST_CODE_POINT.toString(16)}}` : "\\x{0}-\\x{7f}";
  const name = re2Name(property);
  return name === undefined ? undefined : `\\${negated ? "P" : "p"}{${name}}`;
}

function re2Name(property: string): string | undefined {
  const [key = "", value, more] = property.split("=");
  if (more !== undefined) return undefined;
  if (value === undefined) return category(key);
  if (key === "General_Category" || key === "gc") return category(value);
  const isScript = (key === "Script" || key === "sc") && value.length > 2 && SCRIPT_NAME.test(value);
  return isScript && !NO_SCRIPTS.has(value) ? value : undefined;
}

function category(name: string): string | undefined {
  return CATEGORIES.get(name) ?? (SHORT_CATEGORIES.has(name) ? name : undefined);
}
