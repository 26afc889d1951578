// Which members of `args` a condition asks for by a name that is written down in it: for telling its
// owner of one that no tool has. It decides nothing.

import type { Syntax } from "./cel.ts";

/** Of `args.NAME`, `has(args.NAME)`, `args["NAME"]` and `"NAME" in args`. */
export function argumentNamesIn(syntax: Syntax): ReadonlySet<string> {
  const names = new Set<string>();
  const pending = [syntax];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const name = argumentNameAt(next);
    if (name !== undefined) names.add(name);
    pending.push(...innerSyntax(next));
  }
  return names;
}

function argumentNameAt(syntax: Syntax): string | undefined {
  if (syntax.kind === "select" || syntax.kind === "has")
    return isArgs(syntax.operand) ? syntax.field : undefined;
  if (syntax.kind !== "call") return undefined;
  const [first, second] = syntax.operands;
  if (syntax.name === "_[_]" && isArgs(first)) return textOf(second);
  return syntax.name === "@in" && isArgs(second) ? textOf(first) : undefined;
}

function isArgs(syntax: Syntax | undefined): boolean {
  return syntax?.kind === "name" && syntax.name === "args";
}

function textOf(syntax: Syntax | undefined): string | undefined {
  return syntax?.kind === "literal" && typeof syntax.value === "string" ? syntax.value : undefined;
}

function innerSyntax(syntax: Syntax): readonly Syntax[] {
  switch (syntax.kind) {
    case "literal":
    case "name":
      return [];
    case "select":
    case "has":
      return [syntax.operand];
    case "list":
      return syntax.items;
    case "call":
      return syntax.receiver === undefined ? syntax.operands : [syntax.receiver, ...syntax.operands];
    case "macro":
      return [syntax.range, syntax.body];
  }
}
