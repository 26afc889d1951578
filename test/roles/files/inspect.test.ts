import { linkSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FILES_LIMITS } from "../../../src/roles/files/limits.ts";
import { ask, contentOf, failureOf, heldOpen, rootOf, scratch, toolsOver } from "./scratch.ts";
import { namedPipe } from "./special.ts";

describe("list_dir", () => {
  it("shows every kind of entry, sorted, and opens none of them", async () => {
    const { base, root } = scratch();
    writeFileSync(join(root, "b.txt"), "four");
    mkdirSync(join(root, "a"));
    symlinkSync("/etc/passwd", join(root, "c"));
    namedPipe(join(root, "d"));
    const server = createServer().listen(join(root, "e"));
    const tools = await toolsOver([rootOf(root)]);
    const answer = await ask(tools, "list_dir", { path: root });
    server.close();
    expect(JSON.parse(contentOf(answer))).toEqual({
      path: root,
      entries: [
        { name: "a", type: "directory" },
        { name: "b.txt", type: "file", size: 4 },
        { name: "c", type: "symlink" },
        { name: "d", type: "fifo" },
        { name: "e", type: "socket" },
      ],
    });
    expect(answer).toMatchObject({ truncated: false });
    expect(heldOpen(base)).toEqual([root]);
  });

  it("escapes odd names and says where no path can name them", async () => {
    const { root } = scratch();
    writeFileSync(join(root, "a\u202etxt.exe"), "");
    writeFileSync(join(root, 'new\nline"'), "");
    writeFileSync(Buffer.concat([Buffer.from(join(root, "z")), Buffer.from([0xff])]), "");
    const tools = await toolsOver([rootOf(root)]);
    const content = contentOf(await ask(tools, "list_dir", { path: root }));
    expect(content).toMatch(/^[^\n\u202e]*$/);
    expect(JSON.parse(content).entries).toEqual([
      { name: "a\u202etxt.exe", unnameable: true, type: "file", size: 0 },
      { name: 'new\nline"', unnameable: true, type: "file", size: 0 },
      { name: "z\ufffd", unnameable: true, type: "file", size: 0 },
    ]);
  });

  it("is bounded in names and in bytes, and says truncated", async () => {
    const { base, root } = scratch();
    for (let at = 0; at < 60; at += 1) writeFileSync(join(root, `file-${at}`), "");
    const names = await toolsOver([rootOf(root)], { ...FILES_LIMITS, listNamesMax: 59 });
    const bytes = await toolsOver([rootOf(root)], { ...FILES_LIMITS, contentBytesMax: 2000 });
    const exact = await toolsOver([rootOf(root)], { ...FILES_LIMITS, listNamesMax: 60 });
    const byNames = await ask(names, "list_dir", { path: root });
    expect(byNames).toMatchObject({ truncated: true });
    expect(JSON.parse(contentOf(byNames)).entries).toHaveLength(59);
    const byBytes = await ask(bytes, "list_dir", { path: root });
    expect(byBytes).toMatchObject({ truncated: true });
    expect(Buffer.byteLength(contentOf(byBytes))).toBeLessThanOrEqual(2000);
    expect(JSON.parse(contentOf(byBytes)).entries.length).toBeGreaterThan(10);
    expect(await ask(exact, "list_dir", { path: root })).toMatchObject({ truncated: false });
    expect(heldOpen(base)).toEqual([root, root, root]);
  });

  it("of a file, a link and nothing says so", async () => {
    const { root, outside } = scratch();
    writeFileSync(join(root, "f"), "");
    symlinkSync(outside, join(root, "out"));
    const tools = await toolsOver([rootOf(root)]);
    expect(failureOf(await ask(tools, "list_dir", { path: join(root, "f") }))).toContain("something else");
    expect(failureOf(await ask(tools, "list_dir", { path: join(root, "out") }))).toContain("symbolic link");
    expect(failureOf(await ask(tools, "list_dir", { path: join(root, "no") }))).toContain("nothing exists");
  });
});

describe("stat", () => {
  it("describes a file, a directory and a link without following it", async () => {
    const { base, root, outside } = scratch();
    writeFileSync(join(root, "f"), "four", { mode: 0o640 });
    utimesSync(join(root, "f"), 0, 1_700_000_000);
    symlinkSync(join(outside, "secret.txt"), join(root, "link"));
    const tools = await toolsOver([rootOf(root)]);
    const described = async (path: string) => JSON.parse(contentOf(await ask(tools, "stat", { path })));
    expect(await described(join(root, "f"))).toEqual({
      path: join(root, "f"),
      type: "file",
      size: 4,
      modified: "2023-11-14T22:13:20.000Z",
      mode: "0640",
    });
    expect(await described(root)).toMatchObject({ type: "directory" });
    expect(await described(join(root, "link"))).toMatchObject({ type: "symlink" });
    expect(heldOpen(base)).toEqual([root]);
  });

  it("of a name that the file system would also answer to in another case is refused", async () => {
    // What a case-insensitive file system looks like from outside: two spellings, one object.
    const { base, root } = scratch();
    writeFileSync(join(root, "secret.txt"), "text");
    linkSync(join(root, "secret.txt"), join(root, "SECRET.TXT"));
    const tools = await toolsOver([rootOf(root)]);
    for (const name of ["secret.txt", "SECRET.TXT"]) {
      expect(failureOf(await ask(tools, "stat", { path: join(root, name) }))).toContain("another spelling");
      const write = { path: join(root, name), content: "new", mode: "overwrite" };
      expect(failureOf(await ask(tools, "write_file", write))).toContain("another spelling");
    }
    expect(readFileSync(join(root, "secret.txt"), "utf8")).toBe("text");
    expect(heldOpen(base)).toEqual([root]);
  });
});
