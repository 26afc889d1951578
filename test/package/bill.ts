// The bill of materials of a release, as CycloneDX JSON: what npm tells of the lock file, kept to what somebody gets who installs the
// package (its dependencies, and theirs) and to what was bundled into it. `npm sbom --omit=dev` by itself leaves out every dependency
// that a development tool needs too, and knows nothing of bundles.
// Invariant: nothing is in it that the lock file does not pin, and nothing that is installed or bundled is missing.

export interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly purl?: string;
  readonly scope?: string;
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

export interface Bill {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly metadata: { readonly component: Component & Readonly<Record<string, unknown>> };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

/** Of package-lock.json. */
export interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly version?: string; readonly dev?: boolean; readonly optional?: boolean }>
  >;
}

const NODE_MODULES = "node_modules/";

/** `name@version` of everything that is installed with the package. */
export function installedOf({ packages }: Lock): ReadonlySet<string> {
  const entries = Object.entries(packages).filter(([path, { dev }]) => path !== "" && dev !== true);
  return new Set(entries.map(([path, { version }]) => `${nameOf(path)}@${version}`));
}

/** `node_modules/a/node_modules/@b/c` is `@b/c`. */
function nameOf(path: string): string {
  return path.slice(path.lastIndexOf(NODE_MODULES) + NODE_MODULES.length);
}

/** `name@version` of each block of dist/THIRD_PARTY_LICENSES.txt (build.ts). */
export function bundledOf(licences: string): ReadonlySet<string> {
  const heads = licences.split(`\n${"-".repeat(80)}\n\n`).map((block) => block.split("\n", 1)[0] ?? "");
  return new Set(heads.filter((head) => head !== "").map((head) => head.replace(" ", "@")));
}

/** `all`: what `npm sbom` tells of the whole lock file, tools of development among it. */
export function billOf(all: Bill, lock: Lock, licences: string, name: string): Bill {
  const installed = installedOf(lock);
  const bundled = bundledOf(licences);
  const kept = all.components.filter((one) => installed.has(keyOf(one)) || bundled.has(keyOf(one)));
  const refs = new Set(kept.map((one) => one["bom-ref"]));
  const root = all.metadata.component["bom-ref"];
  const dependencies = all.dependencies
    .filter(({ ref }) => ref === root || refs.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) }));
  return {
    ...all,
    metadata: { ...all.metadata, component: { ...all.metadata.component, name } },
    components: kept.map((one) => (installed.has(keyOf(one)) ? one : asBundled(one))),
    dependencies,
  };
}

function keyOf({ name, version }: Component): string {
  return `${name}@${version}`;
}

function asBundled(one: Component): Component {
  const properties = (one.properties ?? []).filter(({ name }) => name !== "cdx:npm:package:development");
  return {
    ...one,
    scope: "required",
    properties: [...properties, { name: "cdx:npm:package:bundled", value: "true" }],
  };
}

/** What is installed or bundled and has no component. */
export function missingFrom({ components }: Bill, lock: Lock, licences: string): readonly string[] {
  const told = new Set(components.map(keyOf));
  return [...installedOf(lock), ...bundledOf(licences)].filter((one) => !told.has(one)).toSorted();
}
