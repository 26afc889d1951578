import { describe, expect, it } from "vitest";
import { fault, ok } from "../../src/base/faults.ts";
import { type CheckOptions, checkConfig } from "../../src/cli/check.ts";

async function check(load: CheckOptions["load"], json = false): Promise<{ code: number; written: string }> {
  let written = "";
  const write = (text: string) => {
    written += text;
  };
  const code = await checkConfig({ path: "a.toml", json, load, write });
  return { code, written };
}

const CLEAN = async () => ok({ warnings: [] });
const WARNED = async () =>
  ok({ warnings: [{ line: 3, column: 9, message: "mind this", code: "every_tool" }] });
const BROKEN = async () =>
  fault([
    { line: 1, column: 2, message: "no" },
    { line: 4, column: 1, message: "nor this" },
  ]);

describe("callgate check", () => {
  it("says where each error stands, in the form that editors jump to, and exits with 1", async () => {
    expect(await check(BROKEN)).toEqual({
      code: 1,
      written:
        "a.toml:1:2: error: no\na.toml:4:1: error: nor this\na.toml: 2 errors; this config would be refused\n",
    });
  });

  it("exits with 0 where there are only warnings", async () => {
    expect(await check(WARNED)).toEqual({
      code: 0,
      written: "a.toml:3:9: warning: mind this [every_tool]\na.toml: no errors, 1 warning\n",
    });
  });

  it("has one line where there is nothing to say", async () => {
    expect(await check(CLEAN)).toEqual({ code: 0, written: "a.toml: no errors, no warnings\n" });
  });

  it("writes one JSON object of the same where a program asks", async () => {
    const broken = await check(BROKEN, true);
    expect(broken.code).toBe(1);
    expect(broken.written.split("\n")).toHaveLength(2);
    expect(JSON.parse(broken.written)).toEqual({
      file: "a.toml",
      ok: false,
      errors: [
        { line: 1, column: 2, message: "no" },
        { line: 4, column: 1, message: "nor this" },
      ],
      warnings: [],
    });
    const warned = await check(WARNED, true);
    expect(warned.code).toBe(0);
    expect(JSON.parse(warned.written)).toMatchObject({
      ok: true,
      errors: [],
      warnings: [{ code: "every_tool", line: 3, column: 9, message: "mind this" }],
    });
  });

  it("asks for the very file that it was given", async () => {
    const asked: string[] = [];
    await check(async (path) => {
      asked.push(path);
      return ok({ warnings: [] });
    });
    expect(asked).toEqual(["a.toml"]);
  });
});
