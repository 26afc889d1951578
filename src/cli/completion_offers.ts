// What can be typed behind each command: the commands below it, its options, and what its values are.

import type { CommandNode, OptionNode } from "./command_tree.ts";

/** One command, as a script has it. */
export interface Offered {
  /** `approvals list`; empty: `callgate` itself. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly about: string }[];
  readonly options: readonly { readonly name: string; readonly about: string }[];
  /** Of options that take a value: what can stand there. */
  readonly valued: readonly { readonly name: string; readonly value: string }[];
  /** What can stand in the place of its words, in order. */
  readonly places: readonly string[];
}

/** Of every command, itself and what can be typed behind it. */
export function offered(node: CommandNode): Offered {
  const { path, children, options, places } = node;
  const below = path === "" ? 0 : path.length + 1;
  return {
    path,
    commands: children.map((child) => ({ name: child.path.slice(below), about: firstLine(child.about) })),
    options: options.flatMap((option) =>
      namesOf(option).map((name) => ({ name, about: firstLine(option.about) })),
    ),
    valued: options.flatMap((option) =>
      option.takes === undefined
        ? []
        : namesOf(option).map((name) => ({ name, value: wantedBy(option, path) })),
    ),
    places: places.map(({ name }) => kindOf(name, path)),
  };
}

function namesOf({ long, short }: OptionNode): readonly string[] {
  return short === undefined ? [long] : [short, long];
}

/** Words with commas between, or `@` and the kind of what stands there. */
function wantedBy({ choices, takes = "" }: OptionNode, path: string): string {
  return choices.length > 0 ? choices.join(",") : kindOf(takes, path);
}

/** By what `<…>` is called; `@text` is what nobody can guess. */
function kindOf(name: string, path: string): string {
  if (name === "id" && /^sessions (?!open)/.test(`${path} `)) return "@sessions";
  return KINDS[name] ?? "@text";
}

const KINDS: Readonly<Record<string, string>> = {
  file: "@file",
  path: "@file",
  directory: "@directory",
  dir: "@directory",
  "[options:]dir": "@directory",
  approval: "@approvals",
  role: "@roles",
  session: "@sessions",
  sessions: "@sessions",
  tool: "@tools",
  tools: "@tools",
  grant: "@grants",
};

const ABOUT_CHARS_MAX = 70;

function firstLine(about: string): string {
  const sentence = /^.*?[^.](?=[.;:](?: |$)|$)/s.exec(about)?.[0] ?? about;
  return sentence.length > ABOUT_CHARS_MAX ? `${sentence.slice(0, ABOUT_CHARS_MAX - 1)}…` : sentence;
}
