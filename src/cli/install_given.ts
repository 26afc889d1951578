// What roles have been given, now or by an installation before: the programs that there are drop-ins for, and what of the
// disk the providers of files among them serve. Read from the drop-ins themselves, so what somebody changed there counts.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dropInPath, type InstallRequest } from "./install_plan.ts";
import { readPathWord } from "./systemd_words.ts";

export interface GivenProgram {
  readonly role: string;
  readonly unit: string;
  readonly roots: readonly GivenRoot[];
}

export interface GivenRoot {
  readonly path: string;
  readonly writable: boolean;
}

/** Once the files are written. */
export function givenPrograms(root: string, { roles }: InstallRequest): readonly GivenProgram[] {
  return (["files", "mcp"] as const).flatMap((kind) =>
    roles.flatMap(({ name: role }): readonly GivenProgram[] => {
      const unit = `callgate-${kind}@${role}.service`;
      const text = textOf(join(root, dropInPath(unit)));
      return text === undefined ? [] : [{ role, unit, roots: kind === "files" ? rootsIn(text) : [] }];
    }),
  );
}

const BOUND = /^Bind(ReadOnly)?Paths=(.+)$/gm;

function rootsIn(text: string): readonly GivenRoot[] {
  return [...text.matchAll(BOUND)].map(([, readOnly, written = ""]) => ({
    path: readPathWord(written),
    writable: readOnly === undefined,
  }));
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
