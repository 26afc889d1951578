// What a provider answers: its protocol held, its labels raised, its size kept, and then delivered.
// A provider is not trusted: not with ids, labels, order, size, or the words of its failures.

import type { CallFault } from "../base/faults.ts";
import { CLEAN, classAbove, join, type Labels } from "../base/labels.ts";
import type { RolePolicy } from "../policy/policy.ts";
import { encodeMessage } from "../wire/envelope.ts";
import type { JsonString } from "../wire/json_string.ts";
import type { ToolResponse, ToolResult, WireError } from "../wire/message.ts";
import { callFault, failedMessage, MAY_HAVE_RUN, resultMessage } from "./answer.ts";
import type { Core } from "./core.ts";
import { deliverPart, deliverQuestion, endCall, failCall } from "./deliver.ts";
import { armTimeout, storeLabels } from "./dispatch.ts";
import type { LiveCall, Peer } from "./live.ts";

/** Bytes of randomness in an approval id that is passed on under a name of ours. */
const APPROVAL_ID_BYTES = 16;
const PROVIDER_TEXT_CHARS_MAX = 4096;
/** Messages before the final one. */
const MESSAGES_MAX = 16_384;
/** What a message costs in memory beside its bytes. */
const KEPT_BYTES = 256;

export function receiveResponse(
  core: Core,
  peer: Peer,
  id: bigint,
  final: boolean,
  response: ToolResponse<JsonString>,
): void {
  const live = peer.serving.get(id);
  if (live === undefined) {
    stray(core, peer);
    return;
  }
  const broken = breaks(core, live, peer, final, response);
  if (broken !== undefined) {
    failCall(core, live, callFault("provider", `${broken}. ${MAY_HAVE_RUN}`));
    return;
  }
  goOn(core, live);
  switch (response.status) {
    case "result":
      receiveResult(core, live, final, response);
      return;
    case "failed":
      endCall(core, live, providerFailure(core, live, response.message));
      return;
    case "denied":
      endCall(core, live, {
        message: encodeMessage({ kind: "tool_response", body: response }),
        labels: CLEAN,
        status: "denied",
      });
      return;
    case "pending_approval":
      receiveQuestion(core, live, response.expires);
  }
}

/** An `error` that names a call of ours is the provider's failure; any other says that it can't go on with us. */
export function receiveError(core: Core, peer: Peer, id: bigint, error: WireError): void {
  const live = peer.serving.get(id);
  if (live !== undefined) {
    endCall(core, live, providerFailure(core, live, error.detail));
    return;
  }
  if (id !== 0n) return stray(core, peer); // of a call that has ended meanwhile
  core.log("warn", "peer.error", {
    role: peer.connection.role,
    connection: peer.connection.number,
    code: error.code,
  });
  peer.connection.close();
}

/** An answer to nothing that is open: late, doubled or made up. Said at growing distances, since a peer could flood the log. */
function stray(core: Core, peer: Peer): void {
  peer.strayAnswers += 1;
  const count = peer.strayAnswers;
  if ((count & (count - 1)) !== 0) return;
  core.log("warn", "answer.ignored", {
    role: peer.connection.role,
    connection: peer.connection.number,
    count,
  });
}

/** The rule of a call's answers that this one breaks. */
function breaks(
  core: Core,
  live: LiveCall,
  peer: Peer,
  final: boolean,
  response: ToolResponse<JsonString>,
): string | undefined {
  const { status } = response;
  if (!final && status !== "result" && status !== "pending_approval")
    return `The provider sent a ${status} that is not final`;
  if (final && status === "pending_approval")
    return "The provider sent a pending_approval as its final answer";
  if (!final && live.messages >= MESSAGES_MAX) return "The provider sent too many messages";
  if (live.parts > 0 && status !== "result" && status !== "failed")
    return `The provider sent a ${status} after a part of a result`;
  const role = core.runtime.policy.roles.get(peer.connection.role);
  if ((status === "denied" || status === "pending_approval") && role?.broker !== true) {
    return `The provider sent a ${status}, which only a broker may`;
  }
  if (status === "result" && (role === undefined || classAbove(response.class, role.classMax))) {
    return "The provider labelled a result above what its role may give";
  }
  return undefined;
}

function receiveResult(core: Core, live: LiveCall, final: boolean, result: ToolResult<JsonString>): void {
  const labels = raised(core, live, result);
  const room = live.tool.resultBytesMax - live.contentBytes;
  const bytes = result.content.textBytes;
  if (bytes > room) {
    endOversize(core, live, result, labels, room);
    return;
  }
  live.contentBytes += bytes;
  const message = resultMessage(result.content, labels, result.truncated);
  if (final) {
    endCall(core, live, { message, labels, status: "result" });
    return;
  }
  if (!keep(core, live, message)) return;
  live.parts += 1;
  deliverPart(core, live, message, labels);
}

/** While a human is asked the tool's timeout stands still, within a cap. */
function receiveQuestion(core: Core, live: LiveCall, expires: bigint): void {
  waitForHuman(core, live, expires);
  const message = renamedApproval(core, expires);
  if (keep(core, live, message)) deliverQuestion(live, message);
}

/** Stops the timeout for as long as the question is open, all questions of the call together at most so long. */
const HUMAN_MS_MAX = 86_400_000;

function waitForHuman(core: Core, live: LiveCall, expires: bigint): void {
  const nowMs = core.clock.nowMs();
  live.humanUntilMs ??= nowMs + HUMAN_MS_MAX;
  const untilMs = Math.min(live.humanUntilMs, Number(expires));
  armTimeout(core, live, Math.max(0, untilMs - nowMs) + live.tool.timeoutMs);
  live.waitsForHuman = true;
}

/** The human has decided, or whoever asked goes on without: the timeout runs again. */
function goOn(core: Core, live: LiveCall): void {
  if (!live.waitsForHuman) return;
  live.waitsForHuman = false;
  armTimeout(core, live, live.tool.timeoutMs);
}

/** Who joins gets every message from the first, so all are kept until the end, and charged to the role that asked. */
function keep(core: Core, live: LiveCall, message: Buffer): boolean {
  live.messages += 1;
  const bytes = message.length + KEPT_BYTES;
  if (live.quota.hold("queued_bytes_in", bytes)) {
    live.keptBytes += bytes;
    return true;
  }
  const sentence = `The role's limit queued_bytes_in has no room for the answer's parts. ${MAY_HAVE_RUN}`;
  failCall(core, live, callFault("capacity", sentence));
  return false;
}

/**
 * The provider's labels, never below the tool's floor (as it was and as it is), nor below what was put
 * into its store, nor below the parts before: a reader of the last part knows the labels of all.
 */
function raised(core: Core, live: LiveCall, result: Labels): Labels {
  const floor = core.runtime.policy.tools.get(live.tool.name)?.floor ?? live.tool.floor;
  const given = join({ class: result.class, untrusted: result.untrusted }, floor);
  const before = join(live.tool.floor, live.labels);
  return join(join(given, before), storeLabels(core, live));
}

function endOversize(
  core: Core,
  live: LiveCall,
  result: ToolResult<JsonString>,
  labels: Labels,
  room: number,
): void {
  if (live.tool.onOversize === "fail") {
    const limit = live.tool.resultBytesMax;
    failCall(
      core,
      live,
      callFault("too_large", `The result is larger than the tool's ${limit} bytes. The provider has run.`),
    );
    return;
  }
  const content = cutToBytes(result.content.text, room);
  endCall(core, live, { message: resultMessage(content, labels, true), labels, status: "result" });
}

/** The longest beginning of `text` that takes at most `bytesMax` bytes of UTF-8 and ends between characters. */
function cutToBytes(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= bytesMax) return text;
  let end = Math.max(0, bytesMax);
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end);
}

/** A provider's own words may carry anything: untrusted, and of the highest class that it may give. */
function providerFailure(core: Core, live: LiveCall, text: string) {
  const role: RolePolicy | undefined = core.runtime.policy.roles.get(live.tool.role);
  const fault: CallFault = callFault("provider", `The provider ran or tried to, and says: ${bounded(text)}`);
  const labels: Labels = { class: role?.classMax ?? "restricted", untrusted: true };
  return { message: failedMessage(fault), labels, status: "failed" as const, fault };
}

function bounded(text: string): string {
  if (text.length <= PROVIDER_TEXT_CHARS_MAX) return text;
  return `${text.slice(0, PROVIDER_TEXT_CHARS_MAX).toWellFormed()}…`;
}

function renamedApproval(core: Core, expires: bigint): Buffer {
  const approval = `passed-${core.random(APPROVAL_ID_BYTES)}`;
  return encodeMessage({ kind: "tool_response", body: { status: "pending_approval", approval, expires } });
}
