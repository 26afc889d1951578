// From a schema document to closures, once, at load: no code is generated. All faults are gathered
// before anything is compiled; after that nothing can fail. What it makes is immutable, checks any
// value in bounded time, and fails closed where the bound is hit.

import { fault, ok, type Result } from "../base/faults.ts";
import type { Json } from "../base/json.ts";
import { type LinearPattern, loadPatternCompiler } from "./pattern.ts";
import { COMBINING_BUILDERS } from "./schema_combine.ts";
import { readDocument, type SchemaDocument, type SchemaNode } from "./schema_document.ts";
import { type CodedSchemaFault, FaultList } from "./schema_fault.ts";
import { ITEM_BUILDERS, unevaluatedItems } from "./schema_items.ts";
import { MEMBER_BUILDERS, unevaluatedMembers } from "./schema_members.ts";
import { translatePattern } from "./schema_pattern.ts";
import {
  type Evaluate,
  Evaluated,
  type Mismatch,
  mismatch,
  pointerOf,
  Run,
  STEPS_MAX,
  sentence,
} from "./schema_run.ts";
import { SCALAR_BUILDERS } from "./schema_scalars.ts";
import { isClosed, refuseCircles, refuseOtherThanObjects } from "./schema_shape.ts";
import { type CompiledSchema, type Site, schemaAt } from "./schema_site.ts";
import { pointerToken } from "./schema_text.ts";
import { isArray, isObject } from "./schema_values.ts";

export interface Validator {
  /** Whether unknown members are refused at the top. */
  readonly closed: boolean;
  /** undefined: valid. `pointer` and `message` as in `ArgumentsMismatch`. */
  check(value: Json): { readonly pointer: string; readonly message: string } | undefined;
}

/** Of compiling all patterns of one schema, in atoms. */
const PATTERNS_COST_MAX = 20_000;

/** `expects`: a schema of a tool's arguments must admit objects; one of `any` value need not. */
export async function compileSchema(
  schema: Json,
  expects: "object" | "any",
  stepsMax: number = STEPS_MAX,
): Promise<Result<Validator, readonly CodedSchemaFault[]>> {
  const faults = new FaultList();
  const document = readDocument(schema, faults);
  if (document === undefined) return fault(faults.all);
  const patterns = await compilePatterns(document, faults);
  refuseCircles(document, faults);
  if (expects === "object" && !faults.any) refuseOtherThanObjects(document, faults);
  if (faults.any) return fault(faults.all);
  const root = compileNodes(document, patterns);
  return ok({ closed: isClosed(document), check: (value) => verdict(root, value, stepsMax) });
}

function verdict(root: CompiledSchema, value: Json, stepsMax: number): ReturnType<Validator["check"]> {
  const run = new Run(stepsMax);
  const wrong = root.evaluate(value, undefined, run, undefined);
  if (run.overrun) return { pointer: "", message: "the arguments are too costly to check" };
  return wrong === undefined ? undefined : { pointer: pointerOf(wrong.place), message: sentence(wrong) };
}

async function compilePatterns(
  document: SchemaDocument,
  faults: FaultList,
): Promise<ReadonlyMap<string, LinearPattern>> {
  const patterns = new Map<string, LinearPattern>();
  if (document.patterns.length === 0) return patterns;
  const compile = await loadPatternCompiler();
  let cost = 0;
  for (const { pointer, source } of document.patterns) {
    if (patterns.has(source)) continue;
    const translated = translatePattern(source);
    cost += translated.ok ? translated.value.cost + 1 : 1;
    if (cost > PATTERNS_COST_MAX) {
      faults.add(pointer, "bound", "the patterns of this schema are together too large: shorten them");
      break;
    }
    const pattern = translated.ok ? compile(translated.value.expression) : translated;
    if (pattern.ok) patterns.set(source, pattern.value);
    else faults.add(pointer, "pattern", `the pattern ${pattern.fault}`);
  }
  return patterns;
}

/** Cheap keywords first; `unevaluated…` come after all of these. */
const BUILDERS = [...SCALAR_BUILDERS, ...MEMBER_BUILDERS, ...ITEM_BUILDERS, ...COMBINING_BUILDERS];

/** Every schema is there before the first is compiled, so a reference costs no recursion. */
function compileNodes(
  document: SchemaDocument,
  patterns: ReadonlyMap<string, LinearPattern>,
): CompiledSchema {
  const compiled = new Map<SchemaNode, { readonly node: SchemaNode; evaluate: Evaluate }>();
  for (const node of document.nodes.values()) compiled.set(node, { node, evaluate: refuse });
  const at = (node: SchemaNode | undefined): CompiledSchema => present(node && compiled.get(node));
  for (const schema of compiled.values()) {
    const { node } = schema;
    if (typeof node.schema === "boolean") schema.evaluate = node.schema ? admit : refuse;
    else {
      schema.evaluate = compileObject({
        schema: node.schema,
        inner: (keyword, key) => at(document.nodes.get(innerPointer(node, keyword, key))),
        target: (reference) => at(document.target(reference)),
        pattern: (source) => present(patterns.get(source)),
      });
    }
  }
  return at(document.root);
}

function compileObject(site: Site): Evaluate {
  const keywords = allOf(BUILDERS.flatMap((build) => build(site) ?? []));
  const members = schemaAt(site, "unevaluatedProperties");
  const items = schemaAt(site, "unevaluatedItems");
  const plain = members === undefined && items === undefined;
  return metered(plain ? keywords : restricted(keywords, members, items));
}

function innerPointer(node: SchemaNode, keyword: string, key: string | number | undefined): string {
  const tail = key === undefined ? "" : `/${pointerToken(String(key))}`;
  return `${node.pointer}/${keyword}${tail}`;
}

/** The document was found without faults, so what a keyword names is there. */
function present<T>(found: T | undefined): T {
  if (found === undefined) throw new Error("a schema without faults names something that is missing");
  return found;
}

const refuse: Evaluate = (_value, place) => mismatch(place, (where) => `${where} is not allowed`);

const admit: Evaluate = () => undefined;

function allOf(keywords: readonly Evaluate[]): Evaluate {
  return (value, place, run, seen) => {
    for (const keyword of keywords) {
      const wrong = keyword(value, place, run, seen);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };
}

/** Adds `unevaluated…`: they look at what this schema's own keywords evaluated, not at what stands beside it. */
function restricted(
  keywords: Evaluate,
  members: CompiledSchema | undefined,
  items: CompiledSchema | undefined,
): Evaluate {
  return (value, place, run, seen) => {
    const own = new Evaluated();
    const wrong = keywords(value, place, run, own) ?? rest(value);
    if (wrong === undefined) seen?.take(own, run);
    return wrong;

    function rest(whole: Json): Mismatch | undefined {
      if (members !== undefined && isObject(whole))
        return unevaluatedMembers(members, whole, place, run, own);
      if (items !== undefined && isArray(whole)) return unevaluatedItems(items, whole, place, run, own);
      return undefined;
    }
  };
}

/** Every schema pays for being applied. What an overrun run answers is never looked at. */
function metered(evaluate: Evaluate): Evaluate {
  return (value, place, run, seen) => {
    if (!run.enter()) return refuse(value, place, run, seen);
    const wrong = evaluate(value, place, run, seen);
    run.leave();
    return wrong;
  };
}
