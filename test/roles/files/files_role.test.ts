import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { serveFiles } from "../../../src/roles/files/files_role.ts";
import { FakeBroker } from "../../client/fake_broker.ts";
import { heldOpen, scratch } from "./scratch.ts";

let broker: FakeBroker;

beforeEach(async () => {
  broker = await FakeBroker.start();
});

afterEach(() => broker.remove());

async function serving(roots: readonly string[], prefix?: string) {
  const role = await serveFiles({ to: { path: broker.path }, roots, prefix });
  if (!role.ok) throw new Error(role.fault);
  return { role: role.value, peer: await broker.accept() };
}

describe("the files role", () => {
  it("answers a request with the text and its labels, and lets go of all when closed", async () => {
    const { base, root } = scratch();
    writeFileSync(join(root, "a.txt"), "Grüße");
    const { role, peer } = await serving([`confidential,trusted:${root}`]);
    peer.ask(7n, "read_file", JSON.stringify({ path: join(root, "a.txt") }));
    expect(await peer.response()).toEqual({
      id: 7n,
      final: true,
      body: { status: "result", content: "Grüße", class: "confidential", untrusted: false, truncated: false },
    });
    await role.close();
    expect(heldOpen(base)).toEqual([]);
  });

  it("fails with a sentence that quotes nothing of the arguments", async () => {
    const { root } = scratch();
    const { role, peer } = await serving([root]);
    const wrong = [
      '{"path":"/etc/shadow"}',
      `{"path":"${root}/missing"}`,
      `{"path":"${root}","path":"/etc"}`,
      `{"path":"${root}","PATH":"/etc"}`,
      '["/etc"]',
      "{",
      "[".repeat(100_000),
      '{"__proto__":{"path":"/etc"}}',
    ];
    for (const [at, args] of wrong.entries()) {
      peer.ask(BigInt(at + 1), "list_dir", args);
      const { body } = await peer.response();
      expect(body).toEqual({ status: "failed", message: expect.stringMatching(/^[^/]{10,}$/) });
      expect(JSON.stringify(body)).not.toMatch(/etc|missing"|__proto__/);
    }
    await role.close();
  });

  it("puts its prefix in front of each name and knows no other", async () => {
    const { root } = scratch();
    const { role, peer } = await serving([root], "files.");
    const args = JSON.stringify({ path: root });
    peer.ask(1n, "files.list_dir", args);
    expect((await peer.response()).body.status).toBe("result");
    for (const tool of ["list_dir", "files.constructor", "files.close"]) {
      peer.ask(2n, tool, args);
      expect((await peer.response()).body.status).toBe("failed");
    }
    await role.close();
  });

  it("says what is wrong with a root, or with the broker, and leaves nothing open", async () => {
    const { base, root } = scratch();
    const to = { path: broker.path };
    expect((await serveFiles({ to, roots: ["docs"] })).ok).toBe(false);
    expect((await serveFiles({ to, roots: [join(base, "missing")] })).ok).toBe(false);
    const nowhere = { path: join(base, "nobody.sock") };
    expect(await serveFiles({ to: nowhere, roots: [root], reconnect: { giveUpAfterMs: 1 } })).toEqual({
      ok: false,
      fault: expect.stringContaining("unreachable"),
    });
    expect(heldOpen(base)).toEqual([]);
  });
});
