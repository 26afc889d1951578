import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Answers } from "../../cli/desk.ts";
import { ConsoleRig } from "./rig.ts";

const TOKEN = "0123456789abcdef0123456789abcdef";

function tokenFile(): string {
  const directory = mkdtempSync(join(tmpdir(), "callgate-token-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "token");
  writeFileSync(path, `${TOKEN}\n`, { mode: 0o600 });
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
