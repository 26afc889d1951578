import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { cleanUp, onCleanUp } from "../../daemon/daemon.ts";
import { describeOnNode24 } from "../../needs.ts";
import { runSuite, VERSIONS, type Version } from "./conformance/suite.ts";
import { BY_DESIGN, lostChecks, type Pair, rowOf, scenariosOf, tableOf } from "./conformance/table.ts";
import { CONFORMANCE_SERVER, directServer, tokenBefore, WholePath } from "./whole_path.ts";

// The official conformance suite against one server, directly and through provide, broker and serve. CONFORMANCE_WRITE=1
// writes the document's table anew.

afterAll(cleanUp);

const DOCUMENT = fileURLToPath(new URL("../../../docs/mcp_conformance.md", import.meta.url));
const TABLE = /(<!-- table -->\n)[\s\S]*?(\n<!-- \/table -->)/;

describeOnNode24("of the official conformance suite", (node) => {
  const runs = new Map<Version, Pair>();
  const isWriting = process.env["CONFORMANCE_WRITE"] !== undefined;

  beforeAll(async () => {
    const settings = { provides: ["test_", "json_schema_"], prefix: "" };
    const path = await WholePath.open(settings, [process.execPath, CONFORMANCE_SERVER]);
    const urls = { direct: await directServer(), gate: await tokenBefore(await path.serveHttp()) };
    for (const version of VERSIONS) runs.set(version, await pairOf(node, urls, version));
    if (!isWriting) await askAgain(node, urls, runs);
  }, 300_000);

  it("the server passes what it is asked, so that there is something to compare", () => {
    expect(scenariosOf(runs).length).toBeGreaterThan(30);
    for (const { direct } of runs.values()) {
      for (const name of ["tools-list", "tools-call-simple-text", "tools-call-with-progress"])
        expect(direct.get(name)?.some(({ status }) => status === "FAILURE")).toBe(false);
    }
  });

  it("every check that a server passes it passes through the gate, but for what the gate does not pass on", () => {
    const differing = scenariosOf(runs).filter((scenario) => lostChecks(runs, scenario).length > 0);
    const unexplained = differing.filter((scenario) => BY_DESIGN[scenario] === undefined);
    expect(unexplained.flatMap((scenario) => lostChecks(runs, scenario))).toEqual([]);
    expect(Object.keys(BY_DESIGN).filter((scenario) => !differing.includes(scenario))).toEqual([]);
  });

  it("the document has the table of this very run", () => {
    const text = readFileSync(DOCUMENT, "utf8");
    const renewed = text.replace(TABLE, (_, open: string, close: string) => open + tableOf(runs) + close);
    if (isWriting) writeFileSync(DOCUMENT, renewed);
    else expect(text).toBe(renewed);
  });
});

async function pairOf(
  node: string,
  { direct, gate }: Pair<string>,
  version: Version,
  scenario?: string,
): Promise<Pair> {
  const run = (url: string) =>
    runSuite({ node, url, version, into: newDirectory(), ...(scenario === undefined ? {} : { scenario }) });
  return { direct: await run(direct), gate: await run(gate) };
}

const TRIES = 3;

/** The suite waits half a second for some answers, which is too little on a busy machine: what is new is asked again. */
async function askAgain(node: string, urls: Pair<string>, runs: Map<Version, Pair>): Promise<void> {
  const known = new Set(readFileSync(DOCUMENT, "utf8").split("\n"));
  for (const scenario of scenariosOf(runs)) {
    for (let tries = 0; tries < TRIES && !known.has(rowOf(runs, scenario)); tries += 1) {
      for (const [version, { direct, gate }] of runs) {
        if (!direct.has(scenario)) continue;
        const again = await pairOf(node, urls, version, scenario);
        runs.set(version, {
          direct: new Map([...direct, ...again.direct]),
          gate: new Map([...gate, ...again.gate]),
        });
      }
    }
  }
}

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "callgate-conformance-"));
  onCleanUp(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
