// `callgate check`: what is wrong with a config, what in it is dangerous, one line each in the form that
// editors jump to, and what its policy comes to. Decides nothing itself: how a config is loaded is passed in.

import type { Result } from "../base/faults.ts";
import type { PolicyReach } from "../client/load_answers.ts";
import { type Paint, plain } from "./paint.ts";
import { dotGraph } from "./reach_dot.ts";
import { reachGraph } from "./reach_graph.ts";
import { mermaidGraph } from "./reach_mermaid.ts";
import { pathsSummary, pathsText, reachTable } from "./reach_views.ts";

export interface Finding {
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
  readonly message: string;
}

export interface Warning extends Finding {
  readonly code: string;
}

export interface Checked {
  readonly warnings: readonly Warning[];
  /** What the policy comes to; `writes`: a write counts as the end of a way too. */
  readonly reach: (writes: boolean) => PolicyReach;
}

/** Either all errors, or the warnings of a config without any. */
export type LoadConfig = (path: string) => Promise<Result<Checked, readonly Finding[]>>;

export interface CheckOptions {
  readonly path: string;
  /** One JSON object instead of lines. */
  readonly json: boolean;
  /** The table of roles and tools. */
  readonly reach: boolean;
  /** The open ways in words. */
  readonly paths: boolean;
  /** A picture instead of all else; findings then go to standard error. */
  readonly graph: "dot" | "mermaid" | undefined;
  /** A write counts as the end of a way too. */
  readonly writes: boolean;
  readonly load: LoadConfig;
  /** Take whole lines, with their line feeds: standard output, and standard error. */
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Colours of what is told to a person; without it: none. */
  readonly paint?: Paint | undefined;
}

/** The exit code: 0 where there is no error, else 1. Warnings and open ways do not count. */
export async function checkConfig(options: CheckOptions): Promise<number> {
  const { path, json, graph, writes, out, err, paint = plain } = options;
  const loaded = await options.load(path);
  const errors = loaded.ok ? [] : loaded.fault;
  const warnings = loaded.ok ? loaded.value.warnings : [];
  const reach = loaded.ok ? loaded.value.reach(writes) : undefined;
  if (json) out(asJson(options, errors, warnings, reach));
  else {
    const told = graph === undefined ? out : err;
    told(asLines(path, errors, warnings, paint));
    if (reach !== undefined) told(reachLines(options, reach, paint));
    if (reach !== undefined && graph !== undefined) out(graphText(graph, reach));
  }
  return loaded.ok ? 0 : 1;
}

function asJson(
  { path, reach: table, paths }: CheckOptions,
  errors: readonly Finding[],
  warnings: readonly Warning[],
  reach: PolicyReach | undefined,
): string {
  const places = (found: Finding) => ({ line: found.line, column: found.column, message: found.message });
  const report = {
    file: path,
    ok: errors.length === 0,
    errors: errors.map(places),
    warnings: warnings.map((warning) => ({ code: warning.code, ...places(warning) })),
    ...((table || paths) && reach !== undefined ? { reach } : {}),
  };
  return `${JSON.stringify(report)}\n`;
}

function asLines(
  path: string,
  errors: readonly Finding[],
  warnings: readonly Warning[],
  paint: Paint,
): string {
  const place = (found: Finding) => `${path}:${found.line}:${found.column}`;
  const lines = [
    ...errors.map((error) => `${place(error)}: ${paint("bad", "error")}: ${error.message}`),
    ...warnings.map(
      (warning) => `${place(warning)}: ${paint("waiting", "warning")}: ${warning.message} [${warning.code}]`,
    ),
    summary(path, errors.length, warnings.length),
  ];
  return `${lines.join("\n")}\n`;
}

/** What was asked for of table and ways; of ways at least how many there are. */
function reachLines(
  { path, reach: table, paths, writes }: CheckOptions,
  reach: PolicyReach,
  paint: Paint,
): string {
  const told = pathsSummary(reach);
  const how = `callgate check --config ${path} --paths${writes ? " --sinks write" : ""}`;
  const more = reach.more && paths ? "There are more ways than are told here.\n" : "";
  return [
    table ? `\n${reachTable(reach, paint)}` : "",
    told === "" ? "" : `${table || paths ? "\n" : ""}${paint("bad", told)}${paths ? "" : `: ${how}`}\n`,
    paths ? `${told === "" ? "\n" : ""}${pathsText(reach, paint)}${more}` : "",
  ].join("");
}

function graphText(graph: "dot" | "mermaid", reach: PolicyReach): string {
  const drawn = reachGraph(reach);
  return graph === "dot" ? dotGraph(drawn) : mermaidGraph(drawn);
}

function summary(path: string, errors: number, warnings: number): string {
  if (errors > 0) return `${path}: ${counted(errors, "error")}; this config would be refused`;
  return warnings > 0
    ? `${path}: no errors, ${counted(warnings, "warning")}`
    : `${path}: no errors, no warnings`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
