// When two member names of one object are the same name to somebody: exactly, or after NFKC and
// full case folding. Holds no parser. Invariant: a name that is plain folds to itself, so an object
// of plain names needs no second look-up, and what folding costs is charged to the parse.

const PLAIN = /^[\x20-\x40\x5b-\x7e]*$/;
const ASCII = /^[\x20-\x7e]*$/;
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;
/** Of a name that is not ASCII; one of its characters may fold to eighteen. */
const ODD_NAME_CHARS_MAX = 1024;
/** Of folded names, for the price of one value. */
const FOLDED_CHARS_PER_NODE = 16;

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
  // Before composing: a joiner between a letter and its accent would keep the two apart.
  const shown = name.replace(INVISIBLE, "").normalize("NFKC");
  return shown.toLowerCase().toUpperCase().toLowerCase().normalize("NFKC").replace(INVISIBLE, "");
}

/** `costly`: too long to be folded, or the budget is spent. */
export type NameVerdict = "new" | "repeated" | "costly";

/** The names that one object has had so far. */
export class NamesSeen {
  private readonly names: { has(name: string): boolean; keys(): Iterable<string> };
  /** Only once a name was not plain. */
  private folded: Set<string> | undefined;

  constructor(names: { has(name: string): boolean; keys(): Iterable<string> }) {
    this.names = names;
  }

  /** Whether the object has it already; to be asked before the name is set. */
  judge(name: string, budget: { nodesLeft: number }): NameVerdict {
    if (this.names.has(name)) return "repeated";
    if (this.folded === undefined) {
      if (isPlain(name)) return "new";
      this.folded = new Set(this.names.keys());
    }
    const folded = affordableFold(name, budget);
    if (folded === undefined) return "costly";
    if (this.folded.has(folded)) return "repeated";
    this.folded.add(folded);
    return "new";
  }
}

/** ASCII costs no more than reading it. */
function affordableFold(name: string, budget: { nodesLeft: number }): string | undefined {
  if (ASCII.test(name)) return foldedName(name);
  if (name.length > ODD_NAME_CHARS_MAX) return undefined;
  const folded = foldedName(name);
  budget.nodesLeft -= Math.floor(folded.length / FOLDED_CHARS_PER_NODE);
  return budget.nodesLeft < 0 ? undefined : folded;
}
