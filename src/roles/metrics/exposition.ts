// Prometheus' text format, version 0.0.4: families of samples to text. Pure; which metrics there are is
// prometheus.ts. Invariant: a label's value can't end its line or its quotes.

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  /** A number, or the decimal text of one that a double does not hold. */
  readonly value: number | string;
}

export interface Family {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  readonly samples: readonly Sample[];
}

/** One histogram of a family: counts by bucket, not cumulative, the last above all bounds. */
export interface Buckets {
  readonly labels: Readonly<Record<string, string>>;
  /** Upper bounds in seconds, ascending. */
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  /** In seconds. */
  readonly sum: number;
}

export interface HistogramFamily {
  readonly name: string;
  readonly type: "histogram";
  readonly help: string;
  readonly histograms: readonly Buckets[];
}

/** A family without samples is left out. */
export function expositionText(families: readonly (Family | HistogramFamily)[]): string {
  return families.map((family) => familyText(family)).join("");
}

function familyText(family: Family | HistogramFamily): string {
  const { name, type, help } = family;
  const lines =
    family.type === "histogram"
      ? family.histograms.flatMap((one) => histogramLines(name, one))
      : family.samples.map(({ labels, value }) => line(name, labels, value));
  if (lines.length === 0) return "";
  return `# HELP ${name} ${escapedHelp(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function histogramLines(name: string, { labels, bounds, counts, sum }: Buckets): readonly string[] {
  let below = 0;
  const buckets = bounds.map((bound, at) => {
    below += counts[at] ?? 0;
    return line(`${name}_bucket`, { ...labels, le: numberText(bound) }, below);
  });
  const all = counts.reduce((total, count) => total + count, 0);
  return [
    ...buckets,
    line(`${name}_bucket`, { ...labels, le: "+Inf" }, all),
    line(`${name}_sum`, labels, sum),
    line(`${name}_count`, labels, all),
  ];
}

function line(name: string, labels: Readonly<Record<string, string>>, value: number | string): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapedLabel(text)}"`);
  const text = typeof value === "number" ? numberText(value) : value;
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${text}\n`;
}

/** As Go reads it. */
function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "+Inf" : "-Inf";
}

function escapedLabel(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\\"\n]/g, (character) => (character === "\n" ? "\\n" : `\\${character}`));
}

function escapedHelp(text: string): string {
  return text.replace(/[\\\n]/g, (character) => (character === "\n" ? "\\n" : "\\\\"));
}
