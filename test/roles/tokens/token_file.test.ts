import { chmodSync, chownSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { readToken } from "../../../src/roles/tokens/token_file.ts";

const TOKEN = "0123456789abcdef0123456789abcdef";

function tokenFile(text = `${TOKEN}\n`, mode = 0o600): string {
  const directory = mkdtempSync(join(tmpdir(), "callgate-token-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "token");
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

describe("the token's file", () => {
  const read = (path: string) => readToken(path, process.getuid?.() ?? 0, "the metrics token");

  it("is taken where it is closed to others, also by a link", async () => {
    const path = tokenFile();
    expect((await read(path)).ok).toBe(true);
    symlinkSync(path, `${path}.link`);
    expect((await read(`${path}.link`)).ok).toBe(true);
    expect((await read(tokenFile(TOKEN, 0o640))).ok).toBe(true);
  });

  it.each([
    ["can be read by others", () => tokenFile(TOKEN, 0o644), "closed to others"],
    ["can be written by its group", () => tokenFile(TOKEN, 0o660), "closed to others"],
    ["is too short to be a secret", () => tokenFile("secret"), "32 to 512"],
    ["is empty", () => tokenFile(""), "32 to 512"],
    ["has two lines", () => tokenFile(`${TOKEN}\n${TOKEN}\n`), "32 to 512"],
    ["is very long", () => tokenFile("x".repeat(5000)), "too long"],
    ["is a directory", () => join(tokenFile(), ".."), "regular file"],
    ["is a device", () => "/dev/zero", "regular file"],
    ["is not there", () => "/nowhere/token", "ENOENT"],
  ])("is not where it %s", async (_, path, why) => {
    expect(await read(path())).toEqual({ ok: false, fault: expect.stringContaining(why) });
  });

  it.runIf(process.getuid?.() === 0)("is not where it is another user's", async () => {
    const path = tokenFile();
    chownSync(path, 61_234, 61_234);
    expect(await read(path)).toMatchObject({
      ok: false,
      fault: expect.stringContaining("belong to this user"),
    });
  });
});
