import { afterEach, describe, expect, it } from "vitest";
import { ECHO } from "./configs.ts";
import { cleanUp, Daemon } from "./daemon.ts";

afterEach(cleanUp);

// A daemon starts fast because it loads little. What it loads is told on its standard error: ES modules as
// they are loaded, CommonJS ones when it ends.

const HOOK = `
import { writeSync } from "node:fs";
export async function load(url, context, next) {
  writeSync(2, url + "\\n");
  return next(url, context);
}`;
const TELLING = `
import { writeSync } from "node:fs";
import { Module, register } from "node:module";
register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(HOOK)}`)});
process.on("exit", () => writeSync(2, Object.keys(Module._cache).join("\\n") + "\\n"));`;

async function loaded(config: string): Promise<string[]> {
  const node = ["--import", `data:text/javascript,${encodeURIComponent(TELLING)}`];
  const daemon = await Daemon.start(config, { node });
  expect(await daemon.stop()).toBe(0);
  return (await daemon.errors).split("\n").filter((url) => url.includes("/"));
}

const within = (urls: readonly string[], part: RegExp) => urls.filter((url) => part.test(url));

describe("a daemon", () => {
  it("without conditions loads no expression language, no regular expressions of its own, no client, no command", async () => {
    const urls = await loaded(ECHO);
    expect(within(urls, /\/src\/broker\/pipeline\.js$/)).toHaveLength(1); // the hook sees what is loaded
    expect(within(urls, /\/pino\/pino\.js$/)).not.toHaveLength(0);
    expect(within(urls, /@bufbuild|fast-check|typescript|tsx|vitest/)).toEqual([]);
    expect(within(urls, /\/src\/(client|roles|connector)\//)).toEqual([]);
    expect(within(urls, /\/src\/cli\/(?!program|command_row|package_version|paint|terminal)/)).toEqual([]);
  });

  it("with a condition loads them", async () => {
    const denied = 'role = "agent"\ntools = ["slow"]\neffect = "deny"\nwhen = \'session == "x"\'';
    const urls = await loaded(`${ECHO}\n[[grants]]\nid = "conditional"\n${denied}\n`);
    expect(within(urls, /@bufbuild\/cel\//)).not.toHaveLength(0);
  });
});
