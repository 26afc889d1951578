// What an agent, or another local user with a hand in the root, would try.

import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { FILES_TOOLS } from "../../../src/roles/files/definitions.ts";
import { letGo, mountOf, pinAbsolute } from "../../../src/roles/files/descriptor.ts";
import { closeRoots, type PinnedRoot, pinRoots } from "../../../src/roles/files/roots.ts";
import type { FilesTools } from "../../../src/roles/files/tools.ts";
import { pinWithin } from "../../../src/roles/files/walk.ts";
import { ask, contentOf, failureOf, heldOpen, rootOf, SECRET, scratch, toolsOver } from "./scratch.ts";
import { namedPipe, unprivileged } from "./special.ts";

/** Every tool on one path, with what else it needs. */
async function askAll(tools: FilesTools, path: string) {
  const more = { write_file: { content: "new", mode: "overwrite" }, search_files: { content: "SECRET" } };
  return Promise.all(FILES_TOOLS.map((name) => ask(tools, name, { path, ...Reflect.get(more, name) })));
}

describe("a path out of the roots", () => {
  it.each([
    ["..", "/../outside/secret.txt"],
    ["a dot", "/./f"],
    ["two slashes", "//f"],
    ["a slash at the end", "/f/"],
    ["NUL", "/f\0/../../outside/secret.txt"],
    ["an invisible character", "/f\u200b"],
  ])("through %s is refused by every tool", async (_what, tail) => {
    const { base, root } = scratch();
    writeFileSync(join(root, "f"), "text");
    const tools = await toolsOver([rootOf(root)]);
    for (const answer of await askAll(tools, root + tail)) {
      expect(failureOf(answer)).toContain("absolute and plain");
    }
    expect(heldOpen(base)).toEqual([root]);
  });

  it("to an absolute place elsewhere is refused by every tool", async () => {
    const { root, outside } = scratch();
    const tools = await toolsOver([rootOf(root)]);
    for (const answer of await askAll(tools, join(outside, "secret.txt"))) {
      expect(failureOf(answer)).toContain("in none of");
    }
  });

  it("through a symbolic link is refused, wherever in the path it is and wherever it leads", async () => {
    const { base, root, outside } = scratch();
    mkdirSync(join(root, "dir"));
    writeFileSync(join(root, "dir", "secret.txt"), "inside");
    symlinkSync(outside, join(root, "absolute"));
    symlinkSync("../../outside", join(root, "dir", "relative"));
    symlinkSync("dir", join(root, "within"));
    symlinkSync("absolute", join(root, "twice"));
    symlinkSync("/proc/self/root", join(root, "magic"));
    const tools = await toolsOver([rootOf(root)]);
    const links = ["absolute", "dir/relative", "within", "twice", `magic${outside}`];
    for (const path of links.map((link) => join(root, link, "secret.txt"))) {
      for (const answer of await askAll(tools, path)) expect(failureOf(answer)).toContain("symbolic link");
    }
    expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe(SECRET);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("through the magic links of /proc is refused even where /proc itself is a root", async () => {
    const { outside } = scratch();
    const proc = `/proc/${process.pid}`;
    const tools = await toolsOver([rootOf(proc)]);
    for (const path of [`${proc}/root${outside}/secret.txt`, `${proc}/cwd`, `${proc}/fd/0`, `${proc}/exe`]) {
      expect(failureOf(await ask(tools, "read_file", { path }))).toContain("symbolic link");
    }
  });

  it("into another file system is refused: /proc under a root of everything", async () => {
    const tools = await toolsOver([rootOf("/", { writable: false })]);
    for (const path of [`/proc/${process.pid}/environ`, "/proc/self/environ", "/proc/kmsg"]) {
      expect(failureOf(await ask(tools, "read_file", { path }))).toContain("another file system");
    }
    expect(contentOf(await ask(tools, "read_file", { path: "/etc/passwd" }))).toContain("root:");
  });
});

describe("what is mounted within a root", () => {
  it("is refused though it be a part of the same file system, files as well as directories", async () => {
    const { root } = scratch();
    mkdirSync(join(root, "secrets"));
    writeFileSync(join(root, "token"), SECRET);
    const pinned = await pinRoots([rootOf(root)]);
    if (!pinned.ok) throw new Error(pinned.fault);
    const [served] = pinned.value as [PinnedRoot];
    for (const name of ["secrets", "token"]) {
      const same = pinWithin(served, served.directory, name);
      expect(same.ok).toBe(true);
      if (same.ok) letGo(same.value);
      // As the walk sees an entry that a bind mount covers: the same device, another mount.
      const mounted = pinWithin({ ...served, mount: `${served.mount}0` }, served.directory, name);
      expect(mounted).toEqual({ ok: false, fault: "other_filesystem" });
    }
    closeRoots(pinned.value);
  });

  it("is told apart by the kernel's own number of the mount", () => {
    const mounts = ["/", "/proc"].map((path) => {
      const pinned = pinAbsolute(path);
      if (!pinned.ok) throw new Error(pinned.fault);
      const mount = mountOf(pinned.value);
      letGo(pinned.value);
      return mount;
    });
    for (const mount of mounts) expect(mount).toMatch(/^[0-9]+$/);
    expect(mounts[0]).not.toBe(mounts[1]);
  });
});

describe("what is no file", () => {
  it("is never opened: a pipe without a writer, a socket and a device answer at once", async () => {
    const { base, root } = scratch();
    namedPipe(join(root, "pipe"));
    const server = createServer().listen(join(root, "socket"));
    const tools = await toolsOver([rootOf(root), rootOf(realpathSync("/dev"), { writable: false })]);
    for (const path of [join(root, "pipe"), join(root, "socket"), "/dev/zero"]) {
      expect(failureOf(await ask(tools, "read_file", { path }))).toContain("never opened");
    }
    server.close();
    expect(heldOpen(base)).toEqual([root]);
  });
});

describe("what this user may not read", () => {
  it("is told apart from what is missing, by each tool, and holds nothing open", async () => {
    const { base, root } = scratch();
    mkdirSync(join(root, "closed"));
    writeFileSync(join(root, "closed", "f"), "text");
    writeFileSync(join(root, "unreadable"), "text");
    chmodSync(join(root, "closed"), 0);
    chmodSync(join(root, "unreadable"), 0);
    chmodSync(base, 0o755);
    const tools = await toolsOver([rootOf(root)]);
    const answers = await unprivileged(async () => ({
      read: await ask(tools, "read_file", { path: join(root, "unreadable") }),
      through: await ask(tools, "read_file", { path: join(root, "closed", "f") }),
      list: await ask(tools, "list_dir", { path: join(root, "closed") }),
      write: await ask(tools, "write_file", { path: join(root, "closed", "f"), content: "" }),
      overwrite: await ask(tools, "write_file", {
        path: join(root, "unreadable"),
        content: "",
        mode: "overwrite",
      }),
      missing: await ask(tools, "read_file", { path: join(root, "missing") }),
      search: await ask(tools, "search_files", { path: root, content: "text" }),
    }));
    chmodSync(join(root, "closed"), 0o700);
    const { missing, search, ...denied } = answers;
    for (const answer of Object.values(denied)) expect(failureOf(answer)).toContain("no permission");
    expect(failureOf(missing)).toContain("nothing exists");
    expect(JSON.parse(contentOf(search))).toMatchObject({ matches: [], passed_over: { unreadable: 2 } });
    expect(heldOpen(base)).toEqual([root]);
  });

  it("may not be replaced either: a read-only file in a directory that is writable", async () => {
    const { base, root } = scratch();
    writeFileSync(join(root, "fixed"), "old", { mode: 0o444 });
    chmodSync(base, 0o755);
    chmodSync(root, 0o777);
    const tools = await toolsOver([rootOf(root)]);
    const path = join(root, "fixed");
    const answer = await unprivileged(() =>
      ask(tools, "write_file", { path, content: "new", mode: "overwrite" }),
    );
    expect(failureOf(answer)).toContain("no permission");
    expect(readdirSync(root)).toEqual(["fixed"]);
    expect(readFileSync(path, "utf8")).toBe("old");
  });
});

describe("a directory that is swapped for a link to the outside while calls run", () => {
  it("never gives the secret, never names what lies there, and never gets a file written", async () => {
    const { base, root, outside } = scratch();
    const dir = join(root, "dir");
    mkdirSync(dir);
    writeFileSync(join(dir, "secret.txt"), "inside");
    writeFileSync(join(outside, "outside-only"), "");
    const tools = await toolsOver([rootOf(root)]);
    const seen = await whileSwapping(2000, dir, outside, (round) => [
      ask(tools, "read_file", { path: join(dir, "secret.txt") }),
      ask(tools, "list_dir", { path: dir }),
      ask(tools, "search_files", { path: root, name: "o", content: "S" }),
      ask(tools, "search_files", { path: root, name: "outside-only" }),
      ask(tools, "write_file", { path: join(dir, `new-${round % 8}`), content: "new", mode: "overwrite" }),
    ]);
    expect(seen.contents).toContain("inside");
    expect(seen.failures.size).toBeGreaterThan(0);
    for (const content of seen.contents) {
      expect(content).not.toContain(SECRET);
      expect(content).not.toContain('"name":"outside-only"');
      expect(content).not.toContain("/outside-only");
    }
    expect(readdirSync(outside)).toEqual(["outside-only", "secret.txt"]);
    expect(readdirSync(root)).toEqual(["dir"]);
    expect(readdirSync(dir).filter((name) => name.startsWith("."))).toEqual([]);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("nor where it is the file itself that is swapped", async () => {
    const { base, root, outside } = scratch();
    const path = join(root, "f");
    writeFileSync(path, "inside");
    const tools = await toolsOver([rootOf(root)]);
    const seen = await whileSwapping(2000, path, join(outside, "secret.txt"), () => [
      ask(tools, "read_file", { path }),
      ask(tools, "search_files", { path: root, content: "SECRET" }),
    ]);
    expect(seen.contents).toContain("inside");
    expect(seen.failures.size).toBeGreaterThan(0);
    for (const content of seen.contents) expect(content).not.toContain(SECRET);
    expect(heldOpen(base)).toEqual([root]);
  });

  it("is really swapped under the nose of a careless reader: without the pinning the secret does come out", async () => {
    const { root, outside } = scratch();
    const dir = join(root, "dir");
    mkdirSync(dir);
    writeFileSync(join(dir, "secret.txt"), "inside");
    const seen = new Set<string>();
    await swapping(2000, dir, outside, async () => {
      try {
        seen.add(readFileSync(join(dir, "secret.txt"), "utf8"));
      } catch {
        // between the two steps of a swap nothing is there
      }
    });
    expect([...seen].sort()).toEqual([SECRET, "inside"].sort());
  });
});

async function whileSwapping(
  times: number,
  name: string,
  outside: string,
  calls: (round: number) => Promise<Awaited<ReturnType<typeof ask>>>[],
) {
  const contents = new Set<string>();
  const failures = new Set<string>();
  let round = 0;
  await swapping(times, name, outside, async () => {
    for (const answer of await Promise.all(calls(round++))) {
      if ("failed" in answer) failures.add(answer.failed);
      else contents.add(answer.content);
    }
  });
  return { contents, failures };
}

/** Repeats `run` until the adversary has done its swaps. */
async function swapping(
  times: number,
  name: string,
  outside: string,
  run: () => Promise<void>,
): Promise<void> {
  const script = fileURLToPath(new URL("swapper.mjs", import.meta.url));
  const adversary = spawn(process.execPath, [script, String(times), name, outside], { stdio: "inherit" });
  let done = false;
  const exited = once(adversary, "exit").then(([code]) => {
    done = true;
    return code;
  });
  while (!done) {
    await run();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await exited).toBe(0);
}

it("a hard link to an outside file is a file of the root, which no path can tell", async () => {
  // Documented, not prevented: the kernel's protected_hardlinks keeps others from making such links.
  const { root, outside } = scratch();
  linkSync(join(outside, "secret.txt"), join(root, "f"));
  const tools = await toolsOver([rootOf(root)]);
  expect(contentOf(await ask(tools, "read_file", { path: join(root, "f") }))).toBe(SECRET);
});
