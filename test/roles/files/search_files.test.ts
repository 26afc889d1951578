import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FILES_LIMITS, type SearchLimits } from "../../../src/roles/files/limits.ts";
import { ask, contentOf, failureOf, heldOpen, rootOf, SECRET, scratch, toolsOver } from "./scratch.ts";
import { namedPipe } from "./special.ts";

function limited(search: Partial<SearchLimits>) {
  return { ...FILES_LIMITS, search: { ...FILES_LIMITS.search, ...search } };
}

function tree(root: string): void {
  mkdirSync(join(root, "a", "deep"), { recursive: true });
  writeFileSync(join(root, "a", "report.txt"), "first\nneedle here\nand needle there\n");
  writeFileSync(join(root, "a", "deep", "notes.md"), "a needle\n");
  writeFileSync(join(root, "needle.bin"), "needle\0");
}

describe("search_files", () => {
  it("finds names and contents, in order, with lines", async () => {
    const { base, root } = scratch();
    tree(root);
    const tools = await toolsOver([rootOf(root)]);
    const search = async (args: Record<string, string>) =>
      JSON.parse(contentOf(await ask(tools, "search_files", { path: root, ...args })));
    expect(await search({ name: "needle" })).toEqual({
      path: root,
      matches: [{ path: join(root, "needle.bin"), type: "file" }],
      passed_over: {},
    });
    expect((await search({ name: "*e*p" })).matches).toEqual([
      { path: join(root, "a/deep"), type: "directory" },
    ]);
    expect(await search({ content: "needle" })).toEqual({
      path: root,
      matches: [
        { path: join(root, "a/deep/notes.md"), type: "file", line: 1, text: "a needle" },
        { path: join(root, "a/report.txt"), type: "file", line: 2, text: "needle here" },
        { path: join(root, "a/report.txt"), type: "file", line: 3, text: "and needle there" },
      ],
      passed_over: { not_text: 1 },
    });
    expect((await search({ name: "*.md", content: "needle" })).matches).toHaveLength(1);
    expect((await search({ content: "(n|m)e+dle" })).matches).toEqual([]);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("passes over links, also a link to a file outside and a loop, and opens no pipe", async () => {
    const { base, root, outside } = scratch();
    symlinkSync(outside, join(root, "out"));
    symlinkSync(join(outside, "secret.txt"), join(root, "secret.txt"));
    symlinkSync(".", join(root, "loop"));
    namedPipe(join(root, "pipe"));
    const tools = await toolsOver([rootOf(root)]);
    const answer = contentOf(await ask(tools, "search_files", { path: root, content: SECRET.slice(0, 6) }));
    expect(JSON.parse(answer)).toEqual({ path: root, matches: [], passed_over: { links: 3 } });
    const names = JSON.parse(contentOf(await ask(tools, "search_files", { path: root, name: "secret" })));
    expect(names.matches).toEqual([{ path: join(root, "secret.txt"), type: "symlink" }]);
    expect(heldOpen(base)).toEqual([root]);
  });

  it.each([
    ["names", { entriesMax: 3 }],
    ["depth", { depthMax: 1 }],
    ["bytes", { bytesMax: 40 }],
    ["matches", { matchesMax: 2 }],
    ["matches of one file", { matchesPerFileMax: 1 }],
  ])("is bounded in %s, and says truncated", async (_what, search) => {
    const { base, root } = scratch();
    tree(root);
    const tools = await toolsOver([rootOf(root)], limited(search));
    const answer = await ask(tools, "search_files", { path: root, content: "needle" });
    expect(answer).toMatchObject({ truncated: true });
    expect(JSON.parse(contentOf(answer)).matches.length).toBeLessThan(3);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("is bounded in what it gives back", async () => {
    const { root } = scratch();
    for (let at = 0; at < 50; at += 1) writeFileSync(join(root, `f${at}`), `needle ${"x".repeat(500)}`);
    const tools = await toolsOver([rootOf(root)], { ...FILES_LIMITS, contentBytesMax: 5000 });
    const answer = await ask(tools, "search_files", { path: root, content: "needle" });
    expect(answer).toMatchObject({ truncated: true });
    expect(Buffer.byteLength(contentOf(answer))).toBeLessThanOrEqual(5000);
    expect(JSON.parse(contentOf(answer)).matches.length).toBeGreaterThan(5);
  });

  it("passes over a file that is larger than it would read", async () => {
    const { root } = scratch();
    writeFileSync(join(root, "large"), "needle ".repeat(10));
    const tools = await toolsOver([rootOf(root)], limited({ fileBytesMax: 69 }));
    const answer = await ask(tools, "search_files", { path: root, content: "needle" });
    expect(JSON.parse(contentOf(answer))).toMatchObject({ matches: [], passed_over: { too_large: 1 } });
  });

  it("stops when it is cancelled in the middle, and holds nothing open", async () => {
    const { base, root } = scratch();
    for (let at = 0; at < 300; at += 1) mkdirSync(join(root, `d${at}`, "e"), { recursive: true });
    const tools = await toolsOver([rootOf(root)]);
    const cancel = new AbortController();
    const search = ask(tools, "search_files", { path: root, name: "nothing" }, cancel.signal);
    const first = ask(tools, "stat", { path: root });
    await first;
    cancel.abort();
    expect(failureOf(await search)).toContain("cancelled");
    expect(heldOpen(base)).toEqual([root]);
  });

  it("lets only so many run at once, and the next one after them", async () => {
    const { root } = scratch();
    tree(root);
    const tools = await toolsOver([rootOf(root)], limited({ atOnceMax: 1 }));
    const args = { path: root, name: "needle" };
    const [first, second] = await Promise.all([
      ask(tools, "search_files", args),
      ask(tools, "search_files", args),
    ]);
    expect(contentOf(first)).toContain("needle.bin");
    expect(failureOf(second)).toContain("busy");
    expect(contentOf(await ask(tools, "search_files", args))).toContain("needle.bin");
  });

  it("needs something to look for", async () => {
    const { root } = scratch();
    const tools = await toolsOver([rootOf(root)]);
    for (const args of [
      {},
      { name: "" },
      { content: "" },
      { content: "x".repeat(257) },
      { name: "a", regex: "b" },
    ]) {
      expect(failureOf(await ask(tools, "search_files", { path: root, ...args }))).toMatch(/must be|known/);
    }
  });
});
