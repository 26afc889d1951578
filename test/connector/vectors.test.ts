import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/host/clock.ts";
import { openReplayStore } from "../../src/host/connector_replay.ts";
import { loadLibc } from "../../src/host/libc.ts";
import { CONNECTOR_VECTOR_FILES, isConnectorRowMet, readProfiles, vectorWorld } from "./vector_rows.ts";

const VECTORS = fileURLToPath(new URL("../../fixtures/connector/vectors/", import.meta.url));

type Row = Readonly<Record<string, unknown>>;

function rows(file: string): readonly Row[] {
  return readFileSync(join(VECTORS, file), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

async function unmet(
  file: string,
  world = vectorWorld(VECTORS),
  isMeant: (row: Row) => boolean = () => true,
): Promise<readonly unknown[]> {
  const names = [];
  for (const row of rows(file).filter(isMeant)) {
    if (!(await isConnectorRowMet(row, world))) names.push(row["id"]);
  }
  return names;
}

/** On disk, one directory for a sequence. */
function keptOnDisk() {
  const directories = new Map<object, string>();
  return async (sequence: object) => {
    const directory =
      directories.get(sequence) ?? join(mkdtempSync(join(tmpdir(), "callgate-vectors-")), "turns");
    directories.set(sequence, directory);
    return openReplayStore({ directory, libc: await loadLibc(), clock: systemClock(), log: () => undefined });
  };
}

describe("the golden vectors of the connector", () => {
  it.each(CONNECTOR_VECTOR_FILES)("%s: every row comes out as the references have it", async (file) => {
    expect(await unmet(file)).toEqual([]);
  });

  it("of sequences come out the same over the store on disk, opened again after every close and crash", async () => {
    const isOpenedAgain = ({ steps }: Row) =>
      (steps as readonly Row[]).filter(({ op }) => op === "open").length > 1;
    expect(await unmet("sequences.jsonl", vectorWorld(VECTORS, keptOnDisk()), isOpenedAgain)).toEqual([]);
  }, 240_000);
});

describe("the configurations that rows name", () => {
  it("are read but for a broken line, whose rows then fail; without the file there are none", () => {
    const directory = mkdtempSync(join(tmpdir(), "callgate-vectors-"));
    expect(readProfiles(directory)).toEqual({ profiles: new Map(), isMissing: true, unread: [] });
    const good = { id: "good", config: { bind: "127.0.0.1" } };
    writeFileSync(join(directory, "profiles.jsonl"), `{"id"\n\n${JSON.stringify(good)}\n`);
    const { profiles, unread } = readProfiles(directory);
    expect([...profiles]).toEqual([["good", good.config]]);
    expect(unread).toEqual([1]);
    rmSync(directory, { recursive: true });
  });
});
