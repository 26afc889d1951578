// When two member names of one object are the same name to somebody: exactly, or after NFKC and
// full case folding. Holds no parser. Invariant: a name that is plain folds to itself, so an object
// of plain names needs no second look-up.

const PLAIN = /^[\x20-\x40\x5b-\x7e]*$/;
const ASCII = /^[\x20-\x7e]*$/;
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;

/** ASCII without capitals. */
function isPlain(name: string): boolean {
  return PLAIN.test(name);
}

/**
 * One text for all spellings of a name. The engine has no case folding; lower, upper and lower
 * again meets every full folding (`ẞ`, `ß`, `ss`) and a few names more, which errs towards
 * refusing. What never shows (soft hyphens, joiners) is left out, as NFKC_Casefold does.
 */
export function foldedName(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase();
  const folded = name.normalize("NFKC").toLowerCase().toUpperCase().toLowerCase().normalize("NFKC");
  return folded.replace(INVISIBLE, "");
}

/** The names that one object has had so far. */
export class NamesSeen {
  private readonly names: { has(name: string): boolean; keys(): Iterable<string> };
  /** Only once a name was not plain. */
  private folded: Set<string> | undefined;

  constructor(names: { has(name: string): boolean; keys(): Iterable<string> }) {
    this.names = names;
  }

  /** Whether the object has it already; to be asked before the name is set. */
  repeats(name: string): boolean {
    if (this.names.has(name)) return true;
    if (this.folded === undefined) {
      if (isPlain(name)) return false;
      this.folded = new Set(this.names.keys());
    }
    const folded = foldedName(name);
    if (this.folded.has(folded)) return true;
    this.folded.add(folded);
    return false;
  }
}
