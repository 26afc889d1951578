// Labels of data and their join. A session's taint, a tool's floor and a result's labels are one
// type; joining only ever rises.

export const DATA_CLASSES = ["public", "internal", "confidential", "restricted"] as const;
/** Lowest to highest as listed in DATA_CLASSES. */
export type DataClass = (typeof DATA_CLASSES)[number];

export interface Labels {
  readonly class: DataClass;
  readonly untrusted: boolean;
}

export const CLEAN: Labels = { class: "public", untrusted: false };

const RANK: Readonly<Record<DataClass, number>> = { public: 0, internal: 1, confidential: 2, restricted: 3 };

export function classAbove(a: DataClass, b: DataClass): boolean {
  return RANK[a] > RANK[b];
}

/** The lowest labels that cover both. Returns `a` itself where it already covers `b`. */
export function join(a: Labels, b: Labels): Labels {
  if (covers(a, b)) return a;
  return { class: classAbove(b.class, a.class) ? b.class : a.class, untrusted: a.untrusted || b.untrusted };
}

/** Whether nothing of `b` is above `a`. */
export function covers(a: Labels, b: Labels): boolean {
  return RANK[a.class] >= RANK[b.class] && (a.untrusted || !b.untrusted);
}
