// What the broker answered, as an MCP client hears it. A tool's own result is given as its server gave it; a denial, a
// failure and a wait are results with `isError`, whose text says to the model what has happened and what would help.
// Invariant: of a server's result nothing goes on but content; a request to the client hidden in it is not passed on.

import { visible, visibleLine } from "../../../base/display.ts";
import type { DenyReason } from "../../../base/faults.ts";
import { localTime } from "../../../base/time_text.ts";
import type { Why } from "../../../client/answers.ts";
import type { CallgateError } from "../../../client/error.ts";
import type { ToolResult } from "../../../wire/message.ts";
import type { Question } from "./open_call.ts";

/** As the protocol has it; members beside these are not known. */
export interface CallToolResult {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** Of the kinds that the protocol has, or will have. */
export interface ContentBlock {
  readonly type: string;
  readonly [member: string]: unknown;
}

const WORDS_CHARS_MAX = 2000;
/** What the protocol itself puts into `_meta` (of subscriptions, of tasks, of who the server is) is not a tool's to say. */
const PROTOCOLS_OWN = "io.modelcontextprotocol/";

/** `isMcp`: the tool's definition says that an adapter serves it. */
export function toolResult({ content, truncated }: ToolResult, isMcp: boolean): CallToolResult {
  if (!isMcp) return textResult(truncated ? `${content}\n${CUT}` : content);
  const result = callToolResultOf(content);
  if (result !== undefined) return result;
  const sentence = truncated
    ? "The result is longer than the policy lets through: ask for less at once, or tell the user, since the owner of this machine can allow more. Its beginning, as JSON:"
    : "The result is not in the form of an MCP result. As it came:";
  return { content: [textBlock(sentence), textBlock(content)], isError: true };
}

const CUT = "[The result is longer than the policy lets through: the rest was cut off.]";

/** The members that a result has, out of its JSON text; undefined where it is none. */
function callToolResultOf(text: string): CallToolResult | undefined {
  const value = parsed(text);
  if (!isMembers(value)) return undefined;
  const { content = [], structuredContent, isError, _meta } = value;
  if (!Array.isArray(content) || !content.every(isBlock)) return undefined;
  return {
    content,
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(typeof isError === "boolean" ? { isError } : {}),
    ...(isMembers(_meta) ? ownMeta(_meta) : {}),
  };
}

function ownMeta(meta: Readonly<Record<string, unknown>>): Pick<CallToolResult, "_meta"> {
  const own = Object.entries(meta).filter(([name]) => !name.startsWith(PROTOCOLS_OWN));
  return own.length === 0 ? {} : { _meta: Object.fromEntries(own) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isMembers(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isBlock(value: unknown): value is ContentBlock {
  return isMembers(value) && typeof value["type"] === "string";
}

function textBlock(text: string): ContentBlock {
  return { type: "text", text };
}

function textResult(text: string): CallToolResult {
  return { content: [textBlock(text)] };
}

function errorResult(...sentences: readonly (string | undefined)[]): CallToolResult {
  const text = sentences.filter((sentence) => sentence !== undefined).join(" ");
  return { content: [textBlock(text)], isError: true };
}

const DENIALS: Readonly<Record<DenyReason, readonly [what: string, helps: string]>> = {
  no_grant: [
    "No grant of this role covers this call.",
    "Asking again will not help. The owner of this machine could grant it.",
  ],
  grant_expired: [
    "The grant for this call has expired.",
    "Asking again will not help. The owner of this machine could renew it.",
  ],
  taint_too_high: [
    "This session has seen data that is more confidential, or less trusted, than the grant for this call admits.",
    "Asking again in this session will not help. A call that sends or changes less may still be allowed; otherwise a person has to look at it.",
  ],
  denied_by_grant: [
    "A rule forbids this call.",
    "Asking again will not help. Do without it, or with other arguments.",
  ],
  approval_refused: [
    "A person looked at this call and refused it.",
    "Do not ask for the same again: tell the user what you wanted to do and why.",
  ],
  approval_expired: [
    "A person was asked about this call, and nobody answered in time.",
    "That is no refusal: if it is still needed, ask again when somebody is there.",
  ],
};

/** Of a question that nobody answered the decision list has nothing to add. */
export function isExplained(reason: DenyReason): boolean {
  return reason !== "approval_expired";
}

/** Refusals of a call that no person has seen, by their row in the decision list. */
const UNSEEN_REFUSALS: Readonly<Record<string, string>> = {
  refused_before:
    "A person has refused the same call before, so nobody was asked about this one; that goes for a while.",
  questions_paused:
    "A person has refused so many calls of late that nobody is asked about any more for a while, this one included.",
};

/** `why`: what the broker says of the decision, where this role may hear it. */
export function deniedResult(tool: string, reason: DenyReason, why: Why | undefined): CallToolResult {
  const [known, helps] = DENIALS[reason];
  const byPerson = reason === "approval_refused";
  const what = (byPerson ? UNSEEN_REFUSALS[why?.row ?? ""] : undefined) ?? known;
  if (byPerson) return errorResult(denied(tool, reason), what, helps);
  const grant = why?.grant ? `It was decided by the grant \`${visibleLine(why.grant)}\`.` : undefined;
  const words = why?.reason ? `Its owner says: "${visibleLine(why.reason, WORDS_CHARS_MAX)}".` : undefined;
  return errorResult(denied(tool, reason), what, grant, words, helps);
}

function denied(tool: string, reason: DenyReason): string {
  return `callgate denied \`${tool}\` (${reason}). Nothing ran.`;
}

/** Of the broker's codes those after which asking again may help. */
const HELPS: Readonly<Record<string, string>> = {
  capacity: "Ask again when fewer calls are running.",
  no_provider: "Whatever serves this tool is not connected now: ask again later, or tell the user.",
  unavailable: "Ask again in a moment.",
  provider_lost: "Look at what it has done before you ask again.",
  timeout: "Look at what it has done before you ask again.",
  outcome_unknown: "Look at what it has done before you ask again; a person may have to settle it.",
  cancelled: "To have it run after all, ask again.",
};

/** `message`: a code, `: `, and words that may be a provider's. */
export function failedResult(tool: string, message: string): CallToolResult {
  const code = /^[a-z_]+(?=:)/.exec(message)?.[0];
  const words = visible(message.slice(0, WORDS_CHARS_MAX));
  return errorResult(`\`${tool}\` failed: ${words}`, code === undefined ? undefined : HELPS[code]);
}

/** There is no answer of the broker's. */
export function noAnswerResult(tool: string, error: CallgateError): CallToolResult {
  const what = `\`${tool}\` has no answer: ${visibleLine(error.message, WORDS_CHARS_MAX)}.`;
  const helps = error.mayHaveRun
    ? "To ask for this very call again, call the tool with exactly the same arguments: it does not run twice."
    : "Nothing ran.";
  return errorResult(what, helps);
}

const SAME =
  "call the tool again with exactly the same arguments: that goes on waiting for this call, and asks nobody twice.";

export function waitingWords({ approval, expiresAtMs }: Question): string {
  return `waits for a person's approval (${visibleLine(approval)}, until ${localTime(expiresAtMs)})`;
}

/** A person has not answered, and the client will not wait much longer. */
export function stillAskedResult(tool: string, question: Question): CallToolResult {
  return errorResult(
    `\`${tool}\` ${waitingWords(question)}.`,
    "That is neither a failure nor a refusal; as long as nobody approves it, nothing runs.",
    `To hear the answer, ${SAME}`,
  );
}

export function unreachableResult(tool: string): CallToolResult {
  return errorResult(
    `\`${tool}\` has no answer yet: callgate's broker can't be reached now, and is tried again and again.`,
    `To hear the answer, ${SAME}`,
  );
}

/** Nothing is asked later than its client is told of it. */
export function notAskedResult(tool: string): CallToolResult {
  return errorResult(
    `\`${tool}\` was not asked for: callgate's broker can't be reached now. Nothing ran.`,
    "Ask again later, or tell the user.",
  );
}

export function tooManyResult(tool: string): CallToolResult {
  return errorResult(
    `\`${tool}\` was not asked for: too many calls of this client are open. Nothing ran.`,
    "Wait for some of them.",
  );
}
