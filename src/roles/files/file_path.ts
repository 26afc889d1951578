// The one spelling in which a path is accepted. Conditions of grants judge the raw string of an
// argument (`under(args.path, "/srv/docs")`), so a string that could name another place than it
// seems to is refused here, before the file system sees it. Nothing here touches the disk.

import { fault, ok, type Result } from "../../base/faults.ts";
import type { FileFault } from "./file_fault.ts";

/** With the NUL that the kernel wants behind it (PATH_MAX). */
const PATH_BYTES_MAX = 4096;
const NAME_BYTES_MAX = 255;

/** Controls, format and bidirectional characters, line separators, invisible ones, lone surrogates. */
const ODD = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const ODD_ALL = new RegExp(ODD.source, "gu");

/**
 * The names between the slashes; none for `/`. Refused: relative, `//`, `.`, `..`, a slash at the
 * end, NUL and every other odd character, what no Linux file system could hold.
 */
export function parsePath(path: string): Result<readonly string[], FileFault> {
  if (path === "/") return ok([]);
  if (!path.startsWith("/") || Buffer.byteLength(path) >= PATH_BYTES_MAX) return fault("bad_path");
  const names = path.slice(1).split("/");
  return names.every(isPlainName) ? ok(names) : fault("bad_path");
}

/** Whether a name can be part of an accepted path. */
export function isPlainName(name: string): boolean {
  if (name === "" || name === "." || name === "..") return false;
  return Buffer.byteLength(name) <= NAME_BYTES_MAX && !ODD.test(name);
}

/** Where `path` is `dir` or beneath it, the names that lead from one to the other. */
export function namesBeneath(dir: readonly string[], path: readonly string[]): readonly string[] | undefined {
  if (dir.length > path.length) return undefined;
  return dir.every((name, at) => name === path[at]) ? path.slice(dir.length) : undefined;
}

export function joinPath(dir: string, name: string): string {
  return dir === "/" ? `/${name}` : `${dir}/${name}`;
}

/** JSON in which every odd character is a `\u` escape, so that no name can hide or reorder anything. */
export function plainJson(value: unknown): string {
  return JSON.stringify(value).replace(ODD_ALL, escapeUnits);
}

function escapeUnits(character: string): string {
  return Array.from({ length: character.length }, (_, at) => {
    return `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`;
  }).join("");
}
