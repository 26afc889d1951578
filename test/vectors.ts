// `npm run vectors -- KIND DIR`: runs a directory of vectors and says how many rows passed and failed, by
// file and in all, and the names of the failed. A file of the kind that the directory does not have is said to be
// missing. Exit status 1 if any row failed, else 2 where a file can't be read or holds no row, there is none at all, or
// the usage is wrong. What the rows of a kind ask for is told by that kind's own file.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseRow, type Row } from "../src/cli/wire_rows.ts";
import {
  CONNECTOR_PROFILES,
  CONNECTOR_VECTOR_FILES,
  isConnectorRowMet,
  readProfiles,
  vectorWorld,
} from "./connector/vector_rows.ts";
import { WIRE_VECTOR_FILES } from "./wire/vector_rows.ts";

type IsMet = (row: Row) => boolean | Promise<boolean>;
/** The files of a kind, and whether one row of each is met; a throw means that it is not. */
type VectorFiles = Readonly<Record<string, IsMet>>;

const KINDS: ReadonlyMap<string, (directory: string) => VectorFiles> = new Map([
  ["wire", () => WIRE_VECTOR_FILES],
  ["connector", connectorFiles],
]);

function connectorFiles(directory: string): VectorFiles {
  const { isMissing, unread } = readProfiles(directory);
  const without = "so the rows that name a configuration of it fail";
  if (isMissing) misuse(`${CONNECTOR_PROFILES}: not in this directory, ${without}`);
  for (const line of unread) misuse(`${CONNECTOR_PROFILES}: line ${line} can't be read, ${without}`);
  const world = vectorWorld(directory);
  const isMet = (row: Row) => isConnectorRowMet(row, world);
  return Object.fromEntries(CONNECTOR_VECTOR_FILES.map((file) => [file, isMet]));
}

interface Score {
  passed: number;
  readonly failed: string[];
}

async function scoreFile(text: string, isMet: IsMet): Promise<Score> {
  const score: Score = { passed: 0, failed: [] };
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const failure = await failureOf(line, isMet);
    if (failure === undefined) score.passed += 1;
    else score.failed.push(`${failure} (line ${index + 1})`);
  }
  return score;
}

/** The name of the row where it is not met. */
async function failureOf(line: string, isMet: IsMet): Promise<string | undefined> {
  let name = "no name";
  try {
    const row = parseRow(line);
    name = String(row["name"] ?? row["id"] ?? name);
    return (await isMet(row)) ? undefined : name;
  } catch {
    return name;
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function misuse(line: string): number {
  process.stderr.write(`${line}\n`);
  return 2;
}

async function main([kind = "", directory, ...rest]: readonly string[]): Promise<number> {
  const files = KINDS.get(kind);
  if (files === undefined || directory === undefined || rest.length > 0)
    return misuse(`usage: npm run vectors -- ${[...KINDS.keys()].join("|")} DIR`);
  let passed = 0;
  let failed = 0;
  let status = 0;
  for (const [file, isMet] of Object.entries(files(directory))) {
    if (!existsSync(join(directory, file))) {
      say(`${file}: not in this directory`);
      continue;
    }
    const score = await scoreDirectoryFile(directory, file, isMet);
    if (score === undefined) {
      status = misuse(`${join(directory, file)}: can't be read, or holds no row`);
      continue;
    }
    say(`${file}: ${score.passed} passed, ${score.failed.length} failed`);
    for (const name of score.failed) say(`  failed: ${name}`);
    passed += score.passed;
    failed += score.failed.length;
  }
  say(`${kind}: ${passed} passed, ${failed} failed`);
  if (failed > 0) return 1;
  return status === 0 && passed === 0 ? misuse(`${directory}: no vectors of this kind`) : status;
}

async function scoreDirectoryFile(directory: string, file: string, isMet: IsMet): Promise<Score | undefined> {
  let text: string;
  try {
    text = readFileSync(join(directory, file), "utf8");
  } catch {
    return undefined;
  }
  const score = await scoreFile(text, isMet);
  return score.passed + score.failed.length > 0 ? score : undefined;
}

process.exitCode = await main(process.argv.slice(2));
