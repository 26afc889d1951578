// What a policy comes to, put in order for a person: a table with equal columns folded, what a change of
// taint would change, and the nodes and lines of the picture. Pure; the broker has worked it all out.

import type { Labelled } from "../../../client/answers.ts";
import type { OpenPath, PathHop, PolicyReach, Reachable, ToolReach } from "../../../client/load_answers.ts";

type At = ToolReach["at"][number];

/** The verdict at that taint; at one that is not told of, denied. */
export function verdictAt(tool: ToolReach, { class: name, untrusted }: Labelled): Reachable {
  return tool.at.find((one) => one.class === name && one.untrusted === untrusted)?.verdict ?? "deny";
}

export interface Changed {
  readonly tool: string;
  readonly from: Reachable;
  readonly to: Reachable;
}

/** The tools whose verdict is another at the second taint. */
export function changedBetween(tools: readonly ToolReach[], a: Labelled, b: Labelled): readonly Changed[] {
  return tools
    .map((tool) => ({ tool: tool.tool, from: verdictAt(tool, a), to: verdictAt(tool, b) }))
    .filter(({ from, to }) => from !== to);
}

/** Neighbouring taints that come to the same. */
export interface Span {
  readonly verdict: Reachable;
  readonly by: readonly string[];
  readonly taints: readonly Labelled[];
}

/** The columns of one trust: four classes, equal neighbours as one. */
export function spansOf(tool: ToolReach, untrusted: boolean): readonly Span[] {
  const spans: { verdict: Reachable; by: readonly string[]; taints: Labelled[] }[] = [];
  for (const at of tool.at.filter((one) => one.untrusted === untrusted)) {
    const last = spans.at(-1);
    if (last !== undefined && sameReach(last, at)) last.taints.push(at);
    else spans.push({ verdict: at.verdict, by: at.by, taints: [at] });
  }
  return spans;
}

function sameReach(a: Pick<At, "verdict" | "by">, b: Pick<At, "verdict" | "by">): boolean {
  return a.verdict === b.verdict && a.by.join("\n") === b.by.join("\n");
}

/** What has an effect outside: for these a way from untrusted content matters. */
const SINK_EFFECTS: ReadonlySet<string> = new Set(["send", "spend", "execute"]);
const OWN_PREFIX = "callgate.";

export type LineKind = "open" | "asked" | "free" | "clean";

export interface PictureLine {
  readonly from: string;
  readonly to: string;
  /** `open`: on a path without a person. `asked`: a person is asked. `free`: a read without danger by itself. `clean`: only as long as nothing untrusted was read. */
  readonly kind: LineKind;
  readonly words: string;
}

export interface PictureNode {
  readonly id: string;
  readonly name: string;
  readonly note: string;
}

export interface Picture {
  readonly sources: readonly PictureNode[];
  readonly roles: readonly PictureNode[];
  readonly sinks: readonly PictureNode[];
  /** From a source to a role, from a role to a sink, and from a role to a role (through a store). */
  readonly lines: readonly PictureLine[];
  /** Something was left out for want of room. */
  readonly more: boolean;
}

/** Nodes of one column. */
const NODES_MAX = 14;

const sourceId = (tool: string) => `source ${tool}`;
const roleId = (role: string) => `role ${role}`;
const sinkId = (tool: string) => `sink ${tool}`;

export function pictureOf({ roles, paths, more }: PolicyReach): Picture {
  const lines = new Map<string, PictureLine>();
  for (const { role, tools } of roles) {
    for (const tool of tools) for (const line of linesOf(role, tool)) add(lines, line);
  }
  for (const path of paths) for (const line of linesOfPath(path)) add(lines, line);
  const all = [...lines.values()];
  const effects = effectsOf(roles);
  const columns = [
    nodesOf(all, "source ", () => "brings untrusted text"),
    nodesOf(all, "role ", () => ""),
    nodesOf(all, "sink ", (name) => effects.get(name) ?? ""),
  ];
  const [sources = [], inRoles = [], sinks = []] = columns.map((nodes) => nodes.slice(0, NODES_MAX));
  const shown = new Set([...sources, ...inRoles, ...sinks].map(({ id }) => id));
  return {
    sources,
    roles: inRoles,
    sinks,
    lines: all.filter(({ from, to }) => shown.has(from) && shown.has(to)),
    more: more || columns.some((nodes) => nodes.length > NODES_MAX),
  };
}

/** Of two lines between the same the graver stays. */
const GRAVITY: Readonly<Record<LineKind, number>> = { open: 3, asked: 1, free: 2, clean: 0 };

function add(lines: Map<string, PictureLine>, line: PictureLine): void {
  const key = `${line.from} > ${line.to}`;
  const before = lines.get(key);
  if (before === undefined || GRAVITY[line.kind] > GRAVITY[before.kind]) lines.set(key, line);
}

function linesOf(role: string, tool: ToolReach): readonly PictureLine[] {
  if (tool.tool.startsWith(OWN_PREFIX)) return [];
  const lines: PictureLine[] = [];
  const reads = strongest(tool.at);
  if (tool.brings.untrusted && reads !== "deny") {
    const kind = reads === "ask" ? "asked" : "free";
    lines.push({ from: sourceId(tool.tool), to: roleId(role), kind, words: `${role} reads ${tool.tool}` });
  }
  const kind = SINK_EFFECTS.has(tool.effect) ? sinkKind(tool) : undefined;
  if (kind !== undefined)
    lines.push({ from: roleId(role), to: sinkId(tool.tool), kind, words: `${role} calls ${tool.tool}` });
  return lines;
}

const STRENGTH: readonly Reachable[] = ["deny", "ask", "conditional", "allow"];

function strongest(at: readonly At[]): Reachable {
  return at.reduce<Reachable>(
    (most, { verdict }) => (STRENGTH.indexOf(verdict) > STRENGTH.indexOf(most) ? verdict : most),
    "deny",
  );
}

/** What a sink is to a role that has read something untrusted. An open one is told by its path. */
function sinkKind(tool: ToolReach): LineKind | undefined {
  const tainted = strongest(tool.at.filter(({ untrusted }) => untrusted));
  if (tainted === "ask") return "asked";
  if (tainted !== "deny") return "free";
  const clean = strongest(tool.at);
  if (clean === "deny") return undefined;
  return clean === "ask" ? "asked" : "clean";
}

function linesOfPath(path: OpenPath): readonly PictureLine[] {
  const kind = "open";
  const { role, source, through, sink_role: sinkRole, sink } = path;
  const hops = through.map((hop, i) => {
    const next = through[i + 1]?.role ?? sinkRole;
    return { from: roleId(hop.role), to: roleId(next), kind, words: hopWords(hop, next) } as const;
  });
  return [
    { from: sourceId(source), to: roleId(role), kind, words: `${role} reads ${source}` },
    ...hops.filter(({ from, to }) => from !== to),
    { from: roleId(sinkRole), to: sinkId(sink), kind, words: `${sinkRole} calls ${sink}` },
  ];
}

export function hopWords({ by, role, tool, store, taken_with: taken }: PathHop, next: string): string {
  switch (by) {
    case "store":
      return `${role} puts it into store ${store} with ${tool}, ${next} takes it out with ${taken ?? "?"}`;
    case "call":
      return `${role} calls ${tool}, whose provider ${next} calls in turn`;
    case "answer":
      return `${role} answers ${next} with ${tool}`;
  }
}

/** A way in one sentence. */
export function pathWords(path: OpenPath): string {
  const { role, source, through, sink_role: sinkRole, sink, effect, verdict } = path;
  const hops = through.map((hop, i) => `; ${hopWords(hop, through[i + 1]?.role ?? sinkRole)}`);
  const under = verdict === "conditional" ? " for calls that fit a condition" : "";
  return `${role} reads ${source}${hops.join("")}; then ${sinkRole} calls ${sink} (${effect}) without a person${under}.`;
}

function effectsOf(roles: PolicyReach["roles"]): ReadonlyMap<string, string> {
  return new Map(roles.flatMap(({ tools }) => tools.map(({ tool, effect }) => [tool, effect] as const)));
}

/** Nodes with the gravest lines first, so that what does not fit matters least. */
function nodesOf(
  lines: readonly PictureLine[],
  prefix: string,
  note: (name: string) => string,
): readonly PictureNode[] {
  const gravity = new Map<string, number>();
  for (const { from, to, kind } of lines) {
    for (const id of [from, to].filter((one) => one.startsWith(prefix)))
      gravity.set(id, Math.max(gravity.get(id) ?? 0, GRAVITY[kind]));
  }
  return [...gravity]
    .toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    .map(([id]) => ({ id, name: id.slice(prefix.length), note: note(id.slice(prefix.length)) }));
}
