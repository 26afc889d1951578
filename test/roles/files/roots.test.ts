import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createFilesTools } from "../../../src/roles/files/tools.ts";
import { ask, contentOf, failureOf, heldOpen, rootOf, scratch, toolsOver } from "./scratch.ts";

describe("roots", () => {
  it("that lead through a link are refused, with the real path for the owner", async () => {
    const { base, root } = scratch();
    symlinkSync(root, join(base, "link"));
    const tools = await createFilesTools([rootOf(join(base, "link"))]);
    expect(tools).toEqual({ ok: false, fault: expect.stringContaining(JSON.stringify(root)) });
    expect(heldOpen(base)).toEqual([]);
  });

  it.each([
    ["none", (): string[] => []],
    ["a missing one", (base: string) => [join(base, "missing")]],
    ["a file", (base: string) => [join(base, "outside", "secret.txt")]],
    ["a relative one", () => ["."]],
    ["a spelling with a slash at the end", (base: string) => [`${base}/root/`]],
    ["the same twice", (base: string) => [join(base, "root"), join(base, "root")]],
    ["a good and a missing one", (base: string) => [join(base, "root"), join(base, "missing")]],
  ])("are all or none: %s is refused and leaves nothing open", async (_what, paths) => {
    const { base } = scratch();
    const tools = await createFilesTools(paths(base).map((path) => rootOf(path)));
    expect(tools.ok).toBe(false);
    expect(heldOpen(base)).toEqual([]);
  });

  it("give their labels to what lies in them, the longest one first", async () => {
    const { root } = scratch();
    mkdirSync(join(root, "hr"));
    writeFileSync(join(root, "a"), "a");
    writeFileSync(join(root, "hr", "a"), "b");
    const tools = await toolsOver([
      rootOf(root, { class: "public", untrusted: false }),
      rootOf(join(root, "hr"), { class: "restricted" }),
    ]);
    const open = { class: "public", untrusted: false };
    const closed = { class: "restricted", untrusted: true };
    expect(await ask(tools, "read_file", { path: join(root, "a") })).toMatchObject({ content: "a", ...open });
    expect(await ask(tools, "read_file", { path: join(root, "hr", "a") })).toMatchObject(closed);
    expect(await ask(tools, "list_dir", { path: join(root, "hr") })).toMatchObject(closed);
    expect(await ask(tools, "stat", { path: join(root, "hr", "a") })).toMatchObject(closed);
    expect(await ask(tools, "search_files", { path: join(root, "hr"), name: "a" })).toMatchObject(closed);
    const path = join(root, "hr", "new");
    expect(await ask(tools, "write_file", { path, content: "" })).toMatchObject(closed);
  });

  it("keep their own rights: a read-only root within a writable one is not written to", async () => {
    const { root } = scratch();
    mkdirSync(join(root, "fixed"));
    const tools = await toolsOver([rootOf(root), rootOf(join(root, "fixed"), { writable: false })]);
    const answer = await ask(tools, "write_file", { path: join(root, "fixed", "a"), content: "" });
    expect(failureOf(answer)).toContain("read-only");
  });

  it("are not reached under another name, with another root's labels, after somebody moved them", async () => {
    const { root } = scratch();
    mkdirSync(join(root, "hr"));
    writeFileSync(join(root, "hr", "salaries"), "salaries");
    const tools = await toolsOver([
      rootOf(root, { class: "public" }),
      rootOf(join(root, "hr"), { class: "restricted" }),
    ]);
    renameSync(join(root, "hr"), join(root, "moved"));
    const read = await ask(tools, "read_file", { path: join(root, "moved", "salaries") });
    expect(failureOf(read)).toContain("another configured directory");
    const search = contentOf(await ask(tools, "search_files", { path: root, content: "salaries" }));
    expect(JSON.parse(search)).toEqual({ path: root, matches: [], passed_over: { elsewhere: 1 } });
  });

  it("do not lend their labels to what somebody put in another root's place", async () => {
    const { root } = scratch();
    mkdirSync(join(root, "hr"));
    const tools = await toolsOver([
      rootOf(root, { class: "public" }),
      rootOf(join(root, "hr"), { class: "restricted" }),
    ]);
    renameSync(join(root, "hr"), join(root, "old"));
    mkdirSync(join(root, "hr"));
    writeFileSync(join(root, "hr", "salaries"), "salaries");
    const search = contentOf(await ask(tools, "search_files", { path: root, content: "salaries" }));
    expect(JSON.parse(search)).toEqual({ path: root, matches: [], passed_over: { elsewhere: 2 } });
    const read = await ask(tools, "read_file", { path: join(root, "hr", "salaries") });
    expect(failureOf(read)).toContain("nothing exists");
  });

  it("stay the directory of the start when another is put in their place", async () => {
    const { base, root, outside } = scratch();
    writeFileSync(join(root, "secret.txt"), "ours");
    const tools = await toolsOver([rootOf(root)]);
    renameSync(root, join(base, "old"));
    symlinkSync(outside, root);
    expect(contentOf(await ask(tools, "read_file", { path: join(root, "secret.txt") }))).toBe("ours");
    rmSync(root);
    renameSync(outside, root);
    expect(contentOf(await ask(tools, "read_file", { path: join(root, "secret.txt") }))).toBe("ours");
  });

  it("do not match paths that only begin alike", async () => {
    const { base, root } = scratch();
    mkdirSync(`${root}etc`);
    writeFileSync(join(`${root}etc`, "a"), "a");
    const tools = await toolsOver([rootOf(root)]);
    for (const path of [join(`${root}etc`, "a"), join(base, "outside", "secret.txt"), "/", "/etc/passwd"]) {
      expect(failureOf(await ask(tools, "read_file", { path }))).toContain("in none of");
    }
  });

  it("that were closed let go of everything", async () => {
    const { base, root } = scratch();
    const tools = await createFilesTools([rootOf(root)]);
    if (!tools.ok) throw new Error(tools.fault);
    expect(heldOpen(base)).toEqual([root]);
    tools.value.close();
    expect(heldOpen(base)).toEqual([]);
  });
});
