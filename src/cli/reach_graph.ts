// The picture of a policy before anything draws it: what brings untrusted content on the left, roles in the middle,
// effects on the right, and how calls get from one to the other. Tools that stand to all roles alike are one
// box. Built-in tools are left out: they are no way in or out.
// Invariant: what is drawn as `open` is exactly what the told ways go along.

import type { OpenPath, PolicyReach, Reachable, ToolReach } from "../client/load_answers.ts";

export type BoxKind = "source" | "clean_source" | "role" | "store" | "sink" | "write";

export interface Box {
  readonly id: string;
  readonly kind: BoxKind;
  /** One below the other. Names as the policy has them: not escaped. */
  readonly lines: readonly string[];
  /** What it is, below them. */
  readonly note: string;
}

/**
 * `open`: on a way from untrusted content to an effect without a person. `free`: without a person. `asked`: a person
 * is asked, at least once something untrusted was read. `clean`: only before that.
 */
export type LineKind = "open" | "free" | "asked" | "clean";

export interface Line {
  readonly from: string;
  readonly to: string;
  readonly kind: LineKind;
  /** Only calls that a condition lets through. */
  readonly conditional: boolean;
  readonly label: string;
}

export interface ReachGraph {
  readonly boxes: readonly Box[];
  readonly lines: readonly Line[];
}

/** Of grants that a line is labelled with. */
const LABELS_MAX = 3;

export function reachGraph(reach: PolicyReach): ReachGraph {
  const tools = toolsOf(reach);
  const grouped = [...groupAlike(tools.flatMap((tool) => sideOf(tool, reach)))];
  const hops = hopsOf(reach.paths);
  const lines = [...grouped.flatMap(({ lines: of }) => of), ...hops.lines];
  const used = new Set(lines.flatMap(({ from, to }) => [from, to]));
  const roles = reach.roles
    .map(({ role }) => ({ id: roleId(role), kind: "role", lines: [role], note: "" }) as const)
    .filter(({ id }) => used.has(id));
  return { boxes: [...grouped.map(({ box }) => box), ...roles, ...hops.stores], lines };
}

/** A tool and what it is to each role. */
interface DrawnTool {
  readonly tool: ToolReach;
  readonly of: readonly { readonly role: string; readonly reach: ToolReach }[];
}

function toolsOf({ roles }: PolicyReach): readonly DrawnTool[] {
  const tools = new Map<string, { tool: ToolReach; of: { role: string; reach: ToolReach }[] }>();
  for (const { role, tools: ofRole } of roles) {
    for (const reach of ofRole) {
      if (reach.tool.startsWith("callgate.")) continue;
      const found = tools.get(reach.tool);
      if (found === undefined) tools.set(reach.tool, { tool: reach, of: [{ role, reach }] });
      else found.of.push({ role, reach });
    }
  }
  return [...tools.values()];
}

/** A box that is still one tool's, and its lines to the roles. */
interface Drawn {
  readonly kind: BoxKind;
  readonly name: string;
  readonly note: string;
  readonly provider: string;
  readonly lines: readonly (Omit<Line, "from" | "to"> & { readonly role: string })[];
}

/** What it brings is drawn on the left, what it does on the right: a tool that does both stands on both sides. */
function sideOf({ tool, of }: DrawnTool, { paths }: PolicyReach): readonly Drawn[] {
  const sides: Drawn[] = [];
  const { tool: name, provider } = tool;
  if (tool.effect === "read" || paths.some(({ source }) => source === name)) {
    const kind = tool.brings.untrusted ? "source" : "clean_source";
    const lines = of.flatMap(({ role, reach }) => {
      const isOpen = paths.some((path) => path.role === role && path.source === name);
      return lineOf(role, reach, isOpen);
    });
    sides.push({ kind, name, note: tool.brings.untrusted ? "untrusted" : "trusted", provider, lines });
  }
  if (tool.effect !== "read") {
    const lines = of.flatMap(({ role, reach }) => {
      const isOpen = paths.some((path) => path.sink_role === role && path.sink === name);
      return lineOf(role, reach, isOpen);
    });
    sides.push({
      kind: tool.effect === "write" ? "write" : "sink",
      name,
      note: tool.effect,
      provider,
      lines,
    });
  }
  return sides.filter(({ lines }) => lines.length > 0);
}

function lineOf(role: string, { at }: ToolReach, isOpen: boolean): Drawn["lines"] {
  const best = (untrusted: boolean) =>
    at.find(({ untrusted: is, verdict }) => is === untrusted && verdict !== "deny");
  const clean = best(false);
  const tainted = best(true);
  const shown = tainted ?? clean;
  if (shown === undefined) return [];
  const kind = isOpen ? "open" : kindOf(tainted?.verdict, clean?.verdict);
  // On a way that ends while its role counts as clean, the grants that count are those.
  const told = isOpen && !isLet(shown.verdict) ? (clean ?? shown) : shown;
  return [{ role, kind, conditional: told.verdict === "conditional", label: grantsLabel(told.by) }];
}

function isLet(verdict: Reachable | undefined): boolean {
  return verdict === "allow" || verdict === "conditional";
}

function kindOf(tainted: Reachable | undefined, clean: Reachable | undefined): LineKind {
  if (isLet(tainted)) return "free";
  if (tainted === "ask") return "asked";
  return clean === "ask" ? "asked" : "clean";
}

function grantsLabel(by: readonly string[]): string {
  const more = by.length > LABELS_MAX ? [`+${by.length - LABELS_MAX}`] : [];
  return [...by.slice(0, LABELS_MAX), ...more].join(", ");
}

/** Tools of one provider with the same lines, as one box. */
function* groupAlike(drawn: readonly Drawn[]): Iterable<{ box: Box; lines: readonly Line[] }> {
  const groups = new Map<string, Drawn[]>();
  for (const one of drawn) {
    const key = JSON.stringify([one.kind, one.note, one.provider, one.lines]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  for (const group of groups.values()) {
    const [first] = group;
    if (first === undefined) continue;
    const isIn = first.kind === "source" || first.kind === "clean_source";
    const id = `${isIn ? "in" : "out"}:${group.map(({ name }) => name).join(" ")}`;
    const box = { id, kind: first.kind, note: first.note, lines: group.map(({ name }) => name) };
    const lines = first.lines.map(({ role, ...line }) =>
      isIn ? { from: id, to: roleId(role), ...line } : { from: roleId(role), to: id, ...line },
    );
    yield { box, lines };
  }
}

/** How content gets from one role to another on the told ways, and the stores in between. */
function hopsOf(paths: readonly OpenPath[]): { stores: readonly Box[]; lines: readonly Line[] } {
  const stores = new Map<string, Box>();
  const lines = new Map<string, Line>();
  const draw = (from: string, to: string, label: string) =>
    void lines.set(`${from} ${to} ${label}`, { from, to, kind: "open", conditional: false, label });
  for (const { through, sink_role } of paths) {
    for (const [i, { by, role, tool, store, taken_with: takenWith }] of through.entries()) {
      const next = through[i + 1]?.role ?? sink_role;
      if (by === "store") {
        const id = `store:${store}`;
        stores.set(id, { id, kind: "store", lines: [store], note: "store" });
        draw(roleId(role), id, tool);
        draw(id, roleId(next), takenWith ?? "");
      } else draw(roleId(role), roleId(next), by === "call" ? `calls ${tool}` : `answers ${tool}`);
    }
  }
  return { stores: [...stores.values()], lines: [...lines.values()] };
}

function roleId(role: string): string {
  return `role:${role}`;
}
