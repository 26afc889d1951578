// What the thread that asks for a write and the one that writes say to each other. Types only.

export type BatchRequest = { readonly buffer: ArrayBuffer; readonly length: number } | "close";

/** The buffer comes back with the answer; `fault`: symbolic name of why nothing was written. */
export type BatchAnswer = "ready" | { readonly buffer: ArrayBuffer; readonly fault: string | undefined };

export interface WorkerData {
  /** Of the environment's file. */
  readonly path: string;
}
