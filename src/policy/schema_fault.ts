// What can be wrong with a schema itself, and the list that gathers all of it. Nothing here looks
// at arguments. A list is bounded: a hostile schema can't make its own report large.

/**
 * What kind of fault it is. Closed.
 * `root`: the schema can't describe a tool's arguments. `dialect`: another draft, or a keyword that
 * means something else in the named one. `keyword`: unknown, perhaps misspelt. `unsupported`: known
 * and refused. `value`: a keyword with a value it can't have. `reference`: leads out of the
 * document, nowhere, or round in a circle. `pattern`: no linear-time reading. `bound`: too large.
 */
export type SchemaFaultCode =
  | "root"
  | "dialect"
  | "keyword"
  | "unsupported"
  | "value"
  | "reference"
  | "pattern"
  | "bound";

export interface SchemaFault {
  /** JSON Pointer into the schema. */
  readonly pointer: string;
  /** What is wrong and what would be right. */
  readonly message: string;
}

export interface CodedSchemaFault extends SchemaFault {
  readonly code: SchemaFaultCode;
}

const FAULTS_MAX = 100;
const POINTER_CHARS_MAX = 1024;

export class FaultList {
  readonly #faults: CodedSchemaFault[] = [];

  add(pointer: string, code: SchemaFaultCode, message: string): void {
    if (!this.full) this.#faults.push({ pointer: shortened(pointer), code, message });
  }

  /** Nothing more is kept: a message need not be made. */
  get full(): boolean {
    return this.#faults.length >= FAULTS_MAX;
  }

  get any(): boolean {
    return this.#faults.length > 0;
  }

  get all(): readonly CodedSchemaFault[] {
    return this.#faults;
  }
}

/** To the innermost place whose pointer is short enough. */
function shortened(pointer: string): string {
  if (pointer.length <= POINTER_CHARS_MAX) return pointer;
  return pointer.slice(0, pointer.lastIndexOf("/", POINTER_CHARS_MAX));
}
