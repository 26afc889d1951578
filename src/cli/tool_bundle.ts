// `callgate tools diff|accept PREFIX.*`: all definitions below a prefix that wait for an operator, shown one after another,
// and put into service together. Invariant: what is accepted is what was shown: the digest that accepts is made of the
// digests of all of them, each is accepted by its own, and where anything differs nothing is accepted.

import { createHash } from "node:crypto";
import { visibleLine } from "../base/display.ts";
import { counted } from "../base/json_text.ts";
import type { Caller } from "../client/caller.ts";
import { type Reach, withCaller } from "./call.ts";
import { askBroker, type BrokerAnswer, fields } from "./operate.ts";
import { EXIT, jsonLine, type Terminal } from "./terminal.ts";
import { fitted } from "./text_table.ts";

/** `fs.*`: the prefix; undefined: it is the name of one tool. */
export function prefixOf(name: string): string | undefined {
  return name.endsWith(".*") ? name.slice(0, -1) : undefined;
}

export async function diffBundle(terminal: Terminal, reach: Reach, prefix: string): Promise<number> {
  return withCaller(terminal, reach, async (caller) => {
    const bundle = await readBundle(caller, reach, prefix);
    if ("fault" in bundle) return bundle.fault(terminal);
    const { waiting } = bundle;
    if (reach.json === true) {
      for (const { text } of waiting) terminal.out(jsonLine(text));
      terminal.out(jsonLine(JSON.stringify({ prefix, tools: waiting.length, digest: digestOf(waiting) })));
    } else {
      for (const { value } of waiting) terminal.out(`${fitted(fields(value), terminal.columns)}\n`);
      terminal.out(ending(prefix, waiting));
    }
    return EXIT.ok;
  });
}

function ending(prefix: string, waiting: readonly Waiting[]): string {
  if (waiting.length === 0) return `nothing below ${visibleLine(prefix)} waits to be looked at\n`;
  const these = `${counted(waiting.length, "definition")} to look at. All of these, as they are above, into service:`;
  return `${these}\n  callgate tools accept '${visibleLine(prefix)}*' ${digestOf(waiting)}\n`;
}

export async function acceptBundle(
  terminal: Terminal,
  reach: Reach,
  prefix: string,
  digest: string,
): Promise<number> {
  return withCaller(terminal, reach, async (caller) => {
    const bundle = await readBundle(caller, reach, prefix);
    if ("fault" in bundle) return bundle.fault(terminal);
    const { waiting } = bundle;
    if (waiting.length === 0 || digestOf(waiting) !== digest) {
      const shown = visibleLine(prefix);
      terminal.err(
        `callgate: nothing was accepted: what waits below ${shown} is not what that digest was of\n  callgate tools diff '${shown}*' shows what waits now.\n`,
      );
      return EXIT.failed;
    }
    return acceptAll(terminal, caller, reach, waiting);
  });
}

async function acceptAll(
  terminal: Terminal,
  caller: Caller,
  reach: Reach,
  waiting: readonly Waiting[],
): Promise<number> {
  let status: number = EXIT.ok;
  let accepted = 0;
  for (const { tool, digest } of waiting) {
    const answer = await askBroker(caller, reach, "callgate.tools.accept", { tool, digest });
    if ("fault" in answer) {
      terminal.err(`${visibleLine(tool)}: `);
      status = answer.fault(terminal);
    } else {
      accepted += 1;
      if (reach.json === true) terminal.out(jsonLine(answer.text));
    }
  }
  if (reach.json !== true && accepted > 0)
    terminal.out(`accepted: ${counted(accepted, "definition")}, in service as they were shown\n`);
  return status;
}

interface Waiting {
  readonly tool: string;
  /** Of the definition that would be accepted. */
  readonly digest: string;
  /** The answer of `callgate.tools.diff`. */
  readonly text: string;
  readonly value: unknown;
}

type BundleAnswer =
  | { readonly waiting: readonly Waiting[] }
  | Extract<BrokerAnswer, { readonly fault: unknown }>;

async function readBundle(caller: Caller, reach: Reach, prefix: string): Promise<BundleAnswer> {
  const listed = await askBroker(caller, reach, "callgate.tools.list", { prefix });
  if ("fault" in listed) return listed;
  const { tools } = listed.value as {
    readonly tools: readonly { name: string; definition?: string | null }[];
  };
  const waiting: Waiting[] = [];
  for (const { name, definition } of tools) {
    if (definition !== "waiting" && definition !== "unseen") continue;
    const answer = await askBroker(caller, reach, "callgate.tools.diff", { tool: name });
    if ("fault" in answer) return answer;
    const { announced, pinned } = answer.value as Record<string, { readonly digest: string } | null>;
    const digest = (announced ?? pinned)?.digest;
    if (digest !== undefined) waiting.push({ tool: name, digest, ...answer });
  }
  return { waiting };
}

/** Hexadecimal SHA-256 of a line for each, in the order of their names. */
function digestOf(waiting: readonly Waiting[]): string {
  const lines = waiting.map(({ tool, digest }) => `${tool} ${digest}\n`).toSorted();
  return createHash("sha256").update(lines.join("")).digest("hex");
}
