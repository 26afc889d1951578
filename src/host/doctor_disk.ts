// `callgate doctor`: the disk below the state directory: of a kind that the store can be kept on, writable, with room left.

import { readFileSync, realpathSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { visibleLine } from "../base/display.ts";
import {
  type Examined,
  errorFinding,
  type Finding,
  unseenFinding,
  warningFinding,
} from "../base/findings.ts";
import { shellWord } from "../base/shell_word.ts";
import { AS_ROOT, unread } from "./doctor_config.ts";
import type { Place } from "./doctor_place.ts";
import { errnoCode } from "./trusted_paths.ts";

/** What is mounted where a path is. */
export interface Mount {
  readonly point: string;
  /** `ext4`, `nfs4`, `fuse.sshfs`. */
  readonly kind: string;
  readonly readOnly: boolean;
}

export interface Room {
  readonly freeBytes: number;
  readonly bytes: number;
  /** undefined: of a file system that does not count them. */
  readonly freeFiles: number | undefined;
}

/** More than the daemon needs to take calls again after a full disk, and what it keeps back. */
const FREE_BYTES_MIN = 16_777_216;
const FREE_BYTES_LOW = 268_435_456;
const FREE_FILES_MIN = 16;

export function examineDisk(place: Place): Examined {
  const { config } = place;
  const check = "disk";
  if (!config.ok) return unread(check, place);
  const { stateDir } = config.value.config;
  try {
    const path = nearest(stateDir);
    const mount = mountOf(readFileSync("/proc/self/mountinfo", "utf8"), path);
    return { check, ...judgeDisk(stateDir, mount, roomAt(path)) };
  } catch (error) {
    const what = `the disk of ${visibleLine(stateDir)} can't be looked at (${errnoCode(error)})`;
    return {
      check,
      summary: "",
      findings: [
        unseenFinding({
          code: "disk_unseen",
          what,
          why: "whether there is room is not known",
          mend: AS_ROOT,
        }),
      ],
    };
  }
}

/** Where it is not made yet: the directory that it would be made in. */
function nearest(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (errnoCode(error) !== "ENOENT" || path === "/") throw error;
    return nearest(dirname(path));
  }
}

function roomAt(path: string): Room {
  const { bavail, blocks, bsize, files, ffree } = statfsSync(path);
  return { freeBytes: bavail * bsize, bytes: blocks * bsize, freeFiles: files > 0 ? ffree : undefined };
}

/** proc_pid_mountinfo(5): `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw`. The last of the longest counts. */
export function mountOf(mountinfo: string, path: string): Mount | undefined {
  let found: Mount | undefined;
  for (const line of mountinfo.split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , , point, options = ""] = before.split(" ");
    const [kind, , superOptions = ""] = after.split(" ");
    if (point === undefined || kind === undefined) continue;
    const at = point.replace(/\\([0-7]{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const holds = path === at || path.startsWith(at === "/" ? "/" : `${at}/`);
    if (!holds || at.length < (found?.point.length ?? 0)) continue;
    const readOnly = `${options},${superOptions}`.split(",").includes("ro");
    found = { point: at, kind, readOnly };
  }
  return found;
}

/** Other machines may write there, or memory is not mapped as on a disk of our own. */
const REMOTE =
  /^(?:nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|glusterfs|lustre|gfs2?|ocfs2|beegfs|vboxsf|virtiofs|fuse\.(?:sshfs|glusterfs|ceph|s3fs|rclone|gcsfuse|vmhgfs-fuse|juicefs|davfs2?))$/;
/** Gone with the next start of the machine, or of the container. */
const PASSING: ReadonlyMap<string, string> = new Map([
  ["tmpfs", "it is memory: gone with the next start of the machine"],
  ["ramfs", "it is memory: gone with the next start of the machine"],
  ["overlay", "it is the layer of a container: gone with the container"],
  ["aufs", "it is the layer of a container: gone with the container"],
]);

export function judgeDisk(
  path: string,
  mount: Mount | undefined,
  room: Room,
): Pick<Examined, "summary" | "findings"> {
  const kind = mount?.kind ?? "unknown";
  const found = [
    kindFinding(path, mount),
    mount?.readOnly === true ? readOnly(path, mount) : spaceFinding(path, room),
    filesFinding(path, room),
  ];
  return {
    summary: `${bytesText(room.freeBytes)} free of ${bytesText(room.bytes)}, ${visibleLine(kind)}`,
    findings: found.filter((one) => one !== undefined),
  };
}

function kindFinding(path: string, mount: Mount | undefined): Finding | undefined {
  if (mount === undefined) return undefined;
  const where = `the state directory ${visibleLine(path)} is on ${visibleLine(mount.kind)} (mounted at ${visibleLine(mount.point)})`;
  if (REMOTE.test(mount.kind))
    return errorFinding({
      code: "disk_remote",
      what: where,
      why: "LMDB maps its file into memory and locks it there, which file systems of other machines do not keep: the store would be damaged",
      mend: ["# move it to a local disk, and name that as `state` in [daemon]"],
    });
  const passing = PASSING.get(mount.kind);
  if (passing === undefined) return undefined;
  return warningFinding({
    code: "disk_passing",
    what: `${where}: ${passing}`,
    why: "a broker that forgets lets taints go and used call ids run again",
    mend: ["# put `state` in [daemon] on a disk, or in a volume, that stays"],
  });
}

function readOnly(path: string, { point }: Mount): Finding {
  return errorFinding({
    code: "disk_read_only",
    what: `the state directory ${visibleLine(path)} is on a file system that is mounted read-only (${visibleLine(point)})`,
    why: "nothing runs that can't be written down: every call is `unavailable`",
    mend: [
      `mount -o remount,rw ${shellWord(point)}`,
      "# under systemd: ReadWritePaths= or StateDirectory= of callgate.service",
    ],
  });
}

function spaceFinding(path: string, { freeBytes }: Room): Finding | undefined {
  if (freeBytes >= FREE_BYTES_LOW) return undefined;
  const told = {
    what: `${bytesText(freeBytes)} are left for the state directory ${visibleLine(path)}`,
    mend: [`df -h ${shellWord(path)}  # then make room, or bound the audit: bytes_max in [audit]`],
  };
  if (freeBytes >= FREE_BYTES_MIN)
    return warningFinding({ code: "disk_low", why: "when it is full, every call is `unavailable`", ...told });
  return errorFinding({ code: "disk_full", why: "every call is, or soon will be, `unavailable`", ...told });
}

function filesFinding(path: string, { freeFiles }: Room): Finding | undefined {
  if (freeFiles === undefined || freeFiles >= FREE_FILES_MIN) return undefined;
  return errorFinding({
    code: "disk_no_files",
    what: `the file system of ${visibleLine(path)} has room for ${freeFiles} more files`,
    why: "the daemon can't make its files, nor a backup",
    mend: [`df -i ${shellWord(path)}  # then remove files that nobody needs`],
  });
}

function bytesText(bytes: number): string {
  const mib = bytes / 1_048_576;
  return mib < 1024 ? `${Math.floor(mib)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}
