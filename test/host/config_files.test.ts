import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loadConfig } from "../../src/host/config.ts";
import { readText } from "../../src/host/config_files.ts";

const dir = mkdtempSync(join(tmpdir(), "callgate-config-"));
afterAll(() => rmSync(dir, { recursive: true }));

function file(name: string, content: string | Uint8Array): string {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
}

describe("a text file of the config", () => {
  it("comes back as it is, up to its bound and not beyond", async () => {
    const path = file("a", "\u00e9".repeat(8));
    expect(await readText(path, 16)).toEqual({ ok: true, value: "\u00e9".repeat(8) });
    expect(await readText(path, 15)).toMatchObject({ ok: false, fault: { line: 1, column: 1 } });
    expect(await readText(file("empty", ""), 15)).toEqual({ ok: true, value: "" });
  });

  it("that is no UTF-8 is refused at its line, never read with replaced letters", async () => {
    const path = file("latin", Buffer.from("[log]\nlevel = 'info'\n# caf\xe9\n", "latin1"));
    expect(await readText(path, 1000)).toMatchObject({ ok: false, fault: { line: 3, column: 1 } });
    const utf16 = file("utf16", Buffer.from("\ufefflevel = 'info'", "utf16le"));
    expect(await readText(utf16, 1000)).toMatchObject({ ok: false, fault: { line: 1 } });
  });

  it("with a byte order mark is refused", async () => {
    expect(await readText(file("bom", "\ufeffa = 1"), 1000)).toMatchObject({
      ok: false,
      fault: { message: "the file begins with a byte order mark; save it without one" },
    });
  });

  it("that is missing, a directory, a device or a pipe that nobody writes to is a fault at once", async () => {
    const pipe = join(dir, "pipe");
    execFileSync("mkfifo", [pipe]);
    for (const [path, message] of [
      [join(dir, "none"), "there is no such file"],
      [dir, "no regular file"],
      ["/dev/zero", "no regular file"],
      [pipe, "no regular file"],
      [`${dir}/\0`, "cannot be read"],
    ]) {
      const read = await readText(path!, 1000);
      expect(read.ok ? "read" : read.fault.message).toContain(message);
    }
  });
});

describe("loading a config", () => {
  it("reads the machine's users and groups", async () => {
    const path = file(
      "ok.toml",
      '[roles.agent]\nusers = ["root"]\ngroup = "root"\n[daemon]\nsockets = "run"',
    );
    const loaded = await loadConfig(path);
    expect(loaded.ok && loaded.value.config.policy.roles.get("agent")).toMatchObject({
      admits: { uids: new Set([0]) },
      socket: { mode: 0o660, gid: 0 },
    });
    expect(loaded.ok && loaded.value.config.socketsDir).toBe(join(dir, "run"));
  });

  it("of a file that is not there is one fault", async () => {
    expect(await loadConfig(join(dir, "none.toml"))).toEqual({
      ok: false,
      fault: [{ line: 1, column: 1, message: "there is no such file" }],
    });
  });
});
