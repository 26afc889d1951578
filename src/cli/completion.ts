// What a shell completes: the tree of commands as a script for bash, zsh or fish. The three read the line alike, word
// by word; they differ in how they say so. What only a broker knows is asked of `callgate completion offer`.

import { allNodes, type CommandNode } from "./command_tree.ts";
import { bashScript } from "./completion_bash.ts";
import { fishScript } from "./completion_fish.ts";
import { offered } from "./completion_offers.ts";
import { zshScript } from "./completion_zsh.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** The whole script, which needs nothing but the shell. */
export function completionScript(shell: keyof typeof SCRIPTS, tree: CommandNode): string {
  return SCRIPTS[shell](allNodes(tree).map(offered));
}
