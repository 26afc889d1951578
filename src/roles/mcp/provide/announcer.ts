// Telling the broker which tools there are, in as many calls as it takes, and reading what it says of each. One
// announcement at a time; of those that are asked for meanwhile only the newest follows.

import { visibleLine } from "../../../base/display.ts";
import { fault, ok, type Result } from "../../../base/faults.ts";
import type { Caller } from "../../../client/caller.ts";
import { CallgateError } from "../../../client/error.ts";
import type { ToolEntry } from "./tool_table.ts";

export interface Announced {
  readonly verdicts: readonly ToolVerdict[];
  readonly role: RoleAnswer | undefined;
}

/** What the broker says of the role itself. */
export interface RoleAnswer {
  readonly role: string;
  /** How many it may have. */
  readonly connections: number;
}

export type ToolState = "in_service" | "waiting" | "changed" | "refused";

export interface ToolVerdict {
  readonly entry: ToolEntry;
  readonly state: ToolState;
  /** The broker's words, escaped; of a refused one. */
  readonly why: string | undefined;
}

const TOOL = "callgate.tools.announce";
const CHUNK_TOOLS_MAX = 64;
const CHUNK_CHARS_MAX = 262_144;

/** Sets `isKnown` of what the broker took. The fault is for the owner: nothing can be announced at all. */
export async function announceTools(
  caller: Pick<Caller, "call">,
  entries: readonly ToolEntry[],
): Promise<Result<Announced>> {
  const verdicts: ToolVerdict[] = [];
  let role: RoleAnswer | undefined;
  for (const chunk of chunksOf(entries)) {
    const answered = await announceChunk(caller, chunk);
    if (!answered.ok) return answered;
    verdicts.push(...answered.value.verdicts);
    role = answered.value.role ?? role;
  }
  for (const { entry, state } of verdicts) entry.isKnown = state !== "refused";
  return ok({ verdicts, role });
}

/** Without any tool there is one chunk without any: that this provider can be told of a cancelled call, at least. */
function chunksOf(entries: readonly ToolEntry[]): readonly (readonly ToolEntry[])[] {
  const chunks: ToolEntry[][] = [[]];
  let chars = 0;
  for (const entry of entries) {
    const last = chunks.at(-1) ?? [];
    const isFull = last.length >= CHUNK_TOOLS_MAX || chars + entry.text.length > CHUNK_CHARS_MAX;
    if (isFull && last.length > 0) {
      chunks.push([entry]);
      chars = entry.text.length;
    } else {
      last.push(entry);
      chars += entry.text.length;
    }
  }
  return chunks;
}

/** A definition that is no strict JSON spoils the whole call: then each is announced by itself. */
async function announceChunk(
  caller: Pick<Caller, "call">,
  chunk: readonly ToolEntry[],
): Promise<Result<Announced>> {
  const text = `{"tools":[${chunk.map((entry) => entry.text).join(",")}],"cancellable":true}`;
  const answer = await caller.call(TOOL, text).final.catch((error: unknown) => error);
  if (answer instanceof CallgateError) return fault(answer.message);
  if (answer instanceof Error) throw answer;
  const final = answer as Awaited<ReturnType<Caller["call"]>["final"]>;
  if (final.status === "result") return readVerdicts(final.content, chunk);
  if (final.status !== "failed") {
    const word = final.status === "denied" ? final.reason : final.status;
    return fault(`the broker does not let this role announce tools (${word} for ${TOOL})`);
  }
  if (!final.message.startsWith("bad_arguments")) return fault(visibleLine(final.message, 400));
  const [only] = chunk;
  if (chunk.length <= 1) {
    const why = visibleLine(final.message, 300);
    return ok({
      verdicts: only === undefined ? [] : [{ entry: only, state: "refused", why }],
      role: undefined,
    });
  }
  const each: ToolVerdict[] = [];
  let role: RoleAnswer | undefined;
  for (const entry of chunk) {
    const one = await announceChunk(caller, [entry]);
    if (!one.ok) return one;
    each.push(...one.value.verdicts);
    role = one.value.role ?? role;
  }
  return ok({ verdicts: each, role });
}

const STATES: ReadonlySet<string> = new Set<ToolState>(["in_service", "waiting", "changed", "refused"]);

function readVerdicts(content: string, chunk: readonly ToolEntry[]): Result<Announced> {
  const { tools, role, connections } = JSON.parse(content) as {
    readonly tools?: readonly { state?: unknown; why?: unknown }[];
    readonly role?: unknown;
    readonly connections?: unknown;
  };
  if (!Array.isArray(tools) || tools.length !== chunk.length)
    return fault("the broker's answer to an announcement can't be read");
  const verdicts = chunk.map((entry, index): ToolVerdict => {
    const { state, why } = tools[index] ?? {};
    const known = typeof state === "string" && STATES.has(state) ? (state as ToolState) : "refused";
    return { entry, state: known, why: typeof why === "string" ? visibleLine(why, 300) : undefined };
  });
  const isTold = typeof role === "string" && typeof connections === "number";
  return ok({ verdicts, role: isTold ? { role, connections } : undefined });
}
