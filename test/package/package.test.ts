// What is said of the package by itself: the bill of materials, and which binaries it has to bring. The tarball is tried by
// check_package.ts, which needs the registry.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Bill, billOf, bundledOf, installedOf, type Lock, missingFrom } from "./bill.ts";
import { ARCHITECTURES, unfitBinary, wantedBinaries } from "./binaries.ts";

const place = mkdtempSync(join(tmpdir(), "callgate-package-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

const LOCK = JSON.parse(readFileSync("package-lock.json", "utf8")) as Lock & {
  readonly packages: Readonly<
    Record<
      string,
      { readonly integrity?: string; readonly optionalDependencies?: Readonly<Record<string, string>> }
    >
  >;
};
const MANIFEST = JSON.parse(readFileSync("package.json", "utf8")) as {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
};
const SDK = "@anthropic-ai/sdk";
const LICENCES = [
  `${SDK} ${MANIFEST.devDependencies[SDK]}\n\nMIT\n`,
  `preact ${MANIFEST.devDependencies["preact"]}\n\nMIT\n`,
].join(`\n${"-".repeat(80)}\n\n`);

function npmBill(): Bill {
  const words = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"];
  return JSON.parse(execFileSync("npm", words, { encoding: "utf8", maxBuffer: 1e8 })) as Bill;
}

describe("the bill of materials", () => {
  const bill = billOf(npmBill(), LOCK, LICENCES, "callgate");
  const names = new Set(bill.components.map(({ name }) => name));

  it("has every dependency, also those that tools of development need too, and what is bundled", () => {
    expect(missingFrom(bill, LOCK, LICENCES)).toEqual([]);
    expect([...names]).toEqual(expect.arrayContaining(Object.keys(MANIFEST.dependencies)));
    expect([...names]).toEqual(expect.arrayContaining([SDK, "preact"]));
  });

  it("has no tool of development, and no edge that leads out of it", () => {
    expect(names).not.toContain("vitest");
    expect(names).not.toContain("typescript");
    expect(bill.components).toHaveLength(installedOf(LOCK).size + bundledOf(LICENCES).size);
    const refs = new Set(bill.components.map((one) => one["bom-ref"]));
    expect(
      bill.dependencies.flatMap(({ dependsOn = [] }) => dependsOn).filter((ref) => !refs.has(ref)),
    ).toEqual([]);
  });

  it("tells bundled code apart, and says what is missing where something is", () => {
    const bundled = bill.components.find(({ name }) => name === SDK);
    expect(bundled?.properties).toContainEqual({ name: "cdx:npm:package:bundled", value: "true" });
    const less = { ...bill, components: bill.components.filter(({ name }) => name !== "koffi") };
    expect(missingFrom(less, LOCK, LICENCES)).toEqual([`koffi@${MANIFEST.dependencies["koffi"]}`]);
  });
});

describe("the binaries", () => {
  it.each(ARCHITECTURES)("of %s are pinned by the lock file, each by its digest", (architecture) => {
    for (const name of new Set(
      wantedBinaries(architecture).map((path) => path.split("/").slice(0, 2).join("/")),
    )) {
      const [library = ""] = name.startsWith("@koromix") ? ["koffi"] : ["lmdb"];
      const entry = LOCK.packages[`node_modules/${name}`];
      expect(entry).toMatchObject({ optional: true, version: MANIFEST.dependencies[library] });
      expect(entry?.integrity).toMatch(/^sha512-/);
    }
  });

  it("that are installed here are what they say they are", () => {
    const architecture = process.arch === "arm64" ? "arm64" : "x64";
    const unfit = wantedBinaries(architecture).map((name) =>
      unfitBinary(join("node_modules", name), architecture),
    );
    expect(unfit.filter((one) => one !== undefined)).toEqual([]);
  });

  it("of another machine, another C library, or none at all, are told apart", () => {
    const [glibc = "", musl = ""] = wantedBinaries(process.arch === "arm64" ? "arm64" : "x64").map((name) =>
      join("node_modules", name),
    );
    const own = process.arch === "arm64" ? "arm64" : "x64";
    expect(unfitBinary(glibc, own === "x64" ? "arm64" : "x64")).toMatch(/^is not for /);
    const renamed = join(place, "musl.node");
    writeFileSync(renamed, readFileSync(glibc));
    expect(unfitBinary(renamed, own)).toBe("is for glibc");
    writeFileSync(join(place, "plain.node"), readFileSync(musl));
    expect(unfitBinary(join(place, "plain.node"), own)).toBe("is for musl");
    writeFileSync(renamed, "#!/bin/sh\n");
    expect(unfitBinary(renamed, own)).toBe("is no ELF file");
    expect(unfitBinary(join(place, "none.node"), own)).toBe("is not there");
  });
});
