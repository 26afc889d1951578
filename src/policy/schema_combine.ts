// Keywords that apply further schemas to the same value: $ref, allOf, anyOf, oneOf, not, if, then,
// else, dependentSchemas. What a branch has evaluated counts only where the branch holds.

import type { Json } from "../base/json.ts";
import {
  depthOf,
  type Evaluate,
  Evaluated,
  type Mismatch,
  mismatch,
  type Place,
  type Run,
} from "./schema_run.ts";
import {
  type Builder,
  type CompiledSchema,
  lookupSteps,
  type Site,
  schemaAt,
  schemaMapAt,
  schemasAt,
  stringAt,
} from "./schema_site.ts";
import { isObject } from "./schema_values.ts";

export const COMBINING_BUILDERS: readonly Builder[] = [
  buildReference,
  buildAllOf,
  buildAnyOf,
  buildOneOf,
  buildNot,
  buildIf,
  buildDependentSchemas,
];

function buildReference(site: Site): Evaluate | undefined {
  const reference = stringAt(site.schema, "$ref");
  if (reference === undefined) return undefined;
  const target = site.target(reference);
  return (value, place, run, seen) => target.evaluate(value, place, run, seen);
}

function buildAllOf(site: Site): Evaluate | undefined {
  const schemas = schemasAt(site, "allOf");
  if (schemas.length === 0) return undefined;
  return (value, place, run, seen) => {
    for (const schema of schemas) {
      const wrong = schema.evaluate(value, place, run, seen);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };
}

/** Like `evaluate`, but leaves nothing in `seen` where it does not hold. */
function attempt(
  schema: CompiledSchema,
  value: Json,
  place: Place,
  run: Run,
  seen: Evaluated | undefined,
): Mismatch | undefined {
  if (seen === undefined) return schema.evaluate(value, place, run, undefined);
  const own = new Evaluated();
  const wrong = schema.evaluate(value, place, run, own);
  if (wrong === undefined) seen.take(own, run);
  return wrong;
}

function buildAnyOf(site: Site): Evaluate | undefined {
  const schemas = schemasAt(site, "anyOf");
  if (schemas.length === 0) return undefined;
  return (value, place, run, seen) => {
    const wrong: Mismatch[] = [];
    for (const schema of schemas) {
      const one = attempt(schema, value, place, run, seen);
      if (one !== undefined) wrong.push(one);
      else if (seen === undefined) return undefined;
    }
    return wrong.length < schemas.length ? undefined : noneOf(place, wrong);
  };
}

function buildOneOf(site: Site): Evaluate | undefined {
  const schemas = schemasAt(site, "oneOf");
  if (schemas.length === 0) return undefined;
  return (value, place, run, seen) => {
    const wrong: Mismatch[] = [];
    for (const [index, schema] of schemas.entries()) {
      const one = attempt(schema, value, place, run, seen);
      if (one !== undefined) wrong.push(one);
      else if (wrong.length < index) {
        return mismatch(
          place,
          (where) => `${where} matches more than one of the alternatives, of which exactly one must`,
        );
      }
    }
    return wrong.length < schemas.length ? undefined : noneOf(place, wrong);
  };
}

/** Tells of the alternative that held furthest into the value. */
function noneOf(place: Place, wrong: readonly Mismatch[]): Mismatch {
  const nearest = wrong.reduce((best, one) => (depthOf(one.place) > depthOf(best.place) ? one : best));
  return {
    place: nearest.place,
    says: (where) =>
      nearest.place === place
        ? `${where} matches none of the ${wrong.length} alternatives (of one: ${nearest.says(where)})`
        : `none of the ${wrong.length} alternatives matches (of the nearest: ${nearest.says(where)})`,
  };
}

function buildNot(site: Site): Evaluate | undefined {
  const refused = schemaAt(site, "not");
  if (refused === undefined) return undefined;
  return (value, place, run) => {
    if (refused.evaluate(value, place, run, undefined) !== undefined) return undefined;
    return mismatch(place, (where) => `${where} matches what its schema excludes with "not"`);
  };
}

/** Without `then` and `else`, `if` still says what has been evaluated. */
function buildIf(site: Site): Evaluate | undefined {
  const condition = schemaAt(site, "if");
  if (condition === undefined) return undefined;
  const holds = schemaAt(site, "then");
  const fails = schemaAt(site, "else");
  return (value, place, run, seen) => {
    const branch = attempt(condition, value, place, run, seen) === undefined ? holds : fails;
    return branch?.evaluate(value, place, run, seen);
  };
}

function buildDependentSchemas(site: Site): Evaluate | undefined {
  const dependencies = schemaMapAt(site, "dependentSchemas");
  if (dependencies.size === 0) return undefined;
  const steps = lookupSteps(dependencies.keys());
  return (value, place, run, seen) => {
    if (!isObject(value) || !run.charge(steps)) return undefined;
    for (const [name, schema] of dependencies) {
      const wrong = value.has(name) ? schema.evaluate(value, place, run, seen) : undefined;
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };
}
