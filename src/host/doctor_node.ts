// `callgate doctor`: the program's own ground: which Node runs it, and whether the libraries that bring machine code
// (koffi, lmdb) load on this machine and do what they are for. They are tried, not looked up.

import { mkdtempSync, readFileSync, readlinkSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { visibleLine } from "../base/display.ts";
import { type Examined, errorFinding, type Finding, noteFinding, warningFinding } from "../base/findings.ts";
import { shellWord } from "../base/shell_word.ts";

/** The least that the package's `engines` allow. */
export const NODE_MIN = { major: 20, minor: 19 } as const;

/** By major version, the day after which nothing more is mended in it (the schedule of Node's release team). */
const ENDS_OF_LIFE: ReadonlyMap<number, string> = new Map([
  [20, "2026-04-30"],
  [21, "2024-06-01"],
  [22, "2027-04-30"],
  [23, "2025-06-01"],
  [24, "2028-04-30"],
  [25, "2026-06-01"],
  [26, "2029-04-30"],
  [27, "2030-04-30"],
]);

const SOON_MS = 90 * 86_400_000;

/** `version`: as `process.version`. `daemonPid`: a daemon that lives, whose Node may be another. */
export function examineNode(version: string, nowMs: number, daemonPid: number | undefined): Examined {
  const ofLiving = daemonPid === undefined ? [] : [ofDaemon(daemonPid), ofProgram(daemonPid)];
  const found = [ofVersion(version, nowMs), ...ofLiving];
  return {
    check: "node",
    summary: `Node ${version}`,
    findings: found.filter((one) => one !== undefined),
  };
}

const MEND_NODE =
  "# install Node 24 or later with what this machine's Node came from, then: systemctl restart callgate";

function ofVersion(version: string, nowMs: number): Finding | undefined {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  if (major < NODE_MIN.major || (major === NODE_MIN.major && minor < NODE_MIN.minor))
    return errorFinding({
      code: "node_too_old",
      what: `Node ${version} is older than ${NODE_MIN.major}.${NODE_MIN.minor}`,
      why: "callgate is neither made nor tested for it",
      mend: [MEND_NODE],
    });
  const end = ENDS_OF_LIFE.get(major);
  if (end === undefined || nowMs + SOON_MS < Date.parse(end)) return undefined;
  const isOver = nowMs >= Date.parse(end);
  return warningFinding({
    code: isOver ? "node_end_of_life" : "node_ends_soon",
    what: `Node ${version}: its release line ${isOver ? "reached" : "reaches"} its end of life on ${end}`,
    why: "holes that are found after that day stay open in it",
    mend: [MEND_NODE],
  });
}

/** undefined also where this user may not see what that process runs. */
function ofDaemon(pid: number): Finding | undefined {
  const program = programOf(pid);
  if (program === undefined || program === process.execPath) return undefined;
  if (program.endsWith(" (deleted)"))
    return warningFinding({
      code: "node_replaced",
      what: `the daemon (pid ${pid}) still runs a Node that was replaced since it started`,
      why: "what the newer one mends is not mended in it",
      mend: ["systemctl restart callgate"],
    });
  return noteFinding({
    code: "node_other",
    what: `the daemon (pid ${pid}) runs ${visibleLine(program)}; what is said here is of ${process.execPath}`,
    why: "its version may be another",
    mend: [`${shellWord(program)} --version`],
  });
}

/** Whether the daemon's own program is another by now: it was upgraded, and not started again. */
function ofProgram(pid: number): Finding | undefined {
  const script = scriptOf(pid);
  const startedMs = startOf(pid);
  if (script === undefined || startedMs === undefined) return undefined;
  const changed = changeOf(script);
  if (changed === undefined || changed <= startedMs + START_ERROR_MS) return undefined;
  return warningFinding({
    code: "program_replaced",
    what: `${visibleLine(script)} was replaced since the daemon (pid ${pid}) started`,
    why: "an older callgate runs than the one that is installed",
    mend: ["systemctl restart callgate"],
  });
}

/** In ms since 1970; undefined also of what this user can't see. */
function changeOf(path: string): number | undefined {
  try {
    return statSync(path).ctimeMs;
  } catch {
    return undefined;
  }
}

/** The kernel tells a start in hundredths of a second after a boot that it tells in seconds. */
const START_ERROR_MS = 2000;
const TICKS_PER_SECOND = 100;

/** The script that a Node runs: its first word that is a whole path of one. */
function scriptOf(pid: number): string | undefined {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return words.slice(1).find((word) => word.startsWith("/") && word.endsWith(".js"));
  } catch {
    return undefined;
  }
}

/** In ms since 1970; proc_pid_stat(5), whose second field may have spaces in it. */
function startOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const ticks = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]);
    const boot = Number(/^btime (\d+)$/m.exec(readFileSync("/proc/stat", "utf8"))?.[1]);
    const ms = (boot + ticks / TICKS_PER_SECOND) * 1000;
    return Number.isFinite(ms) ? ms : undefined;
  } catch {
    return undefined;
  }
}

function programOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return undefined;
  }
}

/** What is tried; each resolves to why it does not work. */
export interface LibraryTrials {
  readonly koffi: () => Promise<string | undefined>;
  readonly lmdb: () => Promise<string | undefined>;
}

export async function examineLibraries(trials: LibraryTrials = TRIALS): Promise<Examined> {
  const [koffi, lmdb] = [await trials.koffi(), await trials.lmdb()];
  const findings = [
    koffi === undefined ? undefined : unloadable("koffi", koffi, KOFFI_WHY),
    lmdb === undefined ? undefined : unloadable("lmdb", lmdb, LMDB_WHY),
  ];
  return {
    check: "libraries",
    summary: `koffi and lmdb load and work (${platform()})`,
    findings: findings.filter((one) => one !== undefined),
  };
}

const KOFFI_WHY =
  "without it the kernel can't be asked who connects, nor a state directory be locked: the daemon does not start";
const LMDB_WHY = "without it there is no store: the daemon does not start";

function unloadable(library: string, because: string, why: string): Finding {
  return errorFinding({
    code: `library_${library}`,
    what: `${library} does not work on this machine (${platform()}): ${because}`,
    why,
    mend: [
      "# its machine code comes as an optional dependency of that platform: install the package here, not on another machine, and without --omit=optional",
      "npm install --global callgate",
    ],
  });
}

/** `linux x64, glibc 2.36`: which of a library's binaries is wanted. */
function platform(): string {
  const { header } = process.report.getReport() as {
    readonly header?: { readonly glibcVersionRuntime?: string };
  };
  const glibc = header?.glibcVersionRuntime;
  return `${process.platform} ${process.arch}, ${glibc === undefined ? "no glibc" : `glibc ${glibc}`}`;
}

const TRIALS: LibraryTrials = { koffi: tryKoffi, lmdb: tryLmdb };

async function tryKoffi(): Promise<string | undefined> {
  const { loadLibc } = await import("./libc.ts");
  return (await loadLibc()) === undefined ? "it did not load" : undefined;
}

/** A store of its own in the temporary directory, written and read; where nothing can be made there, that it loads. */
async function tryLmdb(): Promise<string | undefined> {
  const loaded = await import("../store/lmdb_environment.ts").catch(() => undefined);
  if (loaded === undefined) return "it did not load";
  const directory = trialDirectory();
  if (directory === undefined) return undefined;
  try {
    const environment = loaded.openEnvironment(join(directory, "trial.mdb"));
    const key = Buffer.from("key");
    await environment.put(key, Buffer.from("value"));
    const back = environment.getBinary(key)?.toString();
    await environment.close();
    return back === "value" ? undefined : "what was written did not come back";
  } catch (error) {
    return `it can't write (${loaded.lmdbCode(error)})`;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** undefined: of a root that is read-only, say. */
function trialDirectory(): string | undefined {
  try {
    return mkdtempSync(join(tmpdir(), "callgate-doctor-"));
  } catch {
    return undefined;
  }
}
