import { describe, expect, it } from "vitest";
import { fault, ok } from "../../src/base/faults.ts";
import { type CheckOptions, checkConfig, type LoadConfig, type Warning } from "../../src/cli/check.ts";
import { coloured } from "../../src/cli/paint.ts";
import type { PolicyReach } from "../../src/client/load_answers.ts";
import { allows, reachOf, tool } from "../policy/reach_world.ts";

async function check(load: LoadConfig, more: Partial<CheckOptions> = {}) {
  const written = { out: "", err: "" };
  const code = await checkConfig({
    ...{ path: "a.toml", json: false, reach: false, paths: false, graph: undefined, writes: false, load },
    out: (text) => {
      written.out += text;
    },
    err: (text) => {
      written.err += text;
    },
    ...more,
  });
  return { code, ...written };
}

const SHUT: PolicyReach = { roles: [], paths: [], more: false };
/** One role that reads and sends. */
const OPEN = reachOf({
  roles: { agent: [], web: [], mail: [] },
  tools: [tool("web.fetch", "read"), tool("web.list", "read"), tool("mail.send", "send")],
  grants: [allows("agent-reads", ["web.*"]), allows("agent-sends", ["mail.send"])],
});

const loaded =
  (warnings: readonly Warning[], reach: PolicyReach): LoadConfig =>
  async () =>
    ok({ warnings, reach: () => reach });
const CLEAN = loaded([], SHUT);
const WARNED = loaded([{ line: 3, column: 9, message: "mind this", code: "every_tool" }], SHUT);
const BROKEN: LoadConfig = async () =>
  fault([
    { line: 1, column: 2, message: "no" },
    { line: 4, column: 1, message: "nor this" },
  ]);

describe("callgate check", () => {
  it("says where each error stands, in the form that editors jump to, and exits with 1", async () => {
    expect(await check(BROKEN)).toEqual({
      code: 1,
      out: "a.toml:1:2: error: no\na.toml:4:1: error: nor this\na.toml: 2 errors; this config would be refused\n",
      err: "",
    });
  });

  it("exits with 0 where there are only warnings", async () => {
    expect(await check(WARNED)).toEqual({
      code: 0,
      out: "a.toml:3:9: warning: mind this [every_tool]\na.toml: no errors, 1 warning\n",
      err: "",
    });
  });

  it("shows on a terminal what is bad in red, what to look at in yellow, and every line is otherwise the same", async () => {
    const more = { reach: true, paths: true, paint: coloured };
    const inColours = await check(loaded([{ line: 3, column: 9, message: "mind", code: "x" }], OPEN), more);
    const without = await check(loaded([{ line: 3, column: 9, message: "mind", code: "x" }], OPEN), {
      ...more,
      paint: undefined,
    });
    expect(inColours.out).toContain("a.toml:3:9: \u001b[33mwarning\u001b[0m: mind [x]\n");
    expect(inColours.out).toMatch(/^ {2}\u001b\[1mTOOL\u001b\[0m {2,}\u001b\[1mEFFECT/m);
    expect(inColours.out).toMatch(/^\u001b\[1;31magent reads results of/m);
    expect(inColours.out.replaceAll(/\u001b\[[0-9;]*m/g, "")).toBe(without.out);
    expect((await check(BROKEN, more)).out).toContain("a.toml:1:2: \u001b[1;31merror\u001b[0m: no\n");
    expect((await check(WARNED, { ...more, json: true })).out).not.toContain("\u001b");
  });

  it("has one line where there is nothing to say", async () => {
    expect(await check(CLEAN)).toEqual({ code: 0, out: "a.toml: no errors, no warnings\n", err: "" });
  });

  it("writes one JSON object of the same where a program asks", async () => {
    const broken = await check(BROKEN, { json: true, reach: true });
    expect(broken.code).toBe(1);
    expect(broken.out.split("\n")).toHaveLength(2);
    expect(JSON.parse(broken.out)).toEqual({
      file: "a.toml",
      ok: false,
      errors: [
        { line: 1, column: 2, message: "no" },
        { line: 4, column: 1, message: "nor this" },
      ],
      warnings: [],
    });
    const warned = await check(WARNED, { json: true });
    expect(warned.code).toBe(0);
    expect(JSON.parse(warned.out)).toEqual({
      file: "a.toml",
      ok: true,
      errors: [],
      warnings: [{ code: "every_tool", line: 3, column: 9, message: "mind this" }],
    });
  });

  it("asks for the very file that it was given", async () => {
    const asked: string[] = [];
    await check(async (path) => {
      asked.push(path);
      return CLEAN(path);
    });
    expect(asked).toEqual(["a.toml"]);
  });
});

const SUMMARY = "3 ways lead from untrusted content to send without a person";

describe("callgate check, of what a policy comes to,", () => {
  it("says in one line how many ways are open and how to see them, and still exits with 0", async () => {
    expect(await check(loaded([], OPEN))).toEqual({
      code: 0,
      out: `a.toml: no errors, no warnings\n${SUMMARY}: callgate check --config a.toml --paths\n`,
      err: "",
    });
  });

  it("tells each way in words", async () => {
    const { out } = await check(loaded([], OPEN), { paths: true });
    expect(out).toContain(`${SUMMARY}\n`);
    expect(out).toContain(
      "agent reads results of web.fetch, web.list or mail.send (untrusted) and can then use mail.send (send) without a person (grant agent-sends)\n",
    );
    const two = reachOf({
      roles: { agent: [], web: [], mail: [] },
      tools: [tool("web.fetch", "read"), tool("mail.send", "send"), tool("mail.reply", "send")],
      grants: [allows("agent-reads", ["web.*"]), allows("agent-sends", ["mail.*"])],
    });
    const ways = (await check(loaded([], two), { paths: true })).out.match(/^agent reads .*/gm);
    expect(ways).toEqual([
      expect.stringMatching(/and can then use mail\.(reply|send) or mail\.(reply|send) \(send\)/) as string,
    ]);
    expect((await check(CLEAN, { paths: true })).out).toContain("No way leads from untrusted content");
  });

  it("has the table of who reaches what", async () => {
    const { out } = await check(loaded([], OPEN), { reach: true });
    expect(out).toMatch(/^role agent$/m);
    expect(out).toMatch(/^ {2}mail\.send {2}send {4}allow {4}allow$/m);
  });

  it("draws on standard output alone, so that it can be piped; findings go to standard error", async () => {
    for (const graph of ["dot", "mermaid"] as const) {
      const { out, err } = await check(loaded([], OPEN), { graph });
      expect(out).toMatch(graph === "dot" ? /^digraph policy \{\n[\s\S]*\}\n$/ : /^flowchart LR\n/);
      expect(err).toContain("no errors");
      expect(err).toContain(SUMMARY);
    }
    const broken = await check(BROKEN, { graph: "dot" });
    expect(broken).toMatchObject({ code: 1, out: "" });
    expect(broken.err).toContain("a.toml:1:2: error: no");
  });

  it("gives a program all of it, and takes a write for an end where it is asked to", async () => {
    const asked: boolean[] = [];
    const load: LoadConfig = async () =>
      ok({
        warnings: [],
        reach: (writes) => {
          asked.push(writes);
          return OPEN;
        },
      });
    const { out } = await check(load, { json: true, paths: true, writes: true });
    expect(asked).toEqual([true]);
    expect((JSON.parse(out) as { reach: PolicyReach }).reach).toEqual(OPEN);
  });
});
