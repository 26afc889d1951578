// `callgate completion offer KIND`: what a shell can offer at a tab, one a line with a tab and what it is. Says
// nothing where nothing can be known: a shell that completes is no place for errors.
// Invariant: a line holds only what a shell would take as one word without quotes.

import { visibleLine } from "../base/display.ts";
import { labelsText, type Question, type SessionLine } from "../client/answers.ts";
import { withCaller } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import { askBroker } from "./operate.ts";
import { type Dialogue, EXIT, type Terminal } from "./terminal.ts";

/** Who waits for a tab does not wait for long. */
const GIVE_UP_AFTER_MS = 2000;
const LINES_MAX = 500;
const WORD = /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,199}$/;

type Offer = readonly [word: string, about: string];

interface Kind {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Out of the content that the broker gave. */
  readonly offers: (value: unknown) => readonly Offer[];
}

const KINDS: Readonly<Record<string, Kind>> = {
  approvals: {
    tool: "callgate.approvals.list",
    args: {},
    offers: (value) =>
      membersAt<Question>(value, "approvals").map(({ approval, role, tool }) => [
        approval,
        `${role} asks for ${tool}`,
      ]),
  },
  roles: {
    tool: "callgate.status",
    args: {},
    offers: (value) => membersAt<{ readonly role: string }>(value, "roles").map(({ role }) => [role, "role"]),
  },
  sessions: {
    tool: "callgate.sessions.list",
    args: {},
    offers: (value) =>
      membersAt<SessionLine>(value, "sessions").map(({ session, role, taint }) => [
        session,
        `of ${role}, ${labelsText(taint)}`,
      ]),
  },
  tools: {
    tool: "callgate.tools.list",
    args: {},
    offers: (value) => membersAt<{ readonly name: string }>(value, "tools").map(({ name }) => [name, "tool"]),
  },
  grants: {
    tool: "callgate.grants.list",
    args: {},
    offers: (value) =>
      membersAt<{ readonly id: string; readonly role: string; readonly effect: string }>(value, "grants").map(
        ({ id, role, effect }) => [id, `${effect}, of ${role}`],
      ),
  },
};

export async function offer(terminal: Dialogue, [kind = ""]: Words, flags: Flags): Promise<number> {
  const wanted = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  if (wanted === undefined) return EXIT.usage;
  const quiet: Terminal = { ...SILENT, out: (text) => terminal.out(text) };
  return withCaller(
    quiet,
    flags,
    async (caller) => {
      const answer = await askBroker(caller, flags, wanted.tool, wanted.args);
      if ("fault" in answer) return answer.fault(SILENT);
      const offers = wanted.offers(answer.value).filter(([word]) => WORD.test(word));
      for (const [word, about] of offers.slice(0, LINES_MAX))
        quiet.out(`${word}\t${visibleLine(about, 80)}\n`);
      return EXIT.ok;
    },
    GIVE_UP_AFTER_MS,
  );
}

const SILENT: Terminal = { isTerminal: false, out: () => undefined, err: () => undefined };

/** A role that sees less is told less. */
function membersAt<T>(value: unknown, name: string): readonly T[] {
  const found = (value as Readonly<Record<string, unknown>>)[name];
  return Array.isArray(found) ? (found as readonly T[]) : []; // the broker's own words
}
