import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { readMetricsToken } from "../../../src/roles/console/metrics_token.ts";
import type { Answers } from "../../cli/desk.ts";
import { ConsoleRig } from "./rig.ts";

const TOKEN = "0123456789abcdef0123456789abcdef";

function tokenFile(text = `${TOKEN}\n`, mode = 0o600): string {
  const directory = mkdtempSync(join(tmpdir(), "callgate-token-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "token");
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

/** A console that takes every connection for a stranger's, as that of Prometheus is. */
function served(
  answers: Answers = {},
  metricsTokenFile: string | undefined = tokenFile(),
): Promise<ConsoleRig> {
  return ConsoleRig.start(answers, { metricsTokenFile, ownerOf: async () => 61_234 });
}

const bearer = (rig: ConsoleRig, token = TOKEN) => [`Host: ${rig.host}`, `Authorization: Bearer ${token}`];

describe("the figures", () => {
  it("are given to another user who has the token, who gets nothing else for it", async () => {
    const rig = await served();
    await rig.broker.restart(); // also to a broker that has been away
    let answered = await rig.get("/metrics", bearer(rig));
    while (answered.body.includes("callgate_up 0")) answered = await rig.get("/metrics", bearer(rig));
    expect(answered.status).toBe(200);
    expect(answered.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(answered.body).toMatch(/^callgate_up 1$/m);
    for (const path of ["/", "/app.js", "/api/events"])
      expect((await rig.get(path, bearer(rig))).status).toBe(403);
    const post = await rig.post(
      "/api/ask/callgate.status",
      [...rig.ownHeaders(), `Authorization: Bearer ${TOKEN}`],
      "{}",
    );
    expect(post.status).toBe(403);
  });

  it.each([
    ["no token", () => []],
    ["another token", () => [`Authorization: Bearer ${"x".repeat(32)}`]],
    ["the beginning of the token", () => [`Authorization: Bearer ${TOKEN.slice(0, -1)}`]],
    ["the token as a password", () => [`Authorization: Basic ${TOKEN}`]],
    ["the token twice", () => [`Authorization: Bearer ${TOKEN}`, `Authorization: Bearer ${TOKEN}`]],
    ["the token as a cookie", (port: number) => [`Cookie: callgate_${port}=${TOKEN}`]],
  ])("are not given for %s", async (_, headers) => {
    const rig = await served();
    const answered = await rig.get("/metrics", [`Host: ${rig.host}`, ...headers(rig.port)]);
    expect(answered.status).toBe(401);
    expect(answered.headers.get("www-authenticate")).toBe("Bearer");
    expect(answered.body).not.toContain("callgate_up");
  });

  it("are not given under another host's name, nor to whoever writes", async () => {
    const rig = await served();
    expect((await rig.get("/metrics", ["Host: evil.example", `Authorization: Bearer ${TOKEN}`])).status).toBe(
      421,
    );
    expect((await rig.post("/metrics", bearer(rig), "")).status).toBe(405);
  });

  it("are not there unless they were asked for", async () => {
    const rig = await ConsoleRig.start();
    expect((await rig.get("/metrics", bearer(rig))).status).toBe(404);
  });

  it("say that there is no broker where there is none", async () => {
    const rig = await served();
    await rig.broker.remove();
    let answered = await rig.get("/metrics", bearer(rig));
    while (answered.body.includes("callgate_up 1")) answered = await rig.get("/metrics", bearer(rig));
    expect(answered.status).toBe(200);
    expect(answered.body).toMatch(/^callgate_up 0$/m);
  });

  it("are refused in a sentence where the role has none", async () => {
    const rig = await served({ status: { status: "denied", reason: "no_grant" } });
    let answered = await rig.get("/metrics", bearer(rig));
    while (answered.status === 200) answered = await rig.get("/metrics", bearer(rig)); // not connected yet
    expect(answered.status).toBe(503);
  });
});

describe("the token's file", () => {
  const read = (path: string) => readMetricsToken(path, process.getuid?.() ?? 0);

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
    const { chownSync } = await import("node:fs");
    const path = tokenFile();
    chownSync(path, 61_234, 61_234);
    expect(await read(path)).toMatchObject({
      ok: false,
      fault: expect.stringContaining("belong to this user"),
    });
  });
});
