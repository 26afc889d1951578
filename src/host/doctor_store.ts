// `callgate doctor`: the store, opened for reading only, as its owner (what the engine makes beside the file must stay theirs),
// beside a daemon that lives or without one, and whether its audit holds. In a process of its own: the engine maps the file, and
// a damaged one may end the process that reads it.

import { spawn } from "node:child_process";
import { lstatSync } from "node:fs";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";
import { visibleLine } from "../base/display.ts";
import { fault, ok, type Result } from "../base/faults.ts";
import { type Examined, errorFinding, type Finding, noteFinding, unseenFinding } from "../base/findings.ts";
import { shellWord } from "../base/shell_word.ts";
import { aloneIn } from "./directory_gate.ts";
import { AS_ROOT, unread } from "./doctor_config.ts";
import type { Place } from "./doctor_place.ts";
import { asUser, canBe } from "./doctor_users.ts";
import { loadLibc } from "./libc.ts";
import { errnoCode } from "./trusted_paths.ts";

/** As lmdb_environment.ts has it; that file is loaded only where the library may be tried. */
const STORE_FILE = "state.mdb";

/** What a look into the store came to. */
export interface StoreSeen {
  readonly examined: Examined;
  /** The newest time that it has seen, in ms; undefined: it was not read. */
  readonly newestMs: number | undefined;
}

export async function examineStore(place: Place): Promise<StoreSeen> {
  const check = "store";
  if (!place.config.ok) return { examined: unread(check, place), newestMs: undefined };
  const directory = place.config.value.config.stateDir;
  const seen = (summary: string, findings: readonly Finding[], newestMs?: number): StoreSeen => ({
    examined: { check, summary, findings },
    newestMs,
  });
  const owner = ownerOf(join(directory, STORE_FILE));
  if (owner === "none")
    return seen("", [
      noteFinding({
        code: "store_none",
        what: `there is no store in ${visibleLine(directory)} yet`,
        why: "the daemon makes it when it starts first",
        mend: [],
      }),
    ]);
  const unseen = (because: string, mend: readonly string[]) =>
    unseenFinding({
      code: "store_unseen",
      what: `the store in ${visibleLine(directory)} ${visibleLine(because)}`,
      why: "whether its audit holds is not known",
      mend,
    });
  if (typeof owner !== "number" || !canBe(owner))
    return seen("", [unseen("is not this user's to look into", AS_ROOT)]);
  const reachable = await aloneIn(directory, await loadLibc(), () => undefined);
  if (!reachable.ok)
    return seen("", [unseen(`can't be opened: ${reachable.fault.replace(/\.$/, "")}`, REACH)]);
  const read = await readApart(directory, owner);
  if (!read.ok) return seen("", [damaged(read.fault)]);
  const { schema, records, lastSeq, broken, newestMs, bytes } = read.value;
  const size = `${Math.ceil(bytes / 1024)} KiB`;
  const summary = `version ${schema}, ${size}; its audit holds: ${records} records up to ${lastSeq}`;
  return seen(summary, broken === undefined ? [] : [brokenAudit(broken, directory)], newestMs);
}

function ownerOf(path: string): number | "none" | "unseen" {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.uid ?? "none";
  } catch {
    return "unseen";
  }
}

/** It takes the library that the daemon needs too, or a process that is stopped. */
const REACH = [
  "# mend the library, where another finding names it; else let the stopped process go on, or end it",
];

/** As JSON, from one process to the other. */
interface StoreRead {
  readonly schema: number;
  readonly records: number;
  /** Decimal. */
  readonly lastSeq: string;
  /** What is wrong with the audit, as a sentence. */
  readonly broken?: string;
  readonly newestMs: number;
  readonly bytes: number;
}

/** The command that this process runs; undefined where something else runs us (a test). */
function ownProgram(): string | undefined {
  const script = process.argv[1];
  return script !== undefined && /^callgate(?:\.[jt]s)?$/.test(basename(script)) ? script : undefined;
}

async function readApart(directory: string, owner: number): Promise<Result<StoreRead>> {
  const program = ownProgram();
  if (program === undefined) return asUser(owner, () => readStore(directory));
  const words = [...process.execArgv, program, "doctor-store", directory, "--owner", String(owner)];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise<string | null>((resolve) => {
    child.once("close", (_, signal) => resolve(signal));
    child.once("error", (error) => resolve(errnoCode(error)));
  });
  const [out, because] = await Promise.all([text(child.stdout), ended]);
  if (because !== null)
    return because.startsWith("SIG")
      ? fault(`the store in ${JSON.stringify(directory)} is damaged: ${because} ended who read it.`)
      : fault(`the store in ${JSON.stringify(directory)} was not read: no process for it (${because}).`);
  try {
    return JSON.parse(out) as Result<StoreRead>; // our own words
  } catch {
    return fault(`the store in ${JSON.stringify(directory)} could not be read to its end.`);
  }
}

/** What `readApart` reads, as one line of JSON. */
export async function storeJson(directory: string, owner: number): Promise<string> {
  return `${JSON.stringify(await asUser(owner, () => readStore(directory)))}\n`;
}

/** Loaded here: without the engine's library the rest of the doctor still works. */
async function readStore(directory: string): Promise<Result<StoreRead>> {
  try {
    const [{ verifyEngine, withStored }, { readSchema, readTimeFloor }] = await Promise.all([
      import("./stored_state.ts"),
      import("../store/stored_meta.ts"),
    ]);
    return await withStored(directory, async (engine) => {
      const verified = await verifyEngine(engine, undefined);
      if (!verified.ok) return verified;
      const { records, lastSeq, finding } = verified.value;
      const audit = {
        records,
        lastSeq: lastSeq.toString(),
        ...(finding === undefined ? {} : { broken: finding.sentence }),
      };
      return ok({
        ...audit,
        schema: readSchema(engine) ?? 0,
        newestMs: readTimeFloor(engine),
        bytes: engine.usedBytes(),
      });
    });
  } catch (error) {
    return fault(`the store's library does not load (${errnoCode(error)}).`);
  }
}

function damaged(sentence: string): Finding {
  return errorFinding({
    code: "store_unusable",
    what: visibleLine(sentence.replace(/\.$/, ""), 500),
    why: "the daemon does not start with it",
    mend: [
      "# stop the daemon, then put the last backup back:",
      "callgate restore --config FILE --from BACKUP --replace",
    ],
  });
}

function brokenAudit(sentence: string, directory: string): Finding {
  return errorFinding({
    code: "store_audit_broken",
    what: visibleLine(`the audit does not hold: ${sentence.replace(/\.$/, "")}`, 500),
    why: "what was decided and done can't be proven any more: a disk fault, or somebody wrote into the store",
    mend: [
      `callgate audit verify --state ${shellWord(directory)}`,
      "# keep a copy of the directory as evidence, and compare with checkpoints in logs kept elsewhere",
    ],
  });
}
