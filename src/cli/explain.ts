// `callgate grants explain`: what would be decided about a call; with --call what was decided about one, from the
// record, and beside it what would be decided now; without a tool what the policy comes to. Runs nothing.

import { visibleLine } from "../base/display.ts";
import type { Explanation, WholeCall, Why } from "../client/answers.ts";
import type { Caller } from "../client/caller.ts";
import { argumentsText, callId, UsageFault, withCaller } from "./call.ts";
import { whyText } from "./call_views.ts";
import { type Flags, textOf, type Words } from "./command_row.ts";
import { explanation } from "./explanation.ts";
import { askBroker, type BrokerAnswer, operate, show, type View } from "./operate.ts";
import type { Look } from "./paint.ts";
import { reachText } from "./reach_views.ts";
import { type Dialogue, EXIT } from "./terminal.ts";

const TOOL = "callgate.grants.explain";

export async function explain(terminal: Dialogue, [tool, args]: Words, flags: Flags): Promise<number> {
  const given = textOf(flags, "call");
  const assumed = {
    taint_class: textOf(flags, "taintClass"),
    taint_untrusted: flags["untrusted"] === true ? true : undefined,
  };
  const assumes = Object.values(assumed).some((value) => value !== undefined);
  if (given !== undefined) {
    if (tool !== undefined)
      throw new UsageFault("give a tool and its arguments, or --call with a call that was asked, not both");
    if (assumes) throw new UsageFault("--taint-class and --untrusted go with a tool, not with --call");
    return explainCall(terminal, flags, callId(given).toString());
  }
  if (tool === undefined && assumes)
    throw new UsageFault("--taint-class and --untrusted go with a tool: without one all taints are told");
  const text = args === undefined ? undefined : argumentsText(args);
  const asked = { tool, arguments: text, role: flags["role"], session: textOf(flags, "of"), ...assumed };
  return operate(terminal, flags, TOOL, asked, { view: tool === undefined ? reachText : explanation });
}

/** What was decided then, and what would be now; undefined: its arguments are not kept, or not to be seen. */
interface RecordedAndNow {
  readonly recorded: Why;
  readonly now: Explanation | undefined;
}

async function explainCall(terminal: Dialogue, flags: Flags, call: string): Promise<number> {
  const named = { call, session: textOf(flags, "of") ?? flags.session, role: flags["role"] };
  return withCaller(terminal, flags, async (caller) => {
    const why = await askBroker(caller, flags, "callgate.calls.why", named);
    if ("fault" in why) return why.fault(terminal);
    const now = await decidedNow(caller, flags, named);
    const text = `{"recorded":${why.text},"now":${now?.text ?? "null"}}`;
    const value: RecordedAndNow = { recorded: why.value as Why, now: now?.value as Explanation | undefined };
    show(terminal, flags, { text, value }, recordedAndNow, terminal.nowMs());
    return EXIT.ok;
  });
}

/** undefined: it is not kept what was asked. */
async function decidedNow(
  caller: Caller,
  flags: Flags,
  named: Readonly<Record<string, unknown>>,
): Promise<Exclude<BrokerAnswer, { fault: unknown }> | undefined> {
  const kept = await askBroker(caller, flags, "callgate.calls.show", named);
  if ("fault" in kept) return undefined;
  const { tool, arguments: args } = kept.value as WholeCall;
  const { role, session } = named;
  const answer = await askBroker(caller, flags, TOOL, { role, session, tool, arguments: args });
  return "fault" in answer ? undefined : answer;
}

const recordedAndNow: View = (value, nowMs, look) => {
  const { recorded, now } = value as RecordedAndNow;
  return `${whyText(recorded, nowMs, look)}\n${nowText(recorded, now, nowMs, look)}`;
};

function nowText(recorded: Why, now: Explanation | undefined, nowMs: number, look: Look): string {
  if (now === undefined) return `${askAnew(recorded)}\n`;
  const same = now.verdict === recorded.verdict && now.row === recorded.row && now.grant === recorded.grant;
  const heading = same ? "now the same would be decided" : "now something else would be decided";
  return `${heading}:\n${explanation(now, nowMs, look)}`;
}

/** What was denied is not kept with its arguments. */
function askAnew({ tool, role, session }: Why): string {
  const named = [
    tool ?? "TOOL",
    "ARGUMENTS",
    ...(role === undefined ? [] : ["--role", role]),
    "--of",
    session,
  ];
  const words = visibleLine(named.join(" "), 400);
  return `what would be decided now depends on its arguments, which are not kept: callgate grants explain ${words}`;
}
