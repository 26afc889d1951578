// The official conformance suite as a process: all of its scenarios for one version of the protocol against one address,
// and what each of their checks came to.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { onCleanUp } from "../../../daemon/daemon.ts";

export const VERSIONS = ["2026-07-28", "2025-11-25", "2025-06-18"] as const;
export type Version = (typeof VERSIONS)[number];

export interface Check {
  readonly id: string;
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO";
  readonly errorMessage?: string;
}

/** By the scenario's name, in the suite's order. */
export type Outcome = ReadonlyMap<string, readonly Check[]>;

const SUITE = fileURLToPath(
  new URL("../../../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url),
);

export interface SuiteRun {
  /** Of version 24 or later. */
  readonly node: string;
  readonly url: string;
  readonly version: Version;
  /** An empty directory's name. */
  readonly into: string;
  /** This one scenario; left out, all. */
  readonly scenario?: string;
}

export async function runSuite({ node, url, version, into, scenario }: SuiteRun): Promise<Outcome> {
  const which = scenario === undefined ? ["--suite", "all"] : ["--scenario", scenario];
  const words = ["server", "--url", url, ...which, "--spec-version", version, "--output-dir", into];
  const child = spawn(node, [SUITE, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: "/usr/bin:/bin" },
  });
  onCleanUp(() => child.kill("SIGKILL"));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  const names = [...out.matchAll(/^Running client scenario '(\S+)'/gm)].map(([, name]) => name!);
  if (names.length === 0) throw new Error(`the suite ran nothing: ${out}${err}`);
  return new Map(names.map((name) => [name, checksOf(into, name)]));
}

function checksOf(into: string, name: string): readonly Check[] {
  const directory = readdirSync(into).find(
    (one) => one.replace(/-\d{4}-\d\d-\d\dT.*$/, "") === `server-${name}`,
  );
  if (directory === undefined) throw new Error(`the suite wrote nothing of ${name}`);
  return JSON.parse(readFileSync(join(into, directory, "checks.json"), "utf8")) as readonly Check[];
}
