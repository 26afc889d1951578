// The engine for patterns: RE2's compiler (the one library import) and a simulation of its program
// that counts every visit. The library's own matcher is not used: it keeps thousands of states per
// pattern, chosen by whoever sends the text, and its fallback is quadratic in the program. Here
// memory is fixed per pattern, and time is text times program at worst, charged as it goes.

import type { RE2JS } from "@bufbuild/re2";
import { fault, ok, type Result } from "../base/faults.ts";

/** Who pays for a match. */
export interface StepMeter {
  /** False: the budget is spent, stop. */
  visit(visits: number): boolean;
}

export interface LinearPattern {
  /** Whether it is found anywhere in the text. False where the meter said stop: ask the meter. */
  matches(text: string, meter: StepMeter): boolean;
}

/** Takes RE2 syntax. */
export type PatternCompiler = (expression: string) => Result<LinearPattern>;

/** Instructions of one compiled pattern. */
export const PROGRAM_SIZE_MAX = 8192;

/** Said of each expression where the files of a library that is loaded when it is needed are not there (any more). */
export const LIBRARY_GONE =
  "can't be read: the program's own files are gone, as after an upgrade; restart it";

/** Loads the library, once, when the first schema with a pattern is compiled. */
export async function loadPatternCompiler(): Promise<PatternCompiler> {
  const library = await import("@bufbuild/re2").catch(() => undefined);
  if (library === undefined) return () => fault(LIBRARY_GONE);
  const { RE2JS } = library;
  return (expression) => {
    try {
      const program = RE2JS.compile(expression).re2().prog;
      if (program.numInst() > PROGRAM_SIZE_MAX)
        return fault("is too large once its repetitions are written out");
      return ok(new Simulation(program));
    } catch {
      // The library's message quotes the pattern, which may be a hostile provider's.
      return fault("is not accepted by the linear-time engine");
    }
  };
}

type Program = ReturnType<RE2JS["re2"]>["prog"];
type Instruction = Program["inst"][number];

// The library keeps these numbers to itself; a test compares the simulation with the library's matcher.
const ALT = 1;
const ALT_MATCH = 2;
const CAPTURE = 3;
const EMPTY_WIDTH = 4;
const FAIL = 5;
const MATCH = 6;
const NOP = 7;

const BEGIN_LINE = 0x01;
const END_LINE = 0x02;
const BEGIN_TEXT = 0x04;
const END_TEXT = 0x08;
const WORD_BOUNDARY = 0x10;
const NO_WORD_BOUNDARY = 0x20;

const VISITS_PER_CHARGE = 512;
const STAMP_MAX = 0x3fff_ffff;
const TEXT_EDGE = -1;

class Simulation implements LinearPattern {
  readonly #instructions: readonly Instruction[];
  readonly #start: number;
  /** Every match begins at the beginning of the text. */
  readonly #anchored: boolean;
  /** Instructions that wait for the next character. */
  #threads: Int32Array;
  #next: Int32Array;
  #nextCount = 0;
  readonly #stack: Int32Array;
  /** The last position (as a stamp) at which an instruction was put on the stack. */
  readonly #stamps: Int32Array;
  #stamp = 0;
  #visits = 0;
  #matched = false;

  constructor(program: Program) {
    const size = program.numInst();
    this.#instructions = program.inst;
    this.#start = program.start;
    this.#anchored = (program.startCond() & BEGIN_TEXT) !== 0;
    this.#threads = new Int32Array(size);
    this.#next = new Int32Array(size);
    this.#stack = new Int32Array(size);
    this.#stamps = new Int32Array(size);
  }

  matches(text: string, meter: StepMeter): boolean {
    this.#begin();
    let before = TEXT_EDGE;
    let at = 0;
    let after = characterAt(text, at);
    this.#follow(this.#start, edges(before, after));
    while (!this.#matched && after !== TEXT_EDGE && !(this.#anchored && this.#nextCount === 0)) {
      if (this.#visits >= VISITS_PER_CHARGE && !this.#pay(meter)) return false;
      at += after > 0xffff ? 2 : 1;
      const consumed = after;
      before = consumed;
      after = characterAt(text, at);
      this.#advance(consumed, edges(before, after));
    }
    return this.#pay(meter) && this.#matched;
  }

  #begin(): void {
    if (this.#stamp >= STAMP_MAX) {
      this.#stamps.fill(0);
      this.#stamp = 0;
    }
    this.#stamp++;
    this.#nextCount = 0;
    this.#matched = false;
  }

  #pay(meter: StepMeter): boolean {
    const visits = this.#visits;
    this.#visits = 0;
    return meter.visit(visits);
  }

  #advance(consumed: number, context: number): void {
    const count = this.#nextCount;
    [this.#threads, this.#next] = [this.#next, this.#threads];
    this.#nextCount = 0;
    this.#stamp++;
    this.#visits += count + 1;
    for (let index = 0; index < count; index++) {
      const instruction = this.#instructions[this.#threads[index]!]!;
      if (instruction.matchRune(consumed)) this.#follow(instruction.out, context);
    }
    if (!this.#anchored) this.#follow(this.#start, context);
  }

  /** Adds to `#next` whatever is reached from here without a character. */
  #follow(from: number, context: number): void {
    let depth = this.#push(0, from);
    while (depth > 0) {
      depth--;
      const pc = this.#stack[depth]!;
      const instruction = this.#instructions[pc]!;
      this.#visits++;
      switch (instruction.op) {
        case ALT:
        case ALT_MATCH:
          depth = this.#push(this.#push(depth, instruction.arg), instruction.out);
          break;
        case CAPTURE:
        case NOP:
          depth = this.#push(depth, instruction.out);
          break;
        case EMPTY_WIDTH:
          if ((instruction.arg & ~context) === 0) depth = this.#push(depth, instruction.out);
          break;
        case MATCH:
          this.#matched = true;
          break;
        case FAIL:
          break;
        default:
          this.#next[this.#nextCount++] = pc;
      }
    }
  }

  /** Each instruction once per position, so the stack never outgrows the program. */
  #push(depth: number, pc: number): number {
    if (this.#stamps[pc] === this.#stamp) return depth;
    this.#stamps[pc] = this.#stamp;
    this.#stack[depth] = pc;
    return depth + 1;
  }
}

function characterAt(text: string, index: number): number {
  return text.codePointAt(index) ?? TEXT_EDGE;
}

/** Which empty-width conditions hold between two characters. */
function edges(before: number, after: number): number {
  let holds = isWord(before) === isWord(after) ? NO_WORD_BOUNDARY : WORD_BOUNDARY;
  if (before === TEXT_EDGE) holds |= BEGIN_TEXT | BEGIN_LINE;
  if (after === TEXT_EDGE) holds |= END_TEXT | END_LINE;
  return holds;
}

function isWord(character: number): boolean {
  return (
    (character >= 0x61 && character <= 0x7a) ||
    (character >= 0x41 && character <= 0x5a) ||
    (character >= 0x30 && character <= 0x39) ||
    character === 0x5f
  );
}
