// One JSON document as a line for a program that we know nothing of. Some readers of lines (Node's own readline from 24 on) also end one
// at U+2028 and U+2029, which JSON lets stand in a string as they are: there a text that somebody sends could go on as a
// message of its own. Escaped they mean the same.

const SEPARATORS = /[\u2028\u2029]/;
const EACH_SEPARATOR = /[\u2028\u2029]/g;

/** `json`: without line feeds between its tokens, as `JSON.stringify` makes it. */
export function messageLine(json: string): string {
  if (!SEPARATORS.test(json)) return `${json}\n`;
  return `${json.replace(EACH_SEPARATOR, (one) => (one === "\u2028" ? "\\u2028" : "\\u2029"))}\n`;
}
