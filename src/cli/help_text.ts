// The help of one command, written from the tree: what it does, how it is called, its options, examples that can be
// typed, and its exit statuses.

import {
  allNodes,
  type CommandNode,
  type OptionNode,
  placeText,
  type Section,
  usageOf,
} from "./command_tree.ts";
import { EXIT_STATUSES, type ExitStatus } from "./exit_status.ts";
import type { Look, Paint } from "./paint.ts";

const COLUMNS = 80;
/** Longer lines are hard to read. */
const COLUMNS_MAX = 100;
/** Names that are longer have their text below them. */
const NAME_CHARS_MAX = 28;

/** Lines with their line feeds, as wide as a terminal is. `whole`: with the exit statuses. */
export function helpText(node: CommandNode, sections: readonly Section[], look: Look, whole = true): string {
  const columns = Math.min(look.columns ?? COLUMNS, COLUMNS_MAX);
  const write = new Writer(look.paint, columns);
  const parts = [
    write.paragraph(node.about),
    `${look.paint("heading", "Usage:")} ${usageOf(node)}\n`,
    ...commandParts(node, sections, write),
    write.list(
      "Arguments",
      node.places
        .filter(({ about }) => about !== undefined)
        .map((place) => [placeText(place), place.about ?? ""]),
    ),
    write.list("Options", node.options.filter(({ ofReach }) => !ofReach).map(optionLine)),
    write.list("To reach the broker", node.options.filter(({ ofReach }) => ofReach).map(optionLine)),
    ...(node.help === undefined ? [] : node.help.split(/\n{2,}/).map((text) => write.paragraph(text))),
    write.examples(node.examples),
    write.list(
      "Exit status",
      (whole ? exitsOf(node) : []).map(({ status, means }) => [String(status), means]),
    ),
    after(node),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

/** What there is, for somebody who has typed `callgate` alone. */
export function briefHelp(tree: CommandNode, sections: readonly Section[], look: Look): string {
  return helpText({ ...tree, options: [], examples: [] }, sections, look, false);
}

/** All of `callgate`, or where a command's own differ from them. */
export function exitsOf({ path, exits }: CommandNode): readonly ExitStatus[] {
  if (path === "") return EXIT_STATUSES;
  return Object.entries(exits).map(([status, means]) => ({ status: Number(status), means }));
}

function commandParts(node: CommandNode, sections: readonly Section[], write: Writer): string[] {
  const line = ({ path, about, places }: CommandNode): readonly [string, string] => [
    [path.slice(node.path.length).trim(), ...(node.path === "" ? [] : places.map(placeText))].join(" "),
    node.path === "" ? brief(about) : about,
  ];
  const width = Math.max(0, ...node.children.map((child) => line(child)[0].length));
  if (node.path !== "") return [write.list("Commands", node.children.map(line), width)];
  const named = new Set(sections.flatMap(({ commands }) => commands));
  const rest = node.children.filter(({ path }) => !named.has(path));
  const told = sections.map(({ heading, commands }) =>
    write.list(heading, node.children.filter(({ path }) => commands.includes(path)).map(line), width),
  );
  return [...told, write.list("Others", rest.map(line), width)];
}

/** The first sentence. */
function brief(about: string): string {
  return /^.*?[.?!](?= |$)/s.exec(about)?.[0] ?? about;
}

/** What to type after this help. */
function after(node: CommandNode): string {
  if (node.children.length === 0) return "";
  const words = node.path === "" ? "COMMAND" : `${node.path} COMMAND`;
  const manual = node.path === "" ? "; man callgate has it all" : "";
  return `callgate ${words} --help says more about one of them${manual}.\n`;
}

export function optionLine(option: OptionNode): readonly [string, string] {
  return [option.flags, optionAbout(option)];
}

/** What an option is, with its choices, its default and whether it must be there. */
export function optionAbout({ about, choices, fallback, required, repeats }: OptionNode): string {
  const notes = [
    required ? "needed" : undefined,
    choices.length === 0 ? undefined : `one of ${choices.join(", ")}`,
    fallback === undefined ? undefined : `default: ${fallback}`,
    repeats && !/again/.test(about) ? "may be given again" : undefined,
  ].filter((note) => note !== undefined);
  if (notes.length === 0) return about;
  return about.endsWith(")")
    ? `${about.slice(0, -1)}; ${notes.join("; ")})`
    : `${about} (${notes.join("; ")})`;
}

/** The commands of a tree that a person calls: those that do something. */
export function callable(tree: CommandNode): readonly CommandNode[] {
  return allNodes(tree).filter(({ path, children }) => path !== "" && children.length === 0);
}

const INDENT = "  ";

class Writer {
  readonly #paint: Paint;
  readonly #columns: number;

  constructor(paint: Paint, columns: number) {
    this.#paint = paint;
    this.#columns = columns;
  }

  /** Text whose lines may be broken anew; indented lines stay as they are. */
  paragraph(text: string): string {
    if (text.trim() === "") return "";
    if (/^[ \t]/m.test(text)) return `${text}\n`;
    return `${wrapped(text.replaceAll("\n", " "), this.#columns).join("\n")}\n`;
  }

  /** Lines of a name and what it is, the texts below each other. `width`: of the names, at least. */
  list(heading: string, lines: readonly (readonly [name: string, text: string])[], width = 0): string {
    if (lines.length === 0) return "";
    const fitting = lines.map(([name]) => name.length).filter((length) => length <= NAME_CHARS_MAX);
    const names = Math.min(NAME_CHARS_MAX, Math.max(width, ...fitting));
    const shown = lines.map(([name, text]) => this.#line(name, text, names));
    return `${this.#paint("heading", `${heading}:`)}\n${shown.join("")}`;
  }

  #line(name: string, text: string, names: number): string {
    const start = `${INDENT}${" ".repeat(names)}${INDENT}`;
    const [first = "", ...rest] = wrapped(text, this.#columns - start.length);
    const below = rest.map((line) => `${start}${line}\n`).join("");
    if (name.length > names) return `${INDENT}${name}\n${start}${first}\n${below}`;
    return `${INDENT}${name.padEnd(names)}${INDENT}${first}\n${below}`;
  }

  /** Command lines, as they are; what a remark says of one is quiet, and above it where it has no room behind. */
  examples(lines: readonly string[]): string {
    if (lines.length === 0) return "";
    const shown = lines.map((line) => {
      const [command = "", remark] = line.split(REMARK);
      if (remark === undefined) return `${INDENT}${command}\n`;
      const quiet = this.#paint("quiet", remark);
      const fits = INDENT.length + line.length <= this.#columns;
      return fits ? `${INDENT}${command}${INDENT}${quiet}\n` : `${INDENT}${quiet}\n${INDENT}${command}\n`;
    });
    return `${this.#paint("heading", "Examples:")}\n${shown.join("")}`;
  }
}

/** Between a command line and what it is for. */
export const REMARK = / {2,}(?=# )/;

/** Words on lines of at most so many columns; a word that is longer has a line of its own. */
export function wrapped(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
