// CEL's grammar: the one file that imports the CEL library, of which callgate uses the parser and
// nothing else. The library's evaluator has no bound on cost, lets `||` and `&&` swallow errors,
// takes a null member for an absent one and reads "abc" as the number NaN, each of them a way past
// a deny; conditions are therefore run by condition_build.ts over the closed syntax given here.

import type { parse } from "@bufbuild/cel";
import { fault, ok, type Result } from "../base/faults.ts";
import { isInt64 } from "./condition_values.ts";
import { LIBRARY_GONE } from "./pattern.ts";

export type Macro = "all" | "exists" | "exists_one" | "filter" | "map";

/** `at` is the offset in the source, in UTF-16 units. Operators are calls of the names that CEL gives them. */
export type Syntax =
  | {
      readonly kind: "literal";
      readonly value: null | boolean | bigint | number | string;
      readonly at: number;
    }
  | { readonly kind: "name"; readonly name: string; readonly at: number }
  | { readonly kind: "select"; readonly operand: Syntax; readonly field: string; readonly at: number }
  | { readonly kind: "has"; readonly operand: Syntax; readonly field: string; readonly at: number }
  | { readonly kind: "list"; readonly items: readonly Syntax[]; readonly at: number }
  | {
      readonly kind: "call";
      readonly name: string;
      readonly receiver: Syntax | undefined;
      readonly operands: readonly Syntax[];
      readonly at: number;
    }
  | {
      readonly kind: "macro";
      readonly macro: Macro;
      readonly range: Syntax;
      readonly variable: string;
      readonly body: Syntax;
      readonly at: number;
    };

/** Nodes, those inside included. */
export function syntaxSize(syntax: Syntax): number {
  switch (syntax.kind) {
    case "literal":
    case "name":
      return 1;
    case "select":
    case "has":
      return 1 + syntaxSize(syntax.operand);
    case "list":
      return 1 + totalSize(syntax.items);
    case "call":
      return (
        1 + totalSize(syntax.operands) + (syntax.receiver === undefined ? 0 : syntaxSize(syntax.receiver))
      );
    case "macro":
      return 1 + syntaxSize(syntax.range) + syntaxSize(syntax.body);
  }
}

function totalSize(items: readonly Syntax[]): number {
  return items.reduce((total, item) => total + syntaxSize(item), 0);
}

/** What is wrong with a source, where that is known. */
export interface SyntaxFault {
  readonly message: string;
  readonly at: number | undefined;
}

export type CelParser = (source: string) => Result<Syntax, SyntaxFault>;

const SOURCE_CHARS_MAX = 4096;
const DEPTH_MAX = 100;

export async function loadCelParser(): Promise<CelParser> {
  const library = await import("@bufbuild/cel").catch(() => undefined);
  if (library === undefined) return () => fault({ message: LIBRARY_GONE, at: undefined });
  return (source) => {
    if (source.length > SOURCE_CHARS_MAX)
      return fault({ message: `longer than ${SOURCE_CHARS_MAX} characters`, at: undefined });
    let parsed: Parsed;
    try {
      // The library wants a line end behind a comment.
      parsed = library.parse(`${source}\n`);
    } catch (error) {
      return fault(parseFault(source, error));
    }
    return new Translation(parsed).run();
  };
}

type Parsed = ReturnType<typeof parse>;
type Expr = NonNullable<Parsed["expr"]>;
type Call = Extract<Expr["exprKind"], { case: "callExpr" }>["value"];
type Comprehension = Extract<Expr["exprKind"], { case: "comprehensionExpr" }>["value"];

const LIBRARY_PLACE = /^<input>:(\d+):(\d+): /;
const EXCERPT_CHARS = 20;

function parseFault(source: string, error: unknown): SyntaxFault {
  if (error instanceof RangeError) return { message: "too deeply nested", at: undefined };
  const message = error instanceof Error ? error.message : "";
  const place = LIBRARY_PLACE.exec(message);
  if (place === null) return { message: message || "not a CEL expression", at: undefined };
  const at = offsetOf(source, Number(place[1]), Number(place[2]));
  const rest = source.slice(at, at + EXCERPT_CHARS);
  return {
    message: rest === "" ? "the expression ends too early" : `not understood from \`${rest}\` on`,
    at,
  };
}

function offsetOf(source: string, line: number, column: number): number {
  let start = 0;
  for (let passed = 1; passed < line; passed++) start = source.indexOf("\n", start) + 1;
  return start + column - 1;
}

/** Carries the first fault while a tree of the library is made into Syntax. */
class Translation {
  private readonly parsed: Parsed;
  private fault: SyntaxFault | undefined;

  constructor(parsed: Parsed) {
    this.parsed = parsed;
  }

  run(): Result<Syntax, SyntaxFault> {
    const syntax = this.expression(this.parsed.expr, DEPTH_MAX);
    return this.fault === undefined ? ok(syntax) : fault(this.fault);
  }

  private refuse(message: string, at: number): Syntax {
    this.fault ??= { message, at };
    return { kind: "literal", value: null, at };
  }

  private place(expr: Expr): number {
    return Number(this.parsed.sourceInfo?.positions[expr.id.toString()] ?? 0);
  }

  private expression(expr: Expr | undefined, depthLeft: number): Syntax {
    if (expr === undefined) return this.refuse("not a CEL expression", 0);
    const at = this.place(expr);
    if (depthLeft <= 0) return this.refuse("too deeply nested", at);
    const within = (inner: Expr | undefined): Syntax => this.expression(inner, depthLeft - 1);
    const { exprKind } = expr;
    switch (exprKind.case) {
      case "constExpr":
        return this.literal(exprKind.value.constantKind, at);
      case "identExpr":
        return { kind: "name", name: exprKind.value.name, at };
      case "selectExpr": {
        const { operand, field, testOnly } = exprKind.value;
        return { kind: testOnly ? "has" : "select", operand: within(operand), field, at };
      }
      case "listExpr":
        return { kind: "list", items: exprKind.value.elements.map(within), at };
      case "callExpr":
        return this.call(exprKind.value, within, at);
      case "comprehensionExpr":
        return this.macro(expr, exprKind.value, within, at);
      default:
        return this.refuse("maps and messages cannot be written in a condition", at);
    }
  }

  private literal(constant: Constant, at: number): Syntax {
    switch (constant.case) {
      case "nullValue":
        return { kind: "literal", value: null, at };
      case "boolValue":
      case "stringValue":
        return { kind: "literal", value: constant.value, at };
      case "int64Value":
        if (!isInt64(constant.value)) return this.refuse("an integer outside the range of int64", at);
        return { kind: "literal", value: constant.value, at };
      case "doubleValue":
        if (!Number.isFinite(constant.value)) return this.refuse("a number that is too large", at);
        return { kind: "literal", value: constant.value, at };
      default:
        return this.refuse("bytes and unsigned integers cannot be written in a condition", at);
    }
  }

  private call(call: Call, within: (inner: Expr | undefined) => Syntax, at: number): Syntax {
    const receiver = call.target === undefined ? undefined : within(call.target);
    return { kind: "call", name: call.function, receiver, operands: call.args.map(within), at };
  }

  /** The library expands a macro at once; its own note of the call and the shape of the loop give it back. */
  private macro(
    expr: Expr,
    loop: Comprehension,
    within: (inner: Expr | undefined) => Syntax,
    at: number,
  ): Syntax {
    const written = this.parsed.sourceInfo?.macroCalls[expr.id.toString()]?.exprKind;
    const step = callOf(loop.loopStep);
    const name = written?.case === "callExpr" ? written.value.function : "";
    const macro = name === "existsOne" ? "exists_one" : name;
    const body = bodyOf(macro, step);
    if (!isMacro(macro) || body === undefined || (macro === "map" && step?.function !== "_+_"))
      return this.refuse("an unknown kind of loop", at);
    return {
      kind: "macro",
      macro,
      range: within(loop.iterRange),
      variable: loop.iterVar,
      body: within(body),
      at,
    };
  }
}

type Constant = Extract<Expr["exprKind"], { case: "constExpr" }>["value"]["constantKind"];

const MACROS: ReadonlySet<string> = new Set<Macro>(["all", "exists", "exists_one", "filter", "map"]);

function isMacro(name: string): name is Macro {
  return MACROS.has(name);
}

function callOf(expr: Expr | undefined): Call | undefined {
  return expr?.exprKind.case === "callExpr" ? expr.exprKind.value : undefined;
}

/** Where the expansion put what the owner wrote behind the variable. */
function bodyOf(macro: string, step: Call | undefined): Expr | undefined {
  if (macro === "all" || macro === "exists") return step?.args[1];
  if (macro === "filter" || macro === "exists_one") return step?.args[0];
  const appended = step?.args[1]?.exprKind;
  return appended?.case === "listExpr" ? appended.value.elements[0] : undefined;
}
