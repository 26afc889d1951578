// Writing and removing files that are known again. Each begins with a line that has the digest of the rest: a file with
// another digest, or without the line, somebody has written or changed, and it stays as it is unless that is asked for.
// Invariant: a file is replaced as a whole, and one that is not ours is neither replaced nor removed without `force`.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import type { InstallFile } from "./install_plan.ts";
import { codeOf, replaceFile } from "./replace_file.ts";

/** `ours`: as an installation left it, with another text than now. `foreign`: somebody else's, or changed since. */
export type Standing = "missing" | "same" | "ours" | "foreign";

const MARK = /^# Written by callgate install; to change it, add a drop-in\. sha256:([0-9a-f]{64})\n/;

export function marked(text: string): string {
  const digest = createHash("sha256").update(text).digest("hex");
  return `# Written by callgate install; to change it, add a drop-in. sha256:${digest}\n${text}`;
}

export function standingOf(root: string, { path, text }: InstallFile): Standing {
  const found = textOf(join(root, path));
  if (found === undefined) return "missing";
  if (found === marked(text)) return "same";
  return isIntact(found) ? "ours" : "foreign";
}

function isIntact(text: string): boolean {
  const digest = MARK.exec(text)?.[1];
  const rest = text.slice(text.indexOf("\n") + 1);
  return digest !== undefined && createHash("sha256").update(rest).digest("hex") === digest;
}

/** undefined: nothing is there. What can't be read is somebody else's. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    return codeOf(error) === "ENOENT" ? undefined : "";
  }
}

/** The fault is a sentence with the path. */
export async function writeMarked(root: string, { path, text }: InstallFile): Promise<Result<void>> {
  const at = join(root, path);
  try {
    await mkdir(dirname(at), { recursive: true, mode: 0o755 });
  } catch (error) {
    return fault(`${JSON.stringify(dirname(at))} can't be made (${codeOf(error)})`);
  }
  const written = await replaceFile(at, marked(text), 0o644);
  return written.ok ? written : fault(`${JSON.stringify(at)} can't be written (${written.fault})`);
}

const PLACES: readonly (readonly [directory: string, name: RegExp])[] = [
  ["etc/systemd/system", /^callgate(?:[-@.].*)?\.(?:service|socket)$/],
  ["etc/systemd/user", /^callgate-.*\.service$/],
  ["etc/sysusers.d", /^callgate(?:-.*)?\.conf$/],
  ["etc/tmpfiles.d", /^callgate(?:-.*)?\.conf$/],
];
const DROP_INS = /^callgate(?:[-@.].*)?\.(?:service|socket)\.d$/;

/** Paths below the root of everything here that an installation wrote, and whether it is as that left it. */
export function installedFiles(root: string): readonly { readonly path: string; readonly intact: boolean }[] {
  const plain = PLACES.flatMap(([directory, name]) =>
    namesIn(join(root, directory))
      .filter((one) => name.test(one))
      .map((one) => `${directory}/${one}`),
  );
  const units = "etc/systemd/system";
  const dropIns = namesIn(join(root, units))
    .filter((one) => DROP_INS.test(one))
    .flatMap((one) => namesIn(join(root, units, one)).map((file) => `${units}/${one}/${file}`));
  return [...plain, ...dropIns].flatMap((path) => {
    const text = textOf(join(root, path)) ?? "";
    return MARK.test(text) ? [{ path, intact: isIntact(text) }] : [];
  });
}

/** Units of roles that are enabled: each is a link below the target that wants it. */
export function enabledUnits(root: string): readonly string[] {
  const wants = ["sockets.target.wants", "multi-user.target.wants"];
  return wants
    .flatMap((one) => namesIn(join(root, "etc/systemd/system", one)))
    .filter((name) => /^callgate-[a-z]+@.+\.(?:service|socket)$/.test(name));
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).sort();
  } catch {
    return [];
  }
}

/** And the directory of a drop-in, where nothing else is in it. */
export async function removeInstalled(root: string, path: string): Promise<Result<void>> {
  const at = join(root, path);
  try {
    await rm(at, { force: true });
    if (dirname(path).endsWith(".d") && dirname(path).includes("systemd/system/"))
      await rmdir(dirname(at)).catch(() => undefined);
    return ok(undefined);
  } catch (error) {
    return fault(`${JSON.stringify(at)} can't be removed (${codeOf(error)})`);
  }
}
