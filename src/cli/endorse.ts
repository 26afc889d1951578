// `callgate sessions endorse`: lowers a taint, and only the one that its operator has seen.

import { labelsText, type Tainted } from "../client/answers.ts";
import type { Caller } from "../client/caller.ts";
import { confirmed } from "./approvals.ts";
import { UsageFault, withCaller } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import { askBroker, show } from "./operate.ts";
import { endorsedText, wholeSession } from "./session_views.ts";
import { type Dialogue, EXIT } from "./terminal.ts";

export async function endorse(terminal: Dialogue, [session]: Words, flags: Flags): Promise<number> {
  const labels = { class: String(flags["class"]), untrusted: untrustedOf(flags) };
  const { role, store, item, version } = flags;
  const named = { role, session, store, item };
  if (version === undefined && !terminal.canAsk)
    throw new UsageFault("nobody can be asked here (no terminal): --version VERSION, from sessions show");
  if (version === undefined && session === undefined && store === undefined)
    throw new UsageFault(
      "say which session (or --store) is to be shown, or --version VERSION of what was seen",
    );
  return withCaller(terminal, flags, async (caller) => {
    const send = (seen: unknown) => lower(terminal, caller, flags, { ...named, ...labels, version: seen });
    if (version !== undefined) return send(version);
    const shown = store === undefined ? { role, session } : { store, item };
    const answer = await askBroker(caller, flags, "callgate.sessions.show", shown);
    if ("fault" in answer) return answer.fault(terminal);
    show(terminal, flags, answer, wholeSession, terminal.nowMs());
    const question = `\nFrom now on it counts as ${labelsText(labels)}, whatever was read before. Type yes to endorse that; anything else changes nothing: `;
    if (await confirmed(terminal, question)) return send((answer.value as Tainted).version);
    terminal.err("nothing was changed\n");
    return EXIT.failed;
  });
}

/** Said one way or the other: a word left out must not make anything trusted. */
function untrustedOf(flags: Flags): boolean {
  const { trusted, untrusted } = flags;
  if ((trusted === true) === (untrusted === true))
    throw new UsageFault("say what it counts as: either --trusted or --untrusted");
  return untrusted === true;
}

async function lower(
  terminal: Dialogue,
  caller: Caller,
  flags: Flags,
  args: Readonly<Record<string, unknown>>,
): Promise<number> {
  const answer = await askBroker(caller, flags, "callgate.sessions.endorse", {
    ...args,
    reason: flags["reason"],
  });
  if ("fault" in answer) return answer.fault(terminal);
  show(terminal, flags, answer, endorsedText, terminal.nowMs());
  return EXIT.ok;
}
