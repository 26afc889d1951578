import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";

import { checkDirectory, checkFile } from "../../src/host/trusted_paths.ts";
import { cleanUp, GROUP, requireRoot, STRANGER, temporaryDirectory } from "./listen_fixture.ts";

const ROOT = 0;
const DAEMON = 54_300;

beforeAll(requireRoot);
afterEach(cleanUp);

/** Makes `name` below `parent`, whatever the umask. */
function directory(parent: string, name: string, mode = 0o755, owner = ROOT): string {
  const path = join(parent, name);
  mkdirSync(path);
  chmodSync(path, mode);
  chownSync(path, owner, owner);
  return path;
}

function verdict(path: string, uid = ROOT): string {
  const checked = checkDirectory(path, uid);
  return checked.ok ? "trusted" : `${checked.fault.code} ${checked.fault.path}`;
}

function fileVerdict(path: string, uid = ROOT): string {
  const checked = checkFile(path, uid);
  return checked.ok ? "trusted" : checked.fault.code;
}

describe("a directory is trusted", () => {
  it("below directories of root and of the daemon's own user, also in a sticky one", () => {
    const base = temporaryDirectory();
    const mine = directory(base, "mine", 0o700, DAEMON);
    expect(verdict(directory(mine, "sockets"), DAEMON)).toBe("trusted");
    expect(verdict(base)).toBe("trusted");
  });

  it("through a link that root made", () => {
    const base = temporaryDirectory();
    directory(directory(base, "real"), "sockets");
    symlinkSync("real", join(base, "relative"));
    symlinkSync(`${base}/./real/../relative/`, join(base, "absolute"));
    expect(verdict(join(base, "absolute", "sockets"))).toBe("trusted");
  });
});

describe("somebody else could replace the sockets, so the daemon does not start, where", () => {
  it("the directory belongs to another user", () => {
    const path = directory(temporaryDirectory(), "sockets", 0o755, STRANGER);
    expect(verdict(path)).toBe(`foreign_owner ${path}`);
    expect(verdict(path, DAEMON)).toBe(`foreign_owner ${path}`);
    expect(verdict(path, STRANGER)).toBe("trusted");
  });

  it("a directory above it belongs to another user", () => {
    const above = directory(temporaryDirectory(), "above", 0o755, STRANGER);
    expect(verdict(directory(above, "sockets"))).toBe(`foreign_owner ${above}`);
  });

  it.each([0o775, 0o757, 0o1777, 0o2775])("its own mode is %o, sticky or not", (mode) => {
    const path = directory(temporaryDirectory(), "sockets", mode);
    expect(verdict(path)).toBe(`open_to_others ${path}`);
  });

  it.each([0o775, 0o757])("a directory above it has mode %o", (mode) => {
    const above = directory(temporaryDirectory(), "above", mode);
    expect(verdict(directory(above, "sockets"))).toBe(`open_to_others ${above}`);
  });

  it("another user made the next component in a sticky directory", () => {
    const sticky = directory(temporaryDirectory(), "sticky", 0o1777);
    const planted = directory(sticky, "planted", 0o755, STRANGER);
    expect(verdict(directory(sticky, "ours"))).toBe("trusted");
    expect(verdict(planted)).toBe(`foreign_owner ${planted}`);
  });

  it("another user owns the sticky directory itself, and so may rename in it", () => {
    const sticky = directory(temporaryDirectory(), "sticky", 0o1777, STRANGER);
    expect(verdict(directory(sticky, "sockets"))).toBe(`foreign_owner ${sticky}`);
  });

  it("another user's link in a sticky directory leads to a good one", () => {
    const base = temporaryDirectory();
    const link = join(directory(base, "sticky", 0o1777), "link");
    symlinkSync(directory(base, "real"), link);
    expect(verdict(link)).toBe("trusted");
    lchownSync(link, STRANGER, STRANGER);
    expect(verdict(link)).toBe(`foreign_owner ${link}`);
  });

  it("a good link leads through a directory that others write", () => {
    const base = temporaryDirectory();
    const open = directory(base, "open", 0o777);
    directory(open, "sockets");
    symlinkSync("open/sockets", join(base, "link"));
    expect(verdict(join(base, "link"))).toBe(`open_to_others ${open}`);
  });

  it("the link lies in a directory that others write, though its target is good", () => {
    const base = temporaryDirectory();
    const open = directory(base, "open", 0o777);
    symlinkSync(directory(base, "real"), join(open, "link"));
    expect(verdict(join(open, "link"))).toBe(`open_to_others ${open}`);
  });

  it("the link's way goes back out of such a directory", () => {
    const base = temporaryDirectory();
    const open = directory(base, "open", 0o777);
    directory(base, "real");
    symlinkSync("open/../real", join(base, "link"));
    expect(verdict(join(base, "link"))).toBe(`open_to_others ${open}`);
  });
});

describe("what cannot be judged is refused", () => {
  it("missing paths, also behind a link", () => {
    const base = temporaryDirectory();
    symlinkSync("nowhere", join(base, "dangling"));
    expect(verdict(join(base, "none", "sockets"))).toBe(`missing ${join(base, "none")}`);
    expect(verdict(join(base, "dangling"))).toBe(`missing ${join(base, "nowhere")}`);
  });

  it("a file where a directory should be, and a directory where a file should be", () => {
    const base = temporaryDirectory();
    const file = join(base, "file");
    writeFileSync(file, "");
    expect(verdict(file)).toBe(`not_a_directory ${file}`);
    expect(verdict(join(file, "sockets"))).toBe(`not_a_directory ${file}`);
    expect(fileVerdict(base)).toBe("not_a_file");
  });

  it("links in a circle", () => {
    const base = temporaryDirectory();
    symlinkSync("b", join(base, "a"));
    symlinkSync("a", join(base, "b"));
    expect(verdict(join(base, "a"))).toBe(`too_many_links ${join(base, "a")}`);
  });

  it.each(["run", "", ".", "/run/../etc", "/run/", "/run//x", "/run/./x", "/run\0/x"])(
    "the path %j, which is not plain and absolute",
    (path) => {
      expect(verdict(path)).toBe(`not_plain ${path}`);
    },
  );
});

describe("a file", () => {
  it("is trusted in a sticky directory if it is ours, and not if another owns it or others write it", () => {
    const file = join(directory(temporaryDirectory(), "sticky", 0o1777), "callgate.toml");
    writeFileSync(file, "", { mode: 0o644 });
    expect(fileVerdict(file)).toBe("trusted");
    chmodSync(file, 0o664);
    expect(fileVerdict(file)).toBe("open_to_others");
    chmodSync(file, 0o644);
    chownSync(file, STRANGER, GROUP);
    expect(fileVerdict(file)).toBe("foreign_owner");
  });

  it("is not trusted, whoever owns it, where its directory is another's", () => {
    const file = join(directory(temporaryDirectory(), "theirs", 0o755, STRANGER), "callgate.toml");
    writeFileSync(file, "", { mode: 0o644 });
    expect(fileVerdict(file)).toBe("foreign_owner");
  });
});

describe("a fault tells the owner", () => {
  it("which path, what is wrong, and the command that puts it right", () => {
    const path = directory(temporaryDirectory(), "sockets", 0o775);
    const checked = checkDirectory(path, ROOT);
    const sentence = `"${path}" can be written by others than its owner (mode 0775): chmod go-w "${path}"`;
    expect(checked).toEqual({ ok: false, fault: { code: "open_to_others", path, sentence } });
  });
});
