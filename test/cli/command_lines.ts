// Reads the command lines that help and documents show as the program would, by the tree of commands: is there such a
// command, has it those options, and is every value and word there that it needs?

import { type CommandNode, nodeAt, type OptionNode } from "../../src/cli/command_tree.ts";

/** Words of a shell's line up to its first `|`, `>`, `<`, `&`, `;` or remark; quotes are taken away. */
export function shellWords(line: string): readonly string[] {
  const words: string[] = [];
  for (const [token] of line.matchAll(/(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\|<>&;])+|[|<>&;]+/g)) {
    if (/^[|<>&;]/.test(token) || token.startsWith("#")) break;
    words.push(token.replace(/'([^']*)'|"([^"]*)"|\\(.)/g, (_, a = "", b = "", c = "") => `${a}${b}${c}`));
  }
  return words;
}

/** All calls of callgate in a line: behind pipes, too. */
export function callsIn(line: string): readonly (readonly string[])[] {
  return line
    .split(/\s(?:\||&&)\s/)
    .map((part) => part.trim().replace(/ {2,}#.*$/, ""))
    .filter((part) => part.startsWith("callgate "))
    .map(shellWords);
}

/** What is wrong with it; undefined: nothing. */
export function faultOf(tree: CommandNode, words: readonly string[]): string | undefined {
  const rest = [...words.slice(1)];
  let node = tree;
  for (let next = below(node, rest[0]); next !== undefined; next = below(node, rest[0])) {
    node = next;
    rest.shift();
  }
  if (node.children.length > 0) return `no such command: ${words.join(" ")}`;
  return optionFault(node, rest);
}

function below(node: CommandNode, word: string | undefined): CommandNode | undefined {
  if (word === undefined || node.children.length === 0) return undefined;
  return nodeAt(node, [...node.path.split(" ").filter((part) => part !== ""), word]);
}

function optionFault(node: CommandNode, rest: string[]): string | undefined {
  const given = new Set<string>();
  let placed = 0;
  while (rest.length > 0) {
    const word = rest.shift() ?? "";
    if (word === "--") {
      placed += rest.length; // another program's command line
      break;
    }
    if (!word.startsWith("-") || word === "-") {
      placed += 1;
      continue;
    }
    const [name = "", inline] = word.split(/=(.*)/s);
    const option = node.options.find(({ long, short }) => name === long || name === short);
    if (option === undefined) return `${node.path} has no ${name}`;
    given.add(option.long);
    const value = option.takes === undefined ? undefined : (inline ?? rest.shift());
    const fault = valueFault(option, value);
    if (fault !== undefined) return `${node.path}: ${fault}`;
  }
  const missing = node.options.find(({ required, long }) => required && !given.has(long));
  if (missing !== undefined) return `${node.path} lacks ${missing.long}`;
  return placeFault(node, placed);
}

function valueFault({ long, takes, choices }: OptionNode, value: string | undefined): string | undefined {
  if (takes === undefined) return undefined;
  if (value === undefined) return `${long} has no value`;
  if (choices.length > 0 && !choices.includes(value)) return `${long} is none of ${choices.join(", ")}`;
  return undefined;
}

function placeFault({ path, places }: CommandNode, placed: number): string | undefined {
  const needed = places.filter((place) => place.needed).length;
  const most = places.some(({ many }) => many) ? Number.POSITIVE_INFINITY : places.length;
  return placed < needed || placed > most
    ? `${path} takes ${needed} to ${most} words, not ${placed}`
    : undefined;
}
