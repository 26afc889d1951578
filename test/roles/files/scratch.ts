// A real directory tree for one test, the tools over it, and what this process holds open in it.

import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Json } from "../../../src/base/json.ts";
import type { FilesToolName } from "../../../src/roles/files/definitions.ts";
import { FILES_LIMITS, type FilesLimits } from "../../../src/roles/files/limits.ts";
import type { FilesRoot } from "../../../src/roles/files/roots.ts";
import { createFilesTools, type FilesAnswer, type FilesTools } from "../../../src/roles/files/tools.ts";

export interface Scratch {
  /** Holds `root` and `outside`. */
  readonly base: string;
  readonly root: string;
  readonly outside: string;
}

export const SECRET = "SECRET-THAT-LIES-OUTSIDE";

/** Removed when the test is over. `outside` holds `secret.txt`. */
export function scratch(): Scratch {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "callgate-files-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const tree = { base, root: join(base, "root"), outside: join(base, "outside") };
  mkdirSync(tree.root);
  mkdirSync(tree.outside);
  writeFileSync(join(tree.outside, "secret.txt"), SECRET);
  return tree;
}

export function rootOf(path: string, with_: Partial<FilesRoot> = {}): FilesRoot {
  return { path, class: "internal", untrusted: true, writable: true, ...with_ };
}

export async function toolsOver(
  roots: readonly FilesRoot[],
  limits: FilesLimits = FILES_LIMITS,
): Promise<FilesTools> {
  const tools = await createFilesTools(roots, limits);
  if (!tools.ok) throw new Error(tools.fault);
  onTestFinished(() => tools.value.close());
  return tools.value;
}

export function ask(
  tools: FilesTools,
  name: FilesToolName,
  args: Readonly<Record<string, Json>>,
  signal: AbortSignal = new AbortController().signal,
): Promise<FilesAnswer> {
  return tools[name](new Map(Object.entries(args)), signal);
}

export function contentOf(answer: FilesAnswer): string {
  if ("failed" in answer) throw new Error(`failed: ${answer.failed}`);
  return answer.content;
}

export function failureOf(answer: FilesAnswer): string {
  if ("failed" in answer) return answer.failed;
  throw new Error("it did not fail");
}

/** What the descriptors of this process lead to beneath a directory. */
export function heldOpen(base: string): readonly string[] {
  return readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${descriptor}`);
      return target.startsWith(base) ? [target] : [];
    } catch {
      return []; // the listing's own descriptor has gone
    }
  });
}
