import { readdirSync, readFileSync, statSync } from "node:fs";
import { builtinModules } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SRC = join(ROOT, "src");

interface Import {
  readonly file: string;
  readonly specifier: string;
  readonly dynamic: boolean;
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory).flatMap((name) => {
    const path = join(directory, name);
    if (statSync(path).isDirectory()) return filesBelow(path);
    return /\.tsx?$/.test(name) ? [path] : [];
  });
}

const FILES = [...filesBelow(SRC), ...filesBelow(join(ROOT, "bin"))];
const TEXTS = new Map(FILES.map((file) => [file, readFileSync(file, "utf8")]));

function importsOf(file: string): Import[] {
  const text = TEXTS.get(file) ?? "";
  const fixed = [
    ...text.matchAll(/^\s*(?:import|export)\b[^;]*?from\s+"([^"]+)";/gms),
    ...text.matchAll(/^import\s+"([^"]+)";/gm),
  ];
  const dynamic = [...text.matchAll(/\bimport\("([^"]+)"\)/g)];
  return [
    ...fixed.map((match) => ({ file, specifier: match[1] ?? "", dynamic: false })),
    ...dynamic.map((match) => ({ file, specifier: match[1] ?? "", dynamic: true })),
  ];
}

const IMPORTS = FILES.flatMap(importsOf);

/** Runs in a browser. */
const isOfPage = (file: string): boolean => relative(SRC, file).startsWith("roles/console/page/");

/** The one file of each half of the MCP SDK. */
const MCP_SDK = ["roles/mcp/provide/mcp_client.ts", "roles/mcp/serve/sdk.ts"];

/** What it imports is bundled (build.ts), so those libraries are no dependencies of the package. */
const isBundled = (file: string): boolean =>
  isOfPage(file) ||
  relative(SRC, file).startsWith("connector/backends/") ||
  MCP_SDK.includes(relative(SRC, file));

/** The layer of a file: its first directory below src, or its own name at the top. */
function layerOf(path: string): string {
  const parts = relative(SRC, path).split("/");
  if (parts[0] === "..") return "bin";
  return parts.length === 1 ? (parts[0] ?? "").replace(/\.ts$/, "") : (parts[0] ?? "");
}

/** Which layers a layer may import, beside itself. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  base: [],
  wire: ["base"],
  policy: ["base"],
  store: ["base"],
  session: ["base", "wire", "policy", "store"],
  client: ["base", "wire"],
  broker: ["base", "wire", "policy", "store", "session"],
  connector: ["base"],
  host: ["base", "wire", "policy", "store", "session", "broker", "connector"],
  main: ["base", "wire", "policy", "store", "session", "broker", "host"],
  connector_main: ["base", "store", "connector", "host"],
  roles: ["base", "wire", "client", "connector"],
  cli: ["base", "wire", "client", "roles", "connector"],
  library: ["base", "wire", "client"],
  library_connector: ["base", "connector"],
  library_connector_service: ["base", "connector", "host"],
  bin: ["cli"],
};

/** The command table joins commands with the daemon and the config; no other command knows either. */
const JOINTS: Readonly<Record<string, readonly string[]>> = {
  "src/cli/program.ts": ["main", "host", "connector_main"],
};

function relativeImports(): { from: string; to: string; shown: string }[] {
  return IMPORTS.filter(({ specifier }) => specifier.startsWith(".")).map(({ file, specifier }) => {
    const to = resolve(dirname(file), specifier);
    return { from: file, to, shown: `${relative(ROOT, file)} -> ${relative(ROOT, to)}` };
  });
}

describe("the layers", () => {
  it("import one way only", () => {
    const wrong = relativeImports().filter(({ from, to }) => {
      const [a, b] = [layerOf(from), layerOf(to)];
      return a !== b && !(ALLOWED[a] ?? []).includes(b) && !(JOINTS[relative(ROOT, from)] ?? []).includes(b);
    });
    expect(wrong.map(({ shown }) => shown)).toEqual([]);
  });

  it("hold every file in a known place", () => {
    expect(FILES.map(layerOf).filter((layer) => ALLOWED[layer] === undefined)).toEqual([]);
  });

  it("have no cycles of files", () => {
    const edges = new Map<string, string[]>();
    for (const { from, to } of relativeImports()) edges.set(from, [...(edges.get(from) ?? []), to]);
    // A cycle of types alone is erased, but reads as badly; the sources of a table and its rows are the one exception.
    const state = new Map<string, "open" | "done">();
    const cycles: string[] = [];
    const visit = (file: string, path: readonly string[]): void => {
      if (state.get(file) === "done") return;
      if (state.get(file) === "open") {
        cycles.push([...path.slice(path.indexOf(file)), file].map((one) => relative(ROOT, one)).join(" -> "));
        return;
      }
      state.set(file, "open");
      for (const next of edges.get(file) ?? []) visit(next, [...path, file]);
      state.set(file, "done");
    };
    for (const file of FILES) visit(file, []);
    expect(cycles).toEqual([]);
  });
});

describe("what a file may do", () => {
  it("base imports nothing at all, and wire and policy no effects", () => {
    const outside = IMPORTS.filter(({ file, specifier }) => {
      const layer = layerOf(file);
      if (specifier.startsWith(".")) return false;
      if (layer === "base") return true;
      // The engine is where the store meets the disk, and hashing has no effect.
      const storeMay = specifier === "node:crypto" || relative(SRC, file).startsWith("store/lmdb");
      if (layer === "store" && storeMay) return false;
      return (
        (layer === "wire" || layer === "policy" || layer === "store") &&
        specifier.startsWith("node:") &&
        specifier !== "node:buffer"
      );
    });
    expect(outside.map(({ file, specifier }) => `${relative(ROOT, file)} imports ${specifier}`)).toEqual([]);
  });

  it("each third-party library is imported by one file, node's own by their full name", () => {
    const importers = new Map<string, Set<string>>();
    const bare = IMPORTS.filter(
      ({ file, specifier }) =>
        !specifier.startsWith(".") &&
        !specifier.startsWith("node:") &&
        !(isOfPage(file) && specifier.startsWith("preact")), // every component needs it
    );
    for (const { file, specifier } of bare) {
      importers.set(specifier, (importers.get(specifier) ?? new Set()).add(relative(ROOT, file)));
    }
    expect([...importers.keys()].filter((name) => builtinModules.includes(name))).toEqual([]);
    expect(
      [...importers]
        .filter(([, files]) => files.size > 1)
        .map(([name, files]) => `${name}: ${[...files].join(", ")}`),
    ).toEqual([]);
  });

  it("only declared dependencies are imported, and every declared one is", () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
      dependencies: Record<string, string>;
      devDependencies: Record<string, string>;
    };
    const packageOf = (specifier: string): string =>
      specifier
        .split("/")
        .slice(0, specifier.startsWith("@") ? 2 : 1)
        .join("/");
    const bare = IMPORTS.filter(
      ({ specifier }) => !specifier.startsWith(".") && !specifier.startsWith("node:"),
    ).map(({ file, specifier }) => ({ file, name: packageOf(specifier) }));
    // Only where the project runs from its source, where tsx brings it.
    const fromSource = ["esbuild"];
    const used = new Set(
      bare.filter(({ file, name }) => !isBundled(file) && !fromSource.includes(name)).map(({ name }) => name),
    );
    const bundled = bare.filter(({ file }) => isBundled(file)).map(({ name }) => name);
    expect(bundled.filter((name) => manifest.devDependencies[name] === undefined)).toEqual([]);
    // A peer of @bufbuild/cel: named here so that its version is ours to pin.
    const peers = ["@bufbuild/protobuf"];
    expect([...used].filter((name) => manifest.dependencies[name] === undefined)).toEqual([]);
    expect(
      Object.keys(manifest.dependencies).filter((name) => !used.has(name) && !peers.includes(name)),
    ).toEqual([]);
  });

  it("only the package's entries do nothing but pass on others' exports, and there is no default export", () => {
    const barrels = FILES.filter((file) => {
      const code = (TEXTS.get(file) ?? "").replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "").trim();
      return (
        code !== "" &&
        code.replace(/export\s+(?:type\s+)?(?:\{[^}]*\}|\*)\s+from\s+"[^"]+";/g, "").trim() === ""
      );
    });
    expect(barrels.map((file) => relative(ROOT, file))).toEqual([
      "src/library.ts",
      "src/library_connector.ts",
      "src/library_connector_service.ts",
    ]);
    expect(FILES.filter((file) => /^export default\b/m.test(TEXTS.get(file) ?? ""))).toEqual([]);
  });

  it("nothing is written to the console, and no test code is in the product", () => {
    const shown = (pattern: RegExp) =>
      FILES.filter((file) => pattern.test(TEXTS.get(file) ?? "")).map((file) => relative(ROOT, file));
    expect(shown(/\bconsole\.\w+\(/)).toEqual([]);
    expect(shown(/\bvitest\b|NODE_ENV|VITEST/)).toEqual([]);
    expect(shown(/@ts-(?:ignore|nocheck|expect-error)|\bas any\b|biome-ignore/)).toEqual([]);
  });

  it("files stay readable: a header that says what they hold, and at most 400 lines", () => {
    const long = FILES.filter((file) => (TEXTS.get(file) ?? "").split("\n").length > 401);
    const bare = FILES.filter((file) => !/^(?:#!.*\n)?\/\/ \S/.test(TEXTS.get(file) ?? ""));
    expect(long.map((file) => relative(ROOT, file))).toEqual([]);
    expect(bare.map((file) => relative(ROOT, file))).toEqual([]);
  });

  it("the connector's kit knows no provider: only who joins it with one loads a backend", () => {
    const backends = relativeImports().filter(({ to }) =>
      relative(SRC, to).startsWith("connector/backends/"),
    );
    const from = backends
      .map(({ from }) => relative(SRC, from))
      .filter((file) => !file.startsWith("connector/backends/"));
    expect(new Set(from.map((file) => layerOf(join(SRC, file))))).not.toContain("connector");
  });

  it("no name says nothing", () => {
    expect(
      FILES.map((file) => relative(ROOT, file)).filter((file) =>
        /util|helper|common|manager|misc/i.test(file),
      ),
    ).toEqual([]);
  });
});
