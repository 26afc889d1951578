import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FILE_START } from "../../src/host/config_faults.ts";
import { isCredentialName, readSecret, type SecretSource } from "../../src/host/connector_secret_source.ts";

const UID = process.geteuid?.() ?? -1;
let directory = "";

beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), "callgate-secret-")));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

function file(content: string | Uint8Array, mode = 0o600): string {
  const path = join(directory, "secret");
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

function read(path: string, credentialsDirectory?: string) {
  const source: SecretSource = path.includes("/")
    ? { kind: "file", path, at: FILE_START }
    : { kind: "credential", name: path, at: FILE_START };
  return readSecret(source, { credentialsDirectory, uid: UID });
}

describe("a file of a secret", () => {
  it.each([
    ["secret", "secret"],
    ["secret\n", "secret"],
    ["secret\r\n\n", "secret"],
    ["\nsecret \n", "\nsecret "],
    ["\ufeffsecret", "\ufeffsecret"],
  ])("%j holds %j", async (content, secret) => {
    expect(await read(file(content))).toEqual({ ok: true, value: secret });
  });

  it.each([0o600, 0o400, 0o640, 0o440])("may have the mode %o", async (mode) => {
    expect((await read(file("secret", mode))).ok).toBe(true);
  });

  it.each([
    [0o644, "can be read by every user"],
    [0o604, "can be read by every user"],
    [0o660, "can be written by others"],
    [0o602, "can be written by others"],
  ])("may not have the mode %o", async (mode, says) => {
    const found = await read(file("canary", mode));
    expect(found).toEqual({ ok: false, fault: expect.stringContaining(says) });
    expect(JSON.stringify(found)).not.toContain("canary");
  });

  it.each([
    ["", "is empty"],
    ["\r\n\n", "is empty"],
    [Buffer.from([0x61, 0xff]), "is not UTF-8"],
    [Buffer.alloc(16_385, 0x61), "is longer than 16384 bytes"],
  ])("that holds no secret is refused", async (content, says) => {
    expect(await read(file(content))).toEqual({ ok: false, fault: expect.stringContaining(says) });
  });

  it("that is none, or in a directory that others can write to, is refused at once", async () => {
    expect(await read(join(directory, "none"))).toMatchObject({ ok: false });
    expect(await read(directory)).toMatchObject({ ok: false });
    execFileSync("mkfifo", [join(directory, "fifo")]);
    expect(await read(join(directory, "fifo"))).toMatchObject({ ok: false });
    const path = file("secret");
    chmodSync(directory, 0o777);
    expect(await read(path)).toMatchObject({
      ok: false,
      fault: expect.stringContaining("written by others"),
    });
  });

  it("behind a link is that of its target, as systemd and others put them there", async () => {
    mkdirSync(join(directory, "deep"));
    writeFileSync(join(directory, "deep/target"), "secret\n", { mode: 0o600 });
    symlinkSync("deep/target", join(directory, "link"));
    expect(await read(join(directory, "link"))).toEqual({ ok: true, value: "secret" });
  });
});

describe("a credential", () => {
  it("is a file of the directory that the service manager names, and is missing without one", async () => {
    file("secret", 0o440);
    expect(await read("secret", directory)).toEqual({ ok: true, value: "secret" });
    expect(await read("secret")).toEqual({
      ok: false,
      fault: expect.stringContaining("CREDENTIALS_DIRECTORY"),
    });
    expect(await read("secret", "relative")).toMatchObject({ ok: false });
  });

  it("has a name that leads nowhere else", () => {
    for (const name of ["anthropic-key", "a.b", "A_1:x"]) expect(isCredentialName(name)).toBe(true);
    for (const name of ["", ".", "..", "../x", "a/b", "-x", ".x", "a\nb", "x".repeat(256)])
      expect(isCredentialName(name)).toBe(false);
  });
});
