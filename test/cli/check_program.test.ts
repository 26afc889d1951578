// `callgate check` as it is called: a config on disk, the modes and owners around it, Graphviz behind a pipe.

import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { runProgram } from "../../src/cli/program.ts";
import type { PolicyReach } from "../../src/client/load_answers.ts";
import { ROOT } from "../docs/console.ts";
import { cleanUp, temporaryDirectory } from "../host/listen_fixture.ts";
import { describeWith } from "../needs.ts";
import { Desk } from "./desk.ts";

afterEach(cleanUp);

const CONFIG = `[daemon]
sockets = "run"
state = "state"
[roles.agent]
users = [7]
[roles.web]
users = [8]
[tools.fetch]
role = "web"
effect = "read"
[tools.post]
role = "web"
effect = "send"
untrusted = false
[tools.keep]
role = "web"
effect = "write"
untrusted = false
[[grants]]
id = "agent-all"
role = "agent"
tools = ["*"]
effect = "allow"
taint_max = "internal"
taint_untrusted = true
`;

function configFile(text = CONFIG): string {
  const path = join(temporaryDirectory(), "callgate.toml");
  writeFileSync(path, text);
  chmodSync(path, 0o644);
  return path;
}

async function check(path: string, ...flags: string[]) {
  const desk = new Desk();
  const code = await runProgram(["check", "--config", path, ...flags], desk);
  return { code, out: desk.out_, err: desk.err_ };
}

describe("callgate check, called with a file,", () => {
  it("looks at modes and owners too: what a daemon would refuse is no config without errors", async () => {
    const path = configFile();
    expect((await check(path)).code).toBe(0);
    chmodSync(path, 0o666);
    const { code, out } = await check(path);
    expect(code).toBe(1);
    expect(out).toContain("error: the daemon would not start");
    expect(out).toContain("can be written by others");
  });

  it("tells of ways, of those that end in a write where it is asked to", async () => {
    const path = configFile();
    expect((await check(path)).out).toContain("1 way leads from untrusted content to send without a person");
    const { out } = await check(path, "--paths", "--sinks", "write");
    expect(out).toContain("can then use keep (write) without a person (grant agent-all)");
  });

  it("has nothing of it in JSON unless it is asked, and then all", async () => {
    const path = configFile();
    expect(JSON.parse((await check(path, "--json")).out)).not.toHaveProperty("reach");
    const { out } = await check(path, "--json", "--reach");
    const { reach } = JSON.parse(out) as { reach: PolicyReach };
    expect(reach.paths).toMatchObject([{ role: "agent", source: "fetch", sink: "post", by: ["agent-all"] }]);
  });

  it("refuses two things for standard output at once, and a language that it does not draw in", async () => {
    const path = configFile();
    const both = await check(path, "--json", "--graph", "dot");
    expect(both).toMatchObject({ code: 2, out: "" });
    expect(both.err).toContain("--graph and --json each want standard output");
    expect((await check(path, "--graph", "svg")).code).toBe(2);
    expect((await check(path, "--sinks", "read")).code).toBe(2);
  });
});

/** An example in a directory that nobody else writes to, whatever the modes of the checkout are. */
function copyOf(name: string): string {
  const path = configFile(readFileSync(join(ROOT, name), "utf8"));
  const schema = "send_mail.schema.json";
  cpSync(join(ROOT, "examples", schema), join(path, "..", schema));
  chmodSync(join(path, "..", schema), 0o644);
  return path;
}

describeWith(["dot"], "the picture, drawn by Graphviz,", () => {
  it.each(["examples/callgate.toml", "examples/try.toml"])("of %s has its roles and grants", async (name) => {
    const { out } = await check(copyOf(name), "--graph", "dot");
    const { stdout, stderr } = spawnSync("dot", ["-Tsvg"], { input: out, encoding: "utf8" });
    expect(stderr).toBe("");
    const texts = [...stdout.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map(([, text = ""]) =>
      text.replaceAll("&#45;", "-").trim(),
    );
    expect(texts).toContain("agent");
    expect(texts).toContain("write_file");
    expect(texts.some((text) => text === "agent-reads" || text === "read-the-project")).toBe(true);
    expect(texts).toContain("(untrusted)");
  });
});
