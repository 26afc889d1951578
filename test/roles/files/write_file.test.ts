import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FILES_LIMITS } from "../../../src/roles/files/limits.ts";
import { ask, contentOf, failureOf, heldOpen, rootOf, SECRET, scratch, toolsOver } from "./scratch.ts";
import { namedPipe } from "./special.ts";

describe("write_file", () => {
  it("creates a file for its owner alone and tells the bytes", async () => {
    const { base, root } = scratch();
    const tools = await toolsOver([rootOf(root)]);
    const path = join(root, "new.txt");
    const answer = await ask(tools, "write_file", { path, content: "Grüße" });
    expect(JSON.parse(contentOf(answer))).toEqual({ path, bytes: 7, created: true });
    expect(readFileSync(path, "utf8")).toBe("Grüße");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(path).nlink).toBe(1);
    expect(readdirSync(root)).toEqual(["new.txt"]);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("does not touch what exists unless the mode is overwrite", async () => {
    const { base, root } = scratch();
    const path = join(root, "f");
    writeFileSync(path, "old");
    const tools = await toolsOver([rootOf(root)]);
    expect(failureOf(await ask(tools, "write_file", { path, content: "new" }))).toContain("something exists");
    expect(failureOf(await ask(tools, "write_file", { path, content: "new", mode: "append" }))).toContain(
      "`mode`",
    );
    expect(readFileSync(path, "utf8")).toBe("old");
    expect(readdirSync(root)).toEqual(["f"]);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("replaces a file whole, keeping its permissions but no set-user-id", async () => {
    const { base, root } = scratch();
    const path = join(root, "f");
    writeFileSync(path, "old and longer");
    chmodSync(path, 0o4754);
    const tools = await toolsOver([rootOf(root)]);
    const answer = await ask(tools, "write_file", { path, content: "new", mode: "overwrite" });
    expect(JSON.parse(contentOf(answer))).toEqual({ path, bytes: 3, created: false });
    expect(readFileSync(path, "utf8")).toBe("new");
    expect(statSync(path).mode & 0o7777).toBe(0o754);
    expect(readdirSync(root)).toEqual(["f"]);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("never writes through a hard link into a file that lies outside", async () => {
    const { root, outside } = scratch();
    const path = join(root, "f");
    linkSync(join(outside, "secret.txt"), path);
    const tools = await toolsOver([rootOf(root)]);
    contentOf(await ask(tools, "write_file", { path, content: "new", mode: "overwrite" }));
    expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe(SECRET);
  });

  it.each(["create", "overwrite"])("with mode %s replaces no link, directory or pipe", async (mode) => {
    const { base, root, outside } = scratch();
    symlinkSync(join(outside, "secret.txt"), join(root, "link"));
    symlinkSync(join(outside, "not there"), join(root, "dangling"));
    symlinkSync(outside, join(root, "out"));
    mkdirSync(join(root, "dir"));
    namedPipe(join(root, "pipe"));
    const tools = await toolsOver([rootOf(root)]);
    const targets = { link: "link", dangling: "link", "out/new": "link", dir: "directory", pipe: "pipe" };
    for (const [name, why] of Object.entries(targets)) {
      const answer = await ask(tools, "write_file", { path: join(root, name), content: "new", mode });
      expect(failureOf(answer)).toContain(why);
    }
    expect(failureOf(await ask(tools, "write_file", { path: root, content: "", mode }))).toContain(
      "directory",
    );
    expect(readdirSync(outside)).toEqual(["secret.txt"]);
    expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe(SECRET);
    expect(readdirSync(root)).toEqual(["dangling", "dir", "link", "out", "pipe"]);
    expect(lstatSync(join(root, "pipe")).isFIFO()).toBe(true);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("needs the directory to exist", async () => {
    const { root } = scratch();
    const tools = await toolsOver([rootOf(root)]);
    const answer = await ask(tools, "write_file", { path: join(root, "no", "f"), content: "" });
    expect(failureOf(answer)).toContain("nothing exists");
  });

  it("refuses a text that is too large or that UTF-8 cannot express, and leaves nothing behind", async () => {
    const { base, root } = scratch();
    const tools = await toolsOver([rootOf(root)], { ...FILES_LIMITS, writeBytesMax: 5 });
    const path = join(root, "f");
    expect(failureOf(await ask(tools, "write_file", { path, content: "€€" }))).toContain("larger");
    expect(failureOf(await ask(tools, "write_file", { path, content: "a\ud800" }))).toContain("surrogate");
    expect(readdirSync(root)).toEqual([]);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("that is cancelled, at whichever step, has written all or nothing and leaves nothing behind", async () => {
    const { base, root } = scratch();
    const path = join(root, "f");
    const tools = await toolsOver([rootOf(root)]);
    const outcomes = new Set<string>();
    for (let looks = 0; looks < 12; looks += 1) {
      writeFileSync(path, "old");
      const signal = abortedAfter(looks);
      const answer = await ask(tools, "write_file", { path, content: "new", mode: "overwrite" }, signal);
      const outcome = "failed" in answer ? "old" : "new";
      expect(readFileSync(path, "utf8")).toBe(outcome);
      expect(readdirSync(root)).toEqual(["f"]);
      outcomes.add(outcome);
    }
    expect([...outcomes]).toEqual(["old", "new"]);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("lets one of many creators of the same file win, and never mixes two texts", async () => {
    const { base, root } = scratch();
    const path = join(root, "f");
    const tools = await toolsOver([rootOf(root)]);
    const texts = Array.from({ length: 16 }, (_, at) => `${at} `.repeat(10_000));
    const answers = await Promise.all(texts.map((content) => ask(tools, "write_file", { path, content })));
    const won = answers.flatMap((answer, at) => ("failed" in answer ? [] : [texts[at]]));
    expect(won).toEqual([readFileSync(path, "utf8")]);
    expect(readdirSync(root)).toEqual(["f"]);
    expect(heldOpen(base)).toEqual([root]);
  });
});

/** Aborts on its own when it has been looked at so many times: each look is another step of the call. */
function abortedAfter(looks: number): AbortSignal {
  let left = looks;
  const { signal } = new AbortController();
  return new Proxy(signal, {
    get: (target, key) => (key === "aborted" ? left-- <= 0 : Reflect.get(target, key, target)),
  });
}
