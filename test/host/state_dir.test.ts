import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Libc, loadLibc } from "../../src/host/libc.ts";
import { openStateDirectory } from "../../src/host/state_dir.ts";

let place: string;
let libc: Libc;

beforeEach(async () => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "callgate-state-")));
  const loaded = await loadLibc();
  if (loaded === undefined) throw new Error("koffi must load where the tests run");
  libc = loaded;
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

function sentence(path: string, lockedBy = libc): string {
  const opened = openStateDirectory(path, lockedBy);
  if (opened.ok) opened.value.release();
  return opened.ok ? "opened" : opened.fault;
}

describe("the state directory", () => {
  it("is made for its owner alone, whatever the umask, and opened again afterwards", () => {
    const path = join(place, "state");
    const umask = process.umask(0);
    try {
      expect(sentence(path)).toBe("opened");
    } finally {
      process.umask(umask);
    }
    expect(statSync(path).mode & 0o7777).toBe(0o700);
    expect(sentence(path)).toBe("opened");
  });

  it("is not made below a directory that is not there", () => {
    expect(sentence(join(place, "a", "b"))).toMatch(
      /does not exist and can't be made \(ENOENT\): make ".*\/a" first\.$/,
    );
  });

  it("is refused to a second daemon, who hears the pid of the first, and free when that one is gone", () => {
    const path = join(place, "state");
    const first = openStateDirectory(path, libc);
    if (!first.ok) throw new Error(first.fault);
    expect(sentence(path)).toMatch(
      new RegExp(`in use by another daemon that is alive \\(pid ${process.pid}\\): stop it first`),
    );
    first.value.release();
    first.value.release();
    expect(sentence(path)).toBe("opened");
    expect(existsSync(join(path, "lock"))).toBe(true);
  });

  it("names no pid that the lock file does not hold", () => {
    const path = join(place, "state");
    const first = openStateDirectory(path, libc);
    if (!first.ok) throw new Error(first.fault);
    writeFileSync(join(path, "lock"), "\u001b[2J");
    expect(sentence(path)).toMatch(/in use by another daemon that is alive: stop it first/);
    first.value.release();
  });

  it.each([0o750, 0o705, 0o1777])("is refused where others may enter it (mode %o)", (mode) => {
    const path = join(place, "state");
    mkdirSync(path);
    chmodSync(path, mode);
    expect(sentence(path)).toMatch(/chmod/);
  });

  it("is refused where it or a directory above it belongs to somebody else", () => {
    if (process.geteuid?.() !== 0) throw new Error("this test gives files away, so it needs root");
    const path = join(place, "state");
    mkdirSync(path, { mode: 0o700 });
    chownSync(path, 1234, 1234);
    expect(sentence(path)).toMatch(/belongs to uid 1234/);
    chownSync(path, 0, 0);
    chownSync(place, 1234, 1234);
    expect(sentence(path)).toMatch(/belongs to uid 1234/);
  });

  it("may be reached by a link, and is looked at where that leads", () => {
    const path = join(place, "real");
    mkdirSync(path, { mode: 0o755 });
    symlinkSync(path, join(place, "state"));
    expect(sentence(join(place, "state"))).toMatch(/chmod/);
    chmodSync(path, 0o700);
    expect(sentence(join(place, "state"))).toBe("opened");
  });

  it("is refused where it is a file, and where its lock is something else than a file", () => {
    const file = join(place, "file");
    writeFileSync(file, "");
    expect(sentence(file)).toMatch(/is not a directory/);
    const path = join(place, "state");
    mkdirSync(join(path, "lock"), { recursive: true });
    chmodSync(path, 0o700);
    expect(sentence(path)).toMatch(/lock" is not a plain file of this daemon's user/);
  });

  it("is refused where it can't be locked, since two daemons would run one call twice", () => {
    const path = join(place, "state");
    expect(openStateDirectory(path, undefined)).toMatchObject({
      fault: expect.stringMatching(/can't be locked/),
    });
    expect(sentence(path, { ...libc, lockExclusive: () => -37 })).toMatch(/can't be locked \(errno 37\)/);
  });

  it("notes the pid of whoever has it", () => {
    const path = join(place, "state");
    writeFileSync(join(place, "x"), "");
    const first = openStateDirectory(path, libc);
    expect(readFileSync(join(path, "lock"), "latin1")).toBe(`${process.pid}\n`);
    if (first.ok) first.value.release();
  });
});
