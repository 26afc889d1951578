// Words of command lines that are told to people, and written into scripts.

/** One word of a command line, for a shell to take as it is: in single quotes nothing means anything to it but the quote itself. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
