// `callgate doctor`: the state directory: whose it is, how open, and what stands in the places of its files; and the clock, held
// against the newest time that the store has seen.

import { existsSync, lstatSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { visibleLine } from "../base/display.ts";
import {
  type Examined,
  errorFinding,
  type Finding,
  noteFinding,
  unseenFinding,
  warningFinding,
} from "../base/findings.ts";
import { shellWord } from "../base/shell_word.ts";
import { localTime, span } from "../base/time_text.ts";
import { AS_ROOT, pathFinding, unread } from "./doctor_config.ts";
import type { Place } from "./doctor_place.ts";
import { barrier, WANTED } from "./doctor_users.ts";
import { checkDirectory } from "./trusted_paths.ts";

const OPEN_TO_OTHERS = 0o077;
/** As state_dir.ts has them. */
const OUR_FILES = ["lock", "state.mdb", "state.mdb-lock", "reserve"];

const STATE_WHY =
  "who can write there can make used calls run again, and who can read there reads every call";

export function examineState(place: Place): Examined {
  const check = "state";
  if (!place.config.ok) return unread(check, place);
  const directory = place.config.value.config.stateDir;
  const { living, user } = place;
  const by = typeof living === "object" ? `in use by pid ${living.pid}` : "no daemon holds it";
  const trusted = checkDirectory(directory, user.uid);
  const findings = trusted.ok ? insideOf(directory, place) : [];
  if (!trusted.ok && trusted.fault.code === "missing") findings.push(notMade(directory, place));
  else if (!trusted.ok) findings.push(pathFinding("state", trusted.fault, place, STATE_WHY));
  return { check, summary: `${visibleLine(directory)}, ${by}`, findings };
}

/** Where the daemon can make it, as it does at its first start, that is worth a note. */
function notMade(directory: string, { user, accounts }: Place): Finding {
  const owner = shellWord(accounts.userName(user.uid) ?? String(user.uid));
  const told = {
    code: "state_missing",
    what: `the state directory ${visibleLine(directory)} does not exist`,
    why: "a daemon that was never started has none; one that was has lost what it must not forget: taints, used call ids, the audit",
  };
  const canMake =
    existsSync(dirname(directory)) && barrier(dirname(directory), user, WANTED.make) === undefined;
  if (canMake) return noteFinding({ ...told, mend: ["# if it was lost: callgate restore"] });
  const make = `install -d -o ${owner} -m 0700 ${shellWord(directory)}`;
  return warningFinding({ ...told, mend: [make, "# or, if it was lost: callgate restore"] });
}

function insideOf(directory: string, { user, accounts }: Place): Finding[] {
  const stats = statSync(directory);
  const owner = accounts.userName(user.uid) ?? String(user.uid);
  const found: Finding[] = [];
  if (stats.uid !== user.uid)
    found.push(
      errorFinding({
        code: "state_owner",
        what: `${visibleLine(directory)} belongs to ${accounts.userText(stats.uid)}, and the daemon's user is ${user.text}`,
        why: "the daemon does not start",
        mend: [`chown -R ${shellWord(owner)} ${shellWord(directory)}`],
      }),
    );
  if ((stats.mode & OPEN_TO_OTHERS) !== 0)
    found.push(
      errorFinding({
        code: "state_open",
        what: `${visibleLine(directory)} can be entered by others than its owner (mode ${(stats.mode & 0o7777).toString(8).padStart(4, "0")})`,
        why: STATE_WHY,
        mend: [`chmod 0700 ${shellWord(directory)}`],
      }),
    );
  return [...found, ...OUR_FILES.flatMap((name) => plantedFile(join(directory, name), stats.uid))];
}

function plantedFile(path: string, uid: number): readonly Finding[] {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined || (stats.isFile() && stats.uid === uid && stats.nlink === 1)) return [];
  } catch {
    return [
      unseenFinding({
        code: "state_unseen",
        what: `${visibleLine(path)} can't be looked at by this user`,
        why: STATE_WHY,
        mend: AS_ROOT,
      }),
    ];
  }
  return [
    errorFinding({
      code: "state_file",
      what: `${visibleLine(path)} is not a plain file of the directory's owner`,
      why: "somebody else may have put it there: the daemon does not start",
      mend: [`mv ${shellWord(path)} ${shellWord(`${path}.aside`)}`],
    }),
  ];
}

/** Before it callgate was not written, so no clock that shows it is right. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);
const BEHIND_MS = 2000;
/** The kernel's own bound: from there on it takes its clock for unsynchronised. */
const CLOCK_ERROR_US_MAX = 16_000_000;

/** `errorUs`: how wrong the kernel takes its clock to be at most; undefined: it can't be asked. */
export function examineClock(
  nowMs: number,
  newestMs: number | undefined,
  errorUs: number | undefined,
): Examined {
  const found = [behind(nowMs, newestMs), unset(nowMs), unsynchronised(errorUs)];
  const held = newestMs === undefined ? "" : ", not behind the store";
  return {
    check: "clock",
    summary: `${localTime(nowMs)}${held}`,
    findings: found.filter((one) => one !== undefined),
  };
}

const MEND_CLOCK = ["timedatectl set-ntp true", "timedatectl"];

function behind(nowMs: number, newestMs: number | undefined): Finding | undefined {
  if (newestMs === undefined || newestMs - nowMs < BEHIND_MS) return undefined;
  return errorFinding({
    code: "clock_behind_store",
    what: `the clock shows ${localTime(nowMs)}, ${span(newestMs - nowMs)} before the newest time in the store (${localTime(newestMs)})`,
    why: "it was set back, or was ahead once: until it is past that time the broker goes on from there, so what expires does so early",
    mend: MEND_CLOCK,
  });
}

function unset(nowMs: number): Finding | undefined {
  if (nowMs >= EARLIEST_MS) return undefined;
  return errorFinding({
    code: "clock_unset",
    what: `the clock shows ${localTime(nowMs)}: it was never set`,
    why: "expiries, call ids and the audit all bear that time",
    mend: MEND_CLOCK,
  });
}

function unsynchronised(errorUs: number | undefined): Finding | undefined {
  if (errorUs === undefined || errorUs < CLOCK_ERROR_US_MAX) return undefined;
  return warningFinding({
    code: "clock_unsynchronised",
    what: "nothing keeps the clock right: the kernel says that it is not synchronised (NTP)",
    why: "when it is put right by a jump, grants and questions expire early, or the audit's times are wrong",
    mend: MEND_CLOCK,
  });
}
