import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Json } from "../../../src/base/json.ts";
import { FRAME_BYTES_MAX } from "../../../src/base/limits.ts";
import { FILES_LIMITS } from "../../../src/roles/files/limits.ts";
import { ask, contentOf, failureOf, heldOpen, rootOf, scratch, toolsOver } from "./scratch.ts";

describe("read_file", () => {
  it("gives a text as it is, with the labels of its root", async () => {
    const { base, root } = scratch();
    writeFileSync(join(root, "a.txt"), "Grüße\r\n\u202e\x1b[0m");
    const tools = await toolsOver([rootOf(root, { class: "confidential" })]);
    expect(await ask(tools, "read_file", { path: join(root, "a.txt") })).toEqual({
      content: "Grüße\r\n\u202e\x1b[0m",
      class: "confidential",
      untrusted: true,
      truncated: false,
    });
    expect(heldOpen(base)).toEqual([root]);
  });

  it("cuts a long text at a character and says so; the next offset goes on there", async () => {
    const { root } = scratch();
    const text = `a${"€".repeat(100_000)}`;
    writeFileSync(join(root, "long"), text);
    const tools = await toolsOver([rootOf(root)]);
    const path = join(root, "long");
    const limit = FILES_LIMITS.contentBytesMax;
    const first = await ask(tools, "read_file", { path });
    const second = await ask(tools, "read_file", { path, offset: BigInt(limit) });
    expect(first).toMatchObject({ truncated: true });
    expect(second).toMatchObject({ truncated: false });
    expect(contentOf(first) + contentOf(second)).toBe(text);
  });

  it("fits a frame even where every byte needs an escape", () => {
    expect(FILES_LIMITS.contentBytesMax * '"\\u0001"'.slice(1, -1).length).toBeLessThan(
      FRAME_BYTES_MAX - 4096,
    );
  });

  it("reads a window of a huge file without reading the rest", async () => {
    const { root } = scratch();
    writeFileSync(join(root, "huge"), "head");
    truncateSync(join(root, "huge"), 2 ** 40);
    const tools = await toolsOver([rootOf(root)]);
    const path = join(root, "huge");
    expect(contentOf(await ask(tools, "read_file", { path, limit: 4n }))).toBe("head");
    expect(failureOf(await ask(tools, "read_file", { path, limit: 5n }))).toContain("binary");
  });

  it.each([
    ["a NUL", Buffer.from("a\0"), "binary"],
    ["Latin-1", Buffer.from([0x47, 0xfc]), "not valid UTF-8"],
    ["a PNG", Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d]), "not valid UTF-8"],
  ])("says that it can't read %s", async (_what, bytes, why) => {
    const { base, root } = scratch();
    writeFileSync(join(root, "f"), bytes);
    const tools = await toolsOver([rootOf(root)]);
    expect(failureOf(await ask(tools, "read_file", { path: join(root, "f") }))).toContain(why);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("says what is wrong with a directory, a missing file, a file used as a directory, an offset past the end", async () => {
    const { base, root } = scratch();
    writeFileSync(join(root, "f"), "four");
    const tools = await toolsOver([rootOf(root)]);
    const path = join(root, "f");
    expect(failureOf(await ask(tools, "read_file", { path: root }))).toContain("a directory, not a file");
    expect(failureOf(await ask(tools, "read_file", { path: join(root, "x") }))).toContain("nothing exists");
    expect(failureOf(await ask(tools, "read_file", { path: join(path, "x") }))).toContain(
      "a directory is expected",
    );
    expect(failureOf(await ask(tools, "read_file", { path, offset: 5n }))).toContain("past the end");
    expect(contentOf(await ask(tools, "read_file", { path, offset: 4n }))).toBe("");
    expect(heldOpen(base)).toEqual([root]);
  });

  const wrong: readonly [string, Readonly<Record<string, Json>>][] = [
    ["without a path", {}],
    ["with a path that is a number", { path: 1n }],
    ["with an offset below 0", { path: "/a", offset: -1n }],
    ["with an offset beyond 64 bits", { path: "/a", offset: 2n ** 64n }],
    ["with an offset that is inexact with its limit", { path: "/a", offset: 9_007_199_254_740_991n }],
    ["with half an offset", { path: "/a", offset: 1.5 }],
    ["with a limit that holds no character", { path: "/a", limit: 3n }],
    ["with a limit above the bound", { path: "/a", limit: 163_841n }],
    ["with a limit in quotes", { path: "/a", limit: "4" }],
    ["with a second path in capitals", { path: "/a", PATH: "/b" }],
    ["with an unknown name", { path: "/a", constructor: true }],
  ];

  it.each(wrong)("refuses arguments %s, and does not quote them", async (_what, args) => {
    const { root } = scratch();
    const tools = await toolsOver([rootOf(root)]);
    const failure = failureOf(await ask(tools, "read_file", args));
    expect(failure).toMatch(/must be|known/);
    expect(failure).not.toMatch(/PATH|constructor/);
  });

  it("that is cancelled gives nothing and holds nothing open", async () => {
    const { base, root } = scratch();
    writeFileSync(join(root, "f"), "text");
    const tools = await toolsOver([rootOf(root)]);
    const answer = await ask(tools, "read_file", { path: join(root, "f") }, AbortSignal.abort());
    expect(failureOf(answer)).toContain("cancelled");
    expect(heldOpen(base)).toEqual([root]);
  });
});
