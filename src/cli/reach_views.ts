// What a policy comes to, as text: for each role a table of its tools, and each open way in words. Of a policy's
// own names nothing needs an escape, but a broker may have been told anything: all is escaped here.

import { visibleLine } from "../base/display.ts";
import type { Labelled } from "../client/answers.ts";
import type { OpenPath, PathHop, PolicyReach, Reachable, ToolReach } from "../client/load_answers.ts";
import { type Look, type Paint, PLAIN, plain, type Tone, toneOf } from "./paint.ts";

/** As `callgate.grants.explain` answers without a tool. */
export function reachText(value: unknown, _nowMs: number = 0, { paint }: Look = PLAIN): string {
  const reach = value as PolicyReach;
  const more = reach.more ? "There is more than is shown; ask for one role.\n" : "";
  return `${reachTable(reach, paint)}\n${pathsText(reach, paint)}${more}`;
}

/** The word of a table for a verdict. */
const WORDS: Readonly<Record<Reachable, string>> = {
  allow: "allow",
  conditional: "some",
  ask: "ask",
  deny: "-",
};

const LEGEND = `
allow: every call. some: those that a condition, a session pattern or a
remembered answer lets through. ask: a person is asked each time. -: none.
TRUSTED, UNTRUSTED: before and after the session has read something untrusted;
\`allow to internal\`: as long as it has read nothing of a higher class.
`;
const LEGEND_ANNOUNCED = "NAME.*: tools that its provider may announce there one day.\n";

export function reachTable({ roles }: Pick<PolicyReach, "roles">, paint: Paint = plain): string {
  if (roles.length === 0) return "no role reaches any tool: everything is denied\n";
  const headings = ["TOOL", "EFFECT", "TRUSTED", "UNTRUSTED"];
  const ofRoles = roles.map(({ role, tools }) => ({ role, rows: rowsOf(tools) }));
  const all = [headings, ...ofRoles.flatMap(({ rows }) => rows)];
  const widths = headings.map((_, i) => Math.max(...all.map((cells) => cells[i]?.length ?? 0)));
  const line = (tone: (cell: string) => Tone | undefined) => (cells: readonly string[]) => {
    const space = (cell: string, i: number) =>
      i === cells.length - 1 ? "" : " ".repeat((widths[i] ?? 0) - cell.length);
    return `  ${cells.map((cell, i) => `${paint(tone(cell), cell)}${space(cell, i)}`).join("  ")}`;
  };
  const heading = line(() => "heading");
  const tables = ofRoles.map(({ role, rows }) => {
    const named = `role ${paint("heading", visibleLine(role))}`;
    return `${[named, heading(headings), ...rows.map(line(verdictTone))].join("\n")}\n`;
  });
  const announced = roles.some(({ tools }) => tools.some(({ tool }) => tool.endsWith("*")));
  return `${tables.join("\n")}${LEGEND}${announced ? LEGEND_ANNOUNCED : ""}`;
}

/** Of a cell that says one thing; one that says several has none. */
function verdictTone(cell: string): Tone | undefined {
  if (cell === WORDS.deny) return "quiet";
  return cell === WORDS.allow || cell === WORDS.ask ? toneOf(cell) : undefined;
}

const BUILTIN_GROUP = /^callgate\.[^.]+\./;

/** One for each tool; the broker's own of one group that stand alike share one. */
function rowsOf(tools: readonly ToolReach[]): readonly (readonly string[])[] {
  const groups = new Map<string, ToolReach[]>();
  for (const tool of tools) {
    const group = BUILTIN_GROUP.exec(tool.tool)?.[0];
    const key = JSON.stringify(group === undefined ? [tool.tool] : [group, cellsOf(tool)]);
    const alike = groups.get(key);
    if (alike === undefined) groups.set(key, [tool]);
    else alike.push(tool);
  }
  return [...groups.values()].flatMap((alike) => {
    const [first] = alike;
    return first === undefined ? [] : [[nameOf(alike, first), effectsOf(alike), ...cellsOf(first)]];
  });
}

function nameOf(alike: readonly ToolReach[], { tool }: ToolReach): string {
  const group = BUILTIN_GROUP.exec(tool)?.[0] ?? "";
  return visibleLine(alike.length === 1 ? tool : `${group}{${alike.length} tools}`, 128);
}

function effectsOf(alike: readonly ToolReach[]): string {
  return visibleLine([...new Set(alike.map(({ effect }) => effect))].toSorted().join(", "), 20);
}

function cellsOf({ at }: ToolReach): readonly string[] {
  return [false, true].map((untrusted) => byClass(at.filter((one) => one.untrusted === untrusted)));
}

/** A verdict for each class, from the lowest: equal ones as one. */
function byClass(at: ToolReach["at"]): string {
  const pieces: { word: string; to: string }[] = [];
  for (const { class: dataClass, verdict } of at) {
    const word = WORDS[verdict] ?? visibleLine(verdict, 20);
    const last = pieces.at(-1);
    if (last?.word === word) last.to = dataClass;
    else pieces.push({ word, to: dataClass });
  }
  const told = pieces.map(({ word, to }, i) => (i === pieces.length - 1 ? word : `${word} to ${to}`));
  // That nothing is let through above goes without saying.
  const shut = told.length > 1 && told.at(-1) === WORDS.deny;
  return visibleLine((shut ? told.slice(0, -1) : told).join(", "), 60);
}

/** How many ways there are, in one sentence; empty where there is none. */
export function pathsSummary({ paths, more }: Pick<PolicyReach, "paths" | "more">): string {
  if (paths.length === 0) return "";
  const effects = [...new Set(paths.map(({ effect }) => effect))].toSorted(byHarm);
  const count = `${more ? "at least " : ""}${paths.length}`;
  const ways = paths.length === 1 && !more ? "way leads" : "ways lead";
  return `${count} ${ways} from untrusted content to ${either(effects)} without a person`;
}

const HARM = ["send", "spend", "execute", "write"];

function byHarm(a: string, b: string): number {
  return HARM.indexOf(a) - HARM.indexOf(b);
}

/** Ways that differ only in what is read, or in what is done with it, as one. */
export function pathsText({ paths }: Pick<PolicyReach, "paths">, paint: Paint = plain): string {
  if (paths.length === 0) return `${paint("good", NO_WAY)}\n`;
  return grouped(paths)
    .map((ways) => wayText(ways, paint))
    .join("");
}

const NO_WAY = "No way leads from untrusted content to an effect without a person.";

interface Ways {
  readonly first: OpenPath;
  readonly sources: readonly string[];
  readonly sinks: readonly string[];
}

function grouped(paths: readonly OpenPath[]): readonly Ways[] {
  const bySink = together(paths, ({ source: _, taint, ...rest }) => JSON.stringify([rest, taint.untrusted]));
  const ways = bySink.map((alike) => ({ first: alike[0], sources: alike.map(({ source }) => source) }));
  const alike = together(ways, ({ first: { source: _, sink: __, taint, ...rest }, sources }) =>
    JSON.stringify([rest, taint.untrusted, sources]),
  );
  return alike.map((some) => ({ ...some[0], sinks: some.map(({ first }) => first.sink) }));
}

type Some<T> = readonly [T, ...T[]];

/** In the order of the first of each. */
function together<T>(all: readonly T[], keyOf: (one: T) => string): readonly Some<T>[] {
  const groups = new Map<string, [T, ...T[]]>();
  for (const one of all) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return [...groups.values()];
}

function wayText({ first, sources, sinks }: Ways, paint: Paint): string {
  const { role, through, sink_role: last, effect, by } = first;
  const grants = by.length === 0 ? "" : ` (${by.length === 1 ? "grant" : "grants"} ${by.join(", ")})`;
  const start = `${role} reads results of ${either(sources)} (untrusted)`;
  const end = `can then use ${either(sinks)} (${effect}) without a person${grants}`;
  const hops = through.map((hop, i) => `  ${hopText(hop, through[i + 1]?.role ?? last)}`);
  const way = hops.length === 0 ? [`${start} and ${end}`] : [start, ...hops, `  ${last} ${end}`];
  const notes = [conditionNote(first), carriesNote(first), cleanNote(first)].filter((note) => note !== "");
  const shown = (tone: Tone) => (line: string) => `${paint(tone, visibleLine(line, 4000))}\n`;
  return [...way.map(shown("bad")), ...notes.map((note) => `    ${note}`).map(shown("quiet"))].join("");
}

/** How it gets to the next role. */
function hopText({ by, role, tool, store, taken_with: takenWith }: PathHop, next: string): string {
  if (by === "store")
    return `${role} puts it into the store ${store} with ${tool}; ${next} takes it out with ${takenWith ?? "?"}`;
  if (by === "call") return `${role} calls ${tool} with it; its provider ${next} calls in turn`;
  return `${role} answers ${next} with it, as the provider of ${tool}`;
}

function conditionNote({ verdict }: OpenPath): string {
  return verdict === "conditional" ? "only calls that a condition lets through: look at what it lets" : "";
}

/** Private data, untrusted content and a way out, in one session. */
function carriesNote({ carries }: OpenPath): string {
  return carries === "public" ? "" : `data up to ${carries} can go with it`;
}

function cleanNote({ taint, sink_role: role }: OpenPath): string {
  return taint.untrusted
    ? ""
    : `${role} counts as clean there (${labels(taint)}), since that result counts as trusted`;
}

function labels({ class: dataClass, untrusted }: Labelled): string {
  return `${dataClass}, ${untrusted ? "untrusted" : "trusted"}`;
}

function either(names: readonly string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}
