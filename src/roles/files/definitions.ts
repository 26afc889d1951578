// The five tools as they are announced: for the model, what each does and where; for the broker,
// the JSON Schema (2020-12, closed) of its arguments. The configured directories are named, so that a
// change of them is a changed definition, which an operator has to accept again.

import { PATTERN_CHARS_MAX, WRITE_MODES } from "./arguments.ts";
import { plainJson } from "./file_path.ts";
import type { FilesLimits } from "./limits.ts";
import type { FilesRoot } from "./roots.ts";
import { WINDOW_BYTES_MIN } from "./text_window.ts";

export const FILES_TOOLS = ["list_dir", "read_file", "write_file", "stat", "search_files"] as const;
export type FilesToolName = (typeof FILES_TOOLS)[number];

export interface FilesToolDefinition {
  readonly name: FilesToolName;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly annotations: Readonly<Record<string, unknown>>;
}

export function filesToolDefinitions(
  roots: readonly FilesRoot[],
  limits: FilesLimits,
): readonly FilesToolDefinition[] {
  const where = `Directories: ${roots.map(describeRoot).join(", ")}.`;
  return FILES_TOOLS.map((name) => {
    const { about, properties, required, writes } = tools(limits)[name];
    return {
      name,
      description: `${about} ${PATH_RULE} ${where}`,
      schema: { type: "object", additionalProperties: false, required, properties },
      annotations: writes ? { readOnlyHint: false, destructiveHint: true } : { readOnlyHint: true },
    };
  });
}

const PATH_RULE =
  "Paths are absolute and plain (no `..`, no `//`, no slash at the end); symbolic links are not followed.";

function describeRoot(root: FilesRoot): string {
  return `${plainJson(root.path)}${root.writable ? " (writable)" : ""}`;
}

interface Tool {
  readonly about: string;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required: readonly string[];
  readonly writes: boolean;
}

/** The grammar of a path is file_path.ts, whose refusal says more than a schema can. */
const PATH = { type: "string" };
const PATTERN = { type: "string", minLength: 1, maxLength: PATTERN_CHARS_MAX };

function tools(limits: FilesLimits): Readonly<Record<FilesToolName, Tool>> {
  return {
    list_dir: {
      about: "Lists a directory as JSON: each entry's name, type and, for files, size in bytes.",
      properties: { path: PATH },
      required: ["path"],
      writes: false,
    },
    read_file: readFile(limits.contentBytesMax),
    write_file: {
      about:
        "Writes a whole text file (UTF-8) in one step. Mode `create` (the default) fails where something exists; `overwrite` replaces a file. The directory must exist.",
      properties: { path: PATH, content: { type: "string" }, mode: { enum: [...WRITE_MODES] } },
      required: ["path", "content"],
      writes: true,
    },
    stat: {
      about: "Describes one path as JSON: type, size in bytes, time of the last change, permissions.",
      properties: { path: PATH },
      required: ["path"],
      writes: false,
    },
    search_files: {
      about:
        "Searches a directory and all beneath it, as JSON. `name` is part of a file's name, or with `*` or `?` a pattern of the whole name; `content` is a literal text within files. With both, contents of files with such names. Case counts.",
      properties: { path: PATH, name: PATTERN, content: PATTERN },
      required: ["path"],
      writes: false,
    },
  };
}

function readFile(limitMax: number): Tool {
  const offset = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER - limitMax };
  const limit = { type: "integer", minimum: WINDOW_BYTES_MIN, maximum: limitMax };
  return {
    about: `Reads a text file (UTF-8), at most ${limitMax} bytes of it. Where the result is truncated, ask again with \`offset\` raised by \`limit\` (${limitMax} if none was given); no character is lost or doubled between.`,
    properties: { path: PATH, offset, limit },
    required: ["path"],
    writes: false,
  };
}
