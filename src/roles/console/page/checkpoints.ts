// The checkpoint that this browser keeps: a record's number and its hash. It lies outside of the broker's store,
// so that whoever writes the whole chain anew, or cuts its end, is found out by the next verification here.

export interface Checkpoint {
  /** `SEQ:HASH`, as the broker takes it. */
  readonly text: string;
  readonly notedAtMs: number;
}

const NAME = "callgate-checkpoint";
const FORM = /^(0|[1-9][0-9]{0,19}):[0-9a-f]{64}$/;

export function isCheckpoint(text: string): boolean {
  return FORM.test(text);
}

/** The part of a browser's storage that is used here. */
export interface Kept {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
}

/** undefined: there is none, or nothing can be read. */
export function notedCheckpoint(storage: Kept): Checkpoint | undefined {
  try {
    const value = JSON.parse(storage.getItem(NAME) ?? "null") as Partial<Checkpoint> | null;
    if (typeof value?.text !== "string" || typeof value.notedAtMs !== "number") return undefined;
    return isCheckpoint(value.text) ? { text: value.text, notedAtMs: value.notedAtMs } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the browser took it. */
export function noteCheckpoint(storage: Kept, checkpoint: Checkpoint): boolean {
  try {
    storage.setItem(NAME, JSON.stringify(checkpoint));
    return true;
  } catch {
    return false;
  }
}

export function forgetCheckpoint(storage: Kept): void {
  try {
    storage.removeItem(NAME);
  } catch {
    // a browser that keeps nothing has nothing to forget
  }
}
