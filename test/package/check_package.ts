// `tsx test/package/check_package.ts TARBALL`: what whoever installs the package depends on, tried with the tarball as it would be
// published: no script of ours runs at an install, publint finds nothing, its types hold for those who import it, and every binary is
// there for x64 and arm64, glibc and musl. Needs the registry. Exit status 0: all of it holds.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ARCHITECTURES, type Architecture, unfitBinary, wantedBinaries } from "./binaries.ts";

const PUBLINT = "publint@0.3.25";
const NODE_TYPES = "@types/node@20.19.43";

const tarball = resolve(process.argv[2] ?? "");
const work = mkdtempSync(join(tmpdir(), "callgate-package-"));
process.on("exit", () => rmSync(work, { recursive: true, force: true }));
let failed = 0;

/** `look` tells what is wrong, line by line. */
function check(name: string, look: () => readonly string[]): void {
  let wrong: readonly string[];
  try {
    wrong = look();
  } catch (error) {
    wrong = [String(error)];
  }
  if (wrong.length > 0) failed += 1;
  const lines = wrong.map((line) => `        ${line}\n`).join("");
  process.stdout.write(`${wrong.length === 0 ? "ok     " : "FAILED "} ${name}\n${lines}`);
}

/** A directory of its own with these packages in it, installed without scripts. */
function install(name: string, packages: readonly string[], flags: readonly string[] = []): string {
  const directory = join(work, name);
  mkdirSync(directory);
  writeFileSync(join(directory, "package.json"), '{"private":true,"type":"module"}');
  const words = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", ...flags, ...packages];
  execFileSync("npm", words, { cwd: directory, stdio: "pipe" });
  return directory;
}

interface Manifest {
  readonly scripts?: Readonly<Record<string, string>>;
}

function ownScripts(): readonly string[] {
  const text = execFileSync("tar", ["-xzOf", tarball, "package/package.json"], { encoding: "utf8" });
  const { scripts = {} } = JSON.parse(text) as Manifest;
  return ["preinstall", "install", "postinstall", "prepare"].filter((name) => scripts[name] !== undefined);
}

function publint(): readonly string[] {
  const directory = install("publint", [PUBLINT]);
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(directory, "node_modules/publint/src/cli.js"), "run", tarball, "--strict"],
    { encoding: "utf8" },
  );
  return status === 0 ? [] : `${stdout}${stderr}`.trim().split("\n");
}

/** Whoever imports the package, with every entry of it and nothing skipped. */
const CONSUMER = `import { connect, provide, encodeFrame, decodeFrame } from "callgate";
import * as connector from "callgate/connector";
import * as service from "callgate/connector/service";
export const used = [connect, provide, encodeFrame, decodeFrame, connector, service] as const;
// @ts-expect-error a caller has to say where it connects to
void connect({});
`;

const RESOLUTIONS = [
  { module: "node16", moduleResolution: "node16" },
  { module: "nodenext", moduleResolution: "nodenext" },
  { module: "esnext", moduleResolution: "bundler" },
] as const;

function types(directory: string, resolution: (typeof RESOLUTIONS)[number]): readonly string[] {
  writeFileSync(join(directory, "consumer.ts"), CONSUMER);
  const compilerOptions = {
    ...resolution,
    target: "es2023",
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    types: ["node"],
  };
  writeFileSync(
    join(directory, "tsconfig.json"),
    JSON.stringify({ compilerOptions, files: ["consumer.ts"] }),
  );
  const tsc = resolve("node_modules/typescript/bin/tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", "."], {
    cwd: directory,
    encoding: "utf8",
  });
  return status === 0 ? [] : stdout.trim().split("\n").slice(0, 20);
}

function binaries(architecture: Architecture): readonly string[] {
  const directory = install(architecture, [tarball], ["--omit=dev", "--os=linux", `--cpu=${architecture}`]);
  return wantedBinaries(architecture).flatMap((name) => {
    const unfit = unfitBinary(join(directory, "node_modules", name), architecture);
    return unfit === undefined ? [] : [`${name} ${unfit}`];
  });
}

/** Whether what is installed is what the lock file says, to the version. */
function pinned(directory: string): readonly string[] {
  const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
    readonly packages: Readonly<Record<string, { readonly version?: string }>>;
  };
  return ["koffi", "lmdb"].flatMap((name) => {
    const path = join(directory, "node_modules", name, "package.json");
    const { version } = JSON.parse(readFileSync(path, "utf8")) as { readonly version: string };
    const wanted = lock.packages[`node_modules/${name}`]?.version;
    return version === wanted ? [] : [`${name} is ${version}, and the lock file says ${wanted}`];
  });
}

check("no script of ours runs at an install", ownScripts);
check("publint finds nothing", publint);
const consumer = install("consumer", [tarball, NODE_TYPES]);
check("libraries with machine code are of the version that was tested", () => pinned(consumer));
for (const resolution of RESOLUTIONS)
  check(`its types hold with moduleResolution ${resolution.moduleResolution}`, () =>
    types(consumer, resolution),
  );
for (const architecture of ARCHITECTURES)
  check(`every binary is there for linux ${architecture}, glibc and musl`, () => binaries(architecture));
process.exitCode = failed === 0 ? 0 : 1;
