// How words, paths and whole files are written for systemd. Invariant: what a path or name could mean to it (a
// specifier, a variable, a word's end) is written so that it means itself.

/** A template's instance, which is the name of a role; no text that comes from elsewhere has it. */
export const INSTANCE = "\0i";
/** Where systemd puts a unit's credentials. */
export const CREDENTIALS = "\0d";

/** A word of a line that systemd splits and expands: `ExecStart=`. */
export function commandWord(text: string): string {
  return word(text.replaceAll("$", "$$$$"));
}

/**
 * A path in a list of them, where systemd knows specifiers and words, but no variables: `BindPaths=`. One with a colon, a
 * quote or a backslash can't be written the same way in all of them, and is refused before it comes here.
 */
export function pathWord(path: string): string {
  return word(path);
}

/** What `pathWord` has written. */
export function readPathWord(written: string): string {
  const plain = written.startsWith('"') ? written.slice(1, -1).replaceAll(/\\(["\\])/g, "$1") : written;
  return plain.replaceAll("%%", "%");
}

function word(text: string): string {
  const escaped = text.replaceAll("%", "%%").replaceAll(INSTANCE, "%i").replaceAll(CREDENTIALS, "%d");
  if (/^[A-Za-z0-9_@%$+=:,./-]+$/.test(escaped)) return escaped;
  return `"${escaped.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

export function commandLine(words: readonly string[]): string {
  return words.map(commandWord).join(" ");
}

export type Assignment = readonly [name: string, value: string];

/** A section; an assignment of a comment's name (`#`) is a comment, an empty line one without a name. */
export function section(name: string, lines: readonly Assignment[]): string {
  return `[${name}]\n${lines.map(assigned).join("")}`;
}

function assigned([name, value]: Assignment): string {
  if (name === "") return "\n";
  return name === "#" ? `# ${value}\n` : `${name}=${value}\n`;
}

/** A unit's text: what is said of it, and its sections. */
export function unitText(about: string, ...sections: readonly string[]): string {
  const comment = about
    .trim()
    .split("\n")
    .map((line) => `# ${line}`.trimEnd())
    .join("\n");
  return `${comment}\n\n${sections.join("\n")}`;
}
