// Keywords about an object's members: which must be there, how many, their names, and the schema
// of each. Only the object's own members count; a name that the schema does not declare is never
// shown (its token in a place is `*`).

import type { JsonObject } from "../base/json.ts";
import { buildMemberCount } from "./schema_counts.ts";
import {
  type Evaluate,
  type Evaluated,
  type Mismatch,
  mismatch,
  type Place,
  type Run,
  UNDECLARED,
  within,
} from "./schema_run.ts";
import {
  type Builder,
  type CompiledSchema,
  lookupSteps,
  membersAt,
  namesIn,
  type Site,
  schemaAt,
  schemaMapAt,
} from "./schema_site.ts";
import { listed, named } from "./schema_text.ts";
import { isObject } from "./schema_values.ts";

export const MEMBER_BUILDERS: readonly Builder[] = [
  buildRequired,
  buildDependentRequired,
  buildMemberCount,
  buildPropertyNames,
  buildMembers,
];

function buildRequired({ schema }: Site): Evaluate | undefined {
  const names = namesIn(schema.get("required"));
  if (names.length === 0) return undefined;
  const steps = lookupSteps(names);
  return (value, place, run) => {
    if (!isObject(value) || !run.charge(steps)) return undefined;
    const missing = names.find((name) => !value.has(name));
    return missing === undefined ? undefined : missingMember(place, missing, "");
  };
}

function missingMember(place: Place, name: string, because: string): Mismatch {
  const at = (where: string) => (place === undefined ? "" : ` at ${where}`);
  return mismatch(place, (where) => `required member ${named(name)} is missing${at(where)}${because}`);
}

function buildDependentRequired({ schema }: Site): Evaluate | undefined {
  const dependencies = [...membersAt(schema, "dependentRequired")].map(
    ([name, names]) => [name, namesIn(names), lookupSteps([name, ...namesIn(names)])] as const,
  );
  if (dependencies.length === 0) return undefined;
  return (value, place, run) => {
    if (!isObject(value)) return undefined;
    for (const [name, required, steps] of dependencies) {
      if (!run.charge(steps)) return undefined;
      if (!value.has(name)) continue;
      const missing = required.find((other) => !value.has(other));
      if (missing !== undefined) return missingMember(place, missing, ` (because of ${named(name)})`);
    }
    return undefined;
  };
}

function buildPropertyNames(site: Site): Evaluate | undefined {
  const names = schemaAt(site, "propertyNames");
  if (names === undefined) return undefined;
  return (value, place, run) => {
    if (!isObject(value)) return undefined;
    for (const name of value.keys()) {
      const wrong = names.evaluate(name, within(place, UNDECLARED), run, undefined);
      if (wrong === undefined) continue;
      return mismatch(place, (where) => `a member's name at ${where} is not allowed: ${wrong.says("it")}`);
    }
    return undefined;
  };
}

/** `properties`, `patternProperties` and `additionalProperties`, in one pass over the members. */
function buildMembers(site: Site): Evaluate | undefined {
  const declared = schemaMapAt(site, "properties");
  const patterned = [...schemaMapAt(site, "patternProperties")].map(([source, schema]) => ({
    pattern: site.pattern(source),
    schema,
  }));
  const others = schemaAt(site, "additionalProperties");
  if (declared.size === 0 && patterned.length === 0 && others === undefined) return undefined;
  const allowed = allowedNames(declared, patterned.length > 0);
  return (value, place, run, seen) => {
    if (!isObject(value)) return undefined;
    for (const [name, member] of value) {
      if (!run.chargeText(name.length)) return undefined;
      const own = declared.get(name);
      const inside = within(place, own === undefined ? UNDECLARED : name);
      const wrongOwn = own?.evaluate(member, inside, run, undefined);
      if (wrongOwn !== undefined) return wrongOwn;
      let evaluated = own !== undefined;
      for (const { pattern, schema } of patterned) {
        if (!pattern.matches(name, run)) continue;
        evaluated = true;
        const wrong = schema.evaluate(member, inside, run, undefined);
        if (wrong !== undefined) return wrong;
      }
      if (!evaluated && others !== undefined) {
        if (others.node.schema === false) return unknownMember(place, allowed);
        evaluated = true;
        const wrong = others.evaluate(member, inside, run, undefined);
        if (wrong !== undefined) return wrong;
      }
      if (evaluated) seen?.names.add(name);
    }
    return undefined;
  };
}

function allowedNames(declared: ReadonlyMap<string, CompiledSchema>, patterned: boolean): string {
  const names = listed([...declared.keys()].map(named));
  if (patterned) return names === "" ? "names of a pattern" : `${names}, and names of a pattern`;
  return names === "" ? "none" : names;
}

function unknownMember(place: Place, allowed: string): Mismatch {
  return mismatch(place, (where) => `unknown member at ${where} (allowed: ${allowed})`);
}

/** `unevaluatedProperties`: runs last, over what all the others have left. */
export function unevaluatedMembers(
  rest: CompiledSchema,
  value: JsonObject,
  place: Place,
  run: Run,
  seen: Evaluated,
): Mismatch | undefined {
  for (const [name, member] of value) {
    if (!run.chargeText(name.length)) return undefined;
    if (seen.hasName(name)) continue;
    if (rest.node.schema === false) return unknownMember(place, "those that the schema declares");
    const wrong = rest.evaluate(member, within(place, UNDECLARED), run, undefined);
    if (wrong !== undefined) return wrong;
  }
  seen.allNames = true;
  return undefined;
}
