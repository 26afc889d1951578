// `callgate connector call`: one turn of a model, from a shell. What the model said goes to standard output, with an
// end of line behind it, everything about it to standard error.

import { visible, visibleLine } from "../base/display.ts";
import { pause } from "../client/effects.ts";

import { ConnectorClient } from "../connector/client.ts";
import { ConnectorError } from "../connector/client_error.ts";
import type {
  Completed,
  Event,
  EventPayload,
  ProviderRequest,
  Refusal,
  ToolCall,
  TransportResult,
} from "../connector/contract.ts";
import { TRANSPORT_RESULT } from "../connector/documents.ts";
import { view } from "../connector/json_view.ts";
import { addressText } from "../connector/loopback.ts";
import { takeTurn, type Unanswered } from "../roles/model/take_turn.ts";
import { invocationAt } from "../roles/model/turn_request.ts";
import { errorText, failureText, refusalText } from "../roles/model/turn_words.ts";
import { quotedForShell, UsageFault } from "./call.ts";
import type { Flags, Words } from "./command_row.ts";
import { lengthOf } from "./connector_options.ts";
import { type ConnectorReach, connectorReach } from "./connector_reach.ts";
import { requestOf } from "./connector_request.ts";
import { plain } from "./paint.ts";
import { type Dialogue, EXIT, jsonLine, type Terminal } from "./terminal.ts";

export async function connectorCall(terminal: Dialogue, [prompt]: Words, flags: Flags): Promise<number> {
  const request = requestOf(prompt, flags);
  const reach = connectorReach(flags);
  const client = clientOf(reach, lengthOf(flags, "timeout"));
  const asJson = flags["json"] === true;
  if (!asJson) terminal.err(`[request ${visibleLine(request.request_id)}]\n`);
  const stop = new AbortController();
  const restore = terminal.onInterrupt(() => stop.abort());
  try {
    const taken = await takeTurn(
      invocationAt({ caller: reach.caller, request }),
      settingsOf(reach, flags),
      { nowMs: () => terminal.nowMs(), pause, execute: (asked, how) => client.execute(asked, how) },
      stop.signal,
    );
    if (!taken.ok) return showUnanswered(terminal, { request, reach, why: taken.fault });
    if (asJson) terminal.out(jsonLine(JSON.stringify(view(TRANSPORT_RESULT, taken.value))));
    else showResult(terminal, taken.value);
    return exitOfResult(taken.value);
  } finally {
    restore();
  }
}

/** A person asks again; nothing is waited for but a turn that runs. */
function settingsOf({ horizonMs }: ConnectorReach, flags: Flags) {
  const lookBackMs = lengthOf(flags, "lookBack");
  return { horizonMs, lookBackMs, patienceMs: 0, turnMsMax: lengthOf(flags, "timeout") };
}

/** @throws UsageFault */
function clientOf({ host, port, secret, maxFrameBytes }: ConnectorReach, timeoutMs: number): ConnectorClient {
  try {
    return new ConnectorClient({ host, port, secret, maxFrameBytes, responseTimeoutMs: timeoutMs });
  } catch (error) {
    if (error instanceof ConnectorError) throw new UsageFault(error.message);
    throw error;
  }
}

interface Lost {
  readonly request: ProviderRequest;
  readonly reach: ConnectorReach;
  readonly why: Unanswered;
}

function showUnanswered(terminal: Terminal, { request: { request_id }, reach, why }: Lost): number {
  const again = `  The same command with --request-id ${visibleLine(quotedForShell(request_id))} fetches the answer; the model runs once.\n`;
  if (why === "aborted") {
    terminal.err(`\ncallgate: the turn itself goes on.\n${again}`);
    return EXIT.interrupted;
  }
  terminal.err(`callgate: ${visibleLine(errorText(why), 2000)}\n${why.mayHaveRun ? again : ""}`);
  if (why.code === "Connection")
    terminal.err(
      `  It was looked for at ${addressText(reach.host, reach.port)}: --connect leads elsewhere.\n`,
    );
  if (why.code === "FrameSize" || why.code === "InvalidInvocation" || why.code === "RequestIdTooLong")
    return why.mayHaveRun ? EXIT.failed : EXIT.usage;
  return EXIT.connection;
}

/** The connector's policy said no; everything else that is refused has failed. */
const DENIED: ReadonlySet<Refusal> = new Set<Refusal>([
  "ModelNotAllowed",
  "OutputTokensOverBound",
  "PayloadOverBound",
]);

function exitOfResult({ disposition }: TransportResult): number {
  if ("Refused" in disposition) return DENIED.has(disposition.Refused) ? EXIT.denied : EXIT.failed;
  return "Completed" in disposition.Transported.receipt.outcome ? EXIT.ok : EXIT.failed;
}

function showResult(terminal: Terminal, { disposition }: TransportResult): void {
  const { paintErr = plain } = terminal;
  if ("Refused" in disposition) {
    terminal.err(`${paintErr("bad", "refused")}: ${refusalText(disposition.Refused)}\n`);
    return;
  }
  const { events, receipt } = disposition.Transported;
  showEvents(terminal, events);
  const { outcome } = receipt;
  if ("Completed" in outcome) terminal.err(`[${endText(outcome.Completed)}]\n`);
  else terminal.err(`${paintErr("bad", "failed")}: ${visibleLine(failureText(outcome.Failed), 2000)}\n`);
}

/** On a terminal what is no text begins on a line of its own; elsewhere the text stays as the model has it, to its end. */
function showEvents(terminal: Terminal, events: readonly Event[]): void {
  let isLineOpen = false;
  for (const { payload } of events) {
    if ("TextDelta" in payload) isLineOpen = !payload.TextDelta.text.endsWith("\n");
    else if (isLineOpen && terminal.isTerminal) {
      terminal.out("\n");
      isLineOpen = false;
    }
    showEvent(terminal, payload);
  }
  if (isLineOpen) terminal.out("\n");
}

function showEvent(terminal: Terminal, event: EventPayload): void {
  if ("TextDelta" in event) {
    const { text } = event.TextDelta;
    terminal.out(terminal.isTerminal ? visible(text) : text);
  } else if ("ToolCall" in event) terminal.err(toolCallLine(event.ToolCall));
  else terminal.err(`[reasoning: ${event.ReasoningState.opaque.length} bytes, for the next turn]\n`);
}

const ARGUMENTS_CHARS_MAX = 2000;

function toolCallLine({ call_id, name, arguments: text }: ToolCall): string {
  return `[asks for the tool ${visibleLine(name)} as ${visibleLine(call_id)}: ${visibleLine(text, ARGUMENTS_CHARS_MAX)}]\n`;
}

const ENDS: Readonly<Record<Completed["stop_reason"], string>> = {
  EndTurn: "the answer is complete",
  ToolCalls: "it waits for tool results",
  MaxOutputTokens: "cut: max_output_tokens, or the model's context, was used up",
  ContentFilter: "cut or withheld by the provider on content grounds",
};

function endText({ stop_reason, usage }: Completed): string {
  const count = (tokens: number | null) => tokens ?? "?";
  const part = (tokens: number | null, word: string) => (tokens === null ? "" : ` (${tokens} ${word})`);
  const read = `${count(usage.input_tokens)} tokens read${part(usage.cached_input_tokens, "cached")}`;
  const written = `${count(usage.output_tokens)} written${part(usage.reasoning_output_tokens, "reasoning")}`;
  return `${ENDS[stop_reason]}; ${read}, ${written}`;
}
