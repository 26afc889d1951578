// All commands as a tree of plain data, made from the rows: what help, manual and shells' completion are written
// from. Knows nothing of what a command does.

import { type CommandRow, type OptionRow, reachOptions } from "./command_row.ts";

/** What stands in `<…>` (needed) or `[…]`. */
export interface Place {
  readonly name: string;
  readonly about: string | undefined;
  readonly needed: boolean;
  /** Takes all the words that are left. */
  readonly many: boolean;
}

export interface OptionNode {
  /** As it is shown: `--for <time>`. */
  readonly flags: string;
  /** `--for`. */
  readonly long: string;
  /** `-V`. */
  readonly short: string | undefined;
  /** What its value is called; undefined: it takes none. */
  readonly takes: string | undefined;
  readonly about: string;
  readonly choices: readonly string[];
  readonly fallback: string | undefined;
  readonly required: boolean;
  readonly repeats: boolean;
  /** Shared by all commands that come to a broker. */
  readonly ofReach: boolean;
}

export interface CommandNode {
  /** The words that it is called with: `approvals list`; empty for `callgate` itself. */
  readonly path: string;
  readonly about: string;
  readonly places: readonly Place[];
  readonly options: readonly OptionNode[];
  readonly examples: readonly string[];
  readonly exits: Readonly<Record<number, string>>;
  /** Paragraphs. */
  readonly help: string | undefined;
  readonly children: readonly CommandNode[];
}

/** A heading of the first help, and the first words that stand below it. */
export interface Section {
  readonly heading: string;
  readonly commands: readonly string[];
}

export interface Program {
  readonly about: string;
  /** What is said of each word that has commands below it. */
  readonly groups: Readonly<Record<string, string>>;
  /** In this order commands are told; those that no section names come last. */
  readonly sections: readonly Section[];
  readonly examples: readonly string[];
}

/** All commands, and the headings that they stand below. */
export interface Commands {
  readonly tree: CommandNode;
  readonly sections: readonly Section[];
  readonly version: string;
}

/** `callgate` itself. Rows that are hidden are left out. */
export function commandTree(rows: readonly CommandRow[], program: Program): CommandNode {
  const shown = rows.filter(({ hidden }) => hidden !== true);
  const names = [...new Set(shown.map(({ words }) => words.split(" ")[0] ?? ""))];
  const order = program.sections.flatMap(({ commands }) => commands);
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  const children = names
    .toSorted((a, b) => place(a) - place(b))
    .map((name) =>
      nodeOf(
        name,
        shown.filter(({ words }) => words.split(" ")[0] === name),
        program,
      ),
    );
  const options = [{ flags: "-V, --version", about: "which version this is" }, HELP_OPTION].map((row) =>
    optionNode(row, false),
  );
  const { about, examples } = program;
  return { path: "", about, places: [], options, examples, exits: {}, help: undefined, children };
}

/** The command of these words, if there is one. */
export function nodeAt(tree: CommandNode, words: readonly string[]): CommandNode | undefined {
  const path = words.join(" ");
  const next = (node: CommandNode): CommandNode | undefined =>
    node.path === path ? node : node.children.map(next).find((found) => found !== undefined);
  return next(tree);
}

/** The tree from above, each command before those below it. */
export function allNodes(tree: CommandNode): readonly CommandNode[] {
  return [tree, ...tree.children.flatMap(allNodes)];
}

/** `approvals show` of `approvals show <approval>`. */
export function pathOf({ words }: Pick<CommandRow, "words">): string {
  return words
    .split(" ")
    .filter((word) => !/^[<[]/.test(word))
    .join(" ");
}

/** How it is called: `callgate approvals show [options] <approval>`. */
export function usageOf({ path, places, children, options }: CommandNode): string {
  const needed = options.filter(({ required }) => required).map(({ flags }) => flags);
  const takes = children.length > 0 ? ["<command>"] : ["[options]", ...needed, ...places.map(placeText)];
  return ["callgate", ...(path === "" ? [] : [path]), ...takes].join(" ");
}

export function placeText({ name, needed, many }: Place): string {
  const text = `${name}${many ? "..." : ""}`;
  return needed ? `<${text}>` : `[${text}]`;
}

const HELP_OPTION: OptionRow = { flags: "-h, --help", about: "this help" };

function nodeOf(name: string, rows: readonly CommandRow[], program: Program): CommandNode {
  const own = rows.find((row) => pathOf(row) === name);
  const below = rows.filter((row) => row !== own).map(leaf);
  if (own !== undefined) return { ...leaf(own), children: below };
  return {
    path: name,
    about: program.groups[name] ?? "",
    places: [],
    options: [optionNode(HELP_OPTION, false)],
    examples: below.flatMap(({ examples }) => examples.slice(0, 1)),
    exits: {},
    help: undefined,
    children: below,
  };
}

function leaf(row: CommandRow): CommandNode {
  return {
    path: pathOf(row),
    about: row.about,
    places: [...row.words.matchAll(/([<[])([^>\]]+?)(\.\.\.)?[>\]]/g)].map(
      ([, bracket, name = "", dots]) => ({
        name,
        about: row.takes?.[name],
        needed: bracket === "<",
        many: dots !== undefined,
      }),
    ),
    options: [
      ...(row.options ?? []).map((option) => optionNode(option, false)),
      ...reachOptions(row).map((option) => optionNode(option, true)),
      optionNode(HELP_OPTION, false),
    ],
    examples: row.examples ?? [],
    exits: row.exits ?? {},
    help: row.help?.trim(),
    children: [],
  };
}

function optionNode(row: OptionRow, ofReach: boolean): OptionNode {
  const [names = "", ...value] = row.flags.split(/ (?=[<[])/);
  const words = names.split(", ");
  return {
    flags: row.flags,
    long: words.find((word) => word.startsWith("--")) ?? "",
    short: words.find((word) => /^-[^-]/.test(word)),
    takes: value.length === 0 ? undefined : value.join(" ").slice(1, -1),
    about: row.about,
    choices: row.choices ?? [],
    fallback: row.fallback?.shown,
    required: row.required === true,
    repeats: row.repeats === true,
    ofReach,
  };
}
