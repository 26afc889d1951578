// The grammars of every identifier. Session ids are the caller's (spec: wire, Scalars); names of
// roles, tools and grants are the owner's: closed lower-case ASCII without `:`, so that
// `ROLE:SESSION` splits one way only and nothing in a name can look like something else.

export const SESSION_ID_CHARS_MAX = 128;
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$/;
const ROLE_NAME = /^[a-z][a-z0-9_-]{0,47}$/;
const TOOL_NAME = /^[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)*$/;
const GRANT_ID = /^[a-z][a-z0-9._-]{0,63}$/;

export const TOOL_NAME_CHARS_MAX = 128;
/** The broker's own tools; nobody else's name may begin so. */
export const BUILTIN_PREFIX = "callgate.";

export const U64_MAX = 18_446_744_073_709_551_615n;

export function isSessionId(text: string): boolean {
  return SESSION_ID.test(text);
}

export function isRoleName(text: string): boolean {
  return ROLE_NAME.test(text);
}

export function isToolName(text: string): boolean {
  return text.length <= TOOL_NAME_CHARS_MAX && TOOL_NAME.test(text);
}

export function isGrantId(text: string): boolean {
  return GRANT_ID.test(text);
}

/** A name, or a prefix that ends in `*`; never `*` within. What it matches is told by `patternMatches`. */
export type Pattern = string;

const TOOL_PATTERN = /^(?:[a-z][a-z0-9_.-]*)?\*$/;
const SESSION_PATTERN = /^(?:[A-Za-z0-9][A-Za-z0-9._:@/-]*)?\*$/;

export function isToolPattern(text: string): boolean {
  return isToolName(text) || (text.length <= TOOL_NAME_CHARS_MAX && TOOL_PATTERN.test(text));
}

export function isSessionPattern(text: string): boolean {
  return isSessionId(text) || (text.length <= SESSION_ID_CHARS_MAX + 1 && SESSION_PATTERN.test(text));
}

export function patternMatches(pattern: Pattern, text: string): boolean {
  return pattern.endsWith("*") ? text.startsWith(pattern.slice(0, -1)) : text === pattern;
}

/** Only a pattern that itself begins `callgate.` reaches a built-in: `*` and `c*` never do. */
export function toolPatternMatches(pattern: Pattern, tool: string): boolean {
  if (tool.startsWith(BUILTIN_PREFIX) && !pattern.startsWith(BUILTIN_PREFIX)) return false;
  return patternMatches(pattern, tool);
}
