import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { loadPage, readBuilt } from "../../../src/roles/console/assets.ts";
import { bundlePage, type PageFiles, writePage } from "../../../src/roles/console/bundle.ts";

let files: PageFiles;
beforeAll(async () => {
  files = await bundlePage();
});

const text = (path: keyof PageFiles) => Buffer.from(files[path]).toString("utf8");

describe("the page", () => {
  it("is small: beside the chart library at most 60 KiB, compressed", async () => {
    const compressed = (bytes: Uint8Array) => gzipSync(bytes, { level: 9 }).length;
    const chartLibrary = createRequire(import.meta.url)
      .resolve("uplot")
      .replace(/[^/]+$/, "uPlot.esm.js");
    const { outputFiles } = await build({
      entryPoints: [chartLibrary],
      write: false,
      minify: true,
      format: "esm",
    });
    const charts = compressed(outputFiles[0]!.contents);
    const bytes = compressed(files["/app.js"]) + compressed(files["/app.css"]);
    expect(charts).toBeGreaterThan(10_000);
    expect(bytes).toBeGreaterThan(charts);
    expect(bytes - charts).toBeLessThanOrEqual(61_440);
  });

  it("loads nothing from elsewhere and has no script or style of its own between its tags", () => {
    expect(
      [...text("/").matchAll(/(?:src|href)="([^"]*)"/g)]
        .map(([, to]) => to)
        .filter((to) => !to?.startsWith("data:")),
    ).toEqual(expect.arrayContaining(["/app.css", "/app.js"]));
    expect(text("/")).not.toMatch(
      /<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|https?:\/\/(?!www\.w3\.org)/,
    );
    expect(text("/app.css")).not.toMatch(/@import|url\((?!["']?data:)/);
  });

  it("has no way to make code or markup of text", () => {
    expect(text("/app.js")).not.toMatch(/\beval\(|new Function\(|document\.write|insertAdjacentHTML|srcdoc/);
    expect(text("/app.js")).not.toContain("sourceMappingURL");
  });

  it("is written by the package's build under the names that the server looks for", async () => {
    const directory = await mkdtemp(join(tmpdir(), "callgate-page-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    await writePage(join(directory, "console"));
    expect((await readdir(join(directory, "console"))).sort()).toEqual(["app.css", "app.js", "index.html"]);
    expect(await readBuilt(join(directory, "console/"))).toEqual({
      "/": Buffer.from(files["/"]),
      "/app.js": Buffer.from(files["/app.js"]),
      "/app.css": Buffer.from(files["/app.css"]),
    });
    expect(await readBuilt(join(directory, "nothing/"))).toBeUndefined();
  });

  it("is bundled where the project runs from its source", async () => {
    const loaded = await loadPage();
    expect(loaded.ok && Buffer.from(loaded.value["/app.js"]).equals(files["/app.js"])).toBe(true);
  });
});
