// Charts over time, drawn with uPlot; only this file knows it. Beside each chart a table says its values now (or
// where the pointer is) and the highest, for those who don't see it. Colours are the style sheet's, and lines
// differ by their dashes too.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import UPlot from "uplot";
import { highest, latest, type Values } from "./load_series.ts";

export interface ChartLine {
  readonly name: string;
  readonly values: Values;
  readonly tone: "good" | "warn" | "bad" | "info";
}

export interface ChartProps {
  readonly title: string;
  /** What a value is, for the table's readers: `each second`. */
  readonly unit: string;
  readonly atSeconds: readonly number[];
  readonly lines: readonly ChartLine[];
  /** As a value is written. */
  readonly format: (value: number) => string;
}

const HEIGHT = 150;
const DASHES: readonly (readonly number[])[] = [[], [7, 4], [2, 3]];

export function Chart(props: ChartProps) {
  const { title, unit, lines, format } = props;
  const [pointed, setPointed] = useState<number>();
  const scheme = useColourScheme();
  const names = lines.map(({ name }) => name).join(", ");
  return (
    <figure class="chart panel">
      <figcaption class="panel-head">
        <h2>{title}</h2>
        <span class="muted">{unit}</span>
      </figcaption>
      <Plot key={`${scheme}: ${names}`} {...props} onPoint={setPointed} />
      <ValueTable title={title} lines={lines} format={format} pointed={pointed} />
    </figure>
  );
}

interface PlotProps extends ChartProps {
  /** The index of the moment that the pointer is at. */
  readonly onPoint: (index: number | undefined) => void;
}

/** Made once; new values are handed to it. Other lines or another scheme are another one. */
function Plot(props: PlotProps) {
  const { atSeconds, lines } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | undefined>(undefined);
  const first = useRef(props);
  const data = useMemo(() => dataOf(atSeconds, lines), [atSeconds, lines]);
  useEffect(() => {
    const holder = place.current;
    if (holder === null) return;
    const made = new UPlot(optionsOf(first.current, holder), dataOf([], first.current.lines), holder);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: holder.clientWidth, height: HEIGHT }));
    observer.observe(holder);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(data), [data]);
  return <div class="chart-place" ref={place} aria-hidden="true" />;
}

function dataOf(atSeconds: readonly number[], lines: readonly ChartLine[]): UPlot.AlignedData {
  return [[...atSeconds], ...lines.map(({ values }) => [...values])];
}

interface ValueTableProps extends Pick<ChartProps, "title" | "lines" | "format"> {
  readonly pointed: number | undefined;
}

function ValueTable({ title, lines, format, pointed }: ValueTableProps) {
  const text = (value: number | null | undefined) =>
    value === null || value === undefined ? "-" : format(value);
  return (
    <table class="values">
      <caption class="unseen">{title}: latest and highest values</caption>
      <thead>
        <tr>
          <th scope="col">
            <span class="unseen">Line</span>
          </th>
          <th scope="col">{pointed === undefined ? "now" : "there"}</th>
          <th scope="col">highest</th>
        </tr>
      </thead>
      <tbody>
        {lines.map(({ name, values, tone }, i) => (
          <tr key={name}>
            <th scope="row">
              <svg class={`swatch swatch-${tone}`} viewBox="0 0 24 8" aria-hidden="true">
                <path class={`dash-${i}`} d="M1 4h22" />
              </svg>
              {name}
            </th>
            <td>{text(pointed === undefined ? latest(values) : values[pointed])}</td>
            <td>{text(highest(values))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface Colours {
  readonly lines: readonly string[];
  readonly text: string;
  readonly grid: string;
}

/** What the style sheet makes of them in this scheme: a canvas knows no custom properties. */
function coloursOf(holder: HTMLElement): Colours {
  const figure = holder.closest("figure");
  const swatches = [...(figure?.querySelectorAll(".swatch") ?? [])];
  const style = getComputedStyle(holder);
  return {
    lines: swatches.map((swatch) => getComputedStyle(swatch).color),
    text: style.color,
    grid: style.outlineColor,
  };
}

function optionsOf({ lines, format, onPoint }: PlotProps, holder: HTMLElement): UPlot.Options {
  const colours = coloursOf(holder);
  const axis = { stroke: colours.text, font: "11px system-ui", ticks: { show: false } };
  const grid = { stroke: colours.grid, width: 1 };
  return {
    width: holder.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } },
    axes: [
      { ...axis, grid: { show: false }, size: 26, space: 70, values: (_, seconds) => seconds.map(clock) },
      { ...axis, grid, size: 52, space: 32, values: (_, values) => values.map((value) => format(value)) },
    ],
    series: [{}, ...lines.map((line, i) => seriesOf(line, colours.lines[i] ?? "", DASHES[i] ?? []))],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)] },
  };
}

function seriesOf({ name }: ChartLine, stroke: string, dash: readonly number[]): UPlot.Series {
  return {
    label: name,
    stroke,
    width: 1.6,
    dash: [...dash],
    spanGaps: false,
    points: { show: true, size: 4, fill: stroke, filter: lonely },
  };
}

/** A value between two gaps has no line, so it is shown as a point. */
const lonely: UPlot.Series.Points.Filter = (plot, series) => {
  const values = plot.data[series] ?? [];
  const isNone = (i: number) => (values[i] ?? null) === null;
  return [...values.keys()].filter((i) => !isNone(i) && isNone(i - 1) && isNone(i + 1));
};

function clock(seconds: number): string {
  const date = new Date(seconds * 1000);
  const two = (number: number) => String(number).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

const DARK = "(prefers-color-scheme: dark)";

function useColourScheme(): "dark" | "light" {
  const [dark, setDark] = useState(() => matchMedia(DARK).matches);
  useEffect(() => {
    const query = matchMedia(DARK);
    const changed = () => setDark(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return dark ? "dark" : "light";
}
