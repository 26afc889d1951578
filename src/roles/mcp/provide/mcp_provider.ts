// `callgate mcp provide` as a role: an MCP server's tools become tools of the broker's. It decides nothing: which calls come
// is the broker's to say, and what labels results carry is its config's. Invariant: a call goes to the server at
// most once, and only to the very definition that the broker knows.

import { visibleLine } from "../../../base/display.ts";
import { fault, ok, type Result } from "../../../base/faults.ts";
import type { Address } from "../../../client/address.ts";
import type { ReconnectOptions } from "../../../client/backoff.ts";
import { type Effects, REAL_EFFECTS } from "../../../client/effects.ts";
import type { ConnectionState } from "../../../client/endpoint.ts";
import { CallgateError } from "../../../client/error.ts";
import type { Request } from "../../../client/jobs.ts";
import { type Provider, provide } from "../../../client/provider.ts";
import { progressNotice, resultAfterProgress } from "../progress.ts";
import { announceTools, type RoleAnswer, type ToolVerdict } from "./announcer.ts";
import { ExactArguments } from "./exact_arguments.ts";
import type { CallFault, McpSession } from "./mcp_client.ts";
import { ProgressPieces } from "./progress_pieces.ts";
import { ServerLife } from "./server_life.ts";
import type { ServerSource, SourceEffects } from "./server_source.ts";
import { resultContent } from "./tool_result.ts";
import { readTools, type ToolEntry } from "./tool_table.ts";

export interface McpProviderOptions {
  readonly to: Address;
  readonly source: (effects: SourceEffects) => ServerSource;
  /** In front of every tool's name; what the role's `provides` has. */
  readonly prefix: string;
  readonly version: string;
  /** Calls at the server at once; others wait in order. */
  readonly concurrency: number;
  /** How long a call may be without an answer or progress; and in all. */
  readonly idleMs: number;
  readonly totalMs: number;
  /** For each step of the server's start. */
  readonly startMs: number;
  /** Tools whose schema the broker refuses are announced without one: then it checks no arguments of theirs. */
  readonly uncheckedSchemas: boolean;
  /** The log: a line, without its end. */
  readonly say: (line: string) => void;
  readonly reconnect?: ReconnectOptions | undefined;
  readonly effects?: Partial<Effects> | undefined;
}

export interface McpProvider {
  /** Lets running calls finish, leaves the broker, ends the server and everything that it started. */
  close(): Promise<void>;
  /** Resolves when nothing is served any more; undefined after `close`. */
  readonly ended: Promise<ProviderEnd | undefined>;
}

/** For the owner. */
export interface ProviderEnd {
  readonly words: string;
  /** The broker is lost; else it is the server, or what this role may do. */
  readonly isBroker: boolean;
}

/** Serves until closed. The fault is for the owner. */
export async function provideMcp(options: McpProviderOptions): Promise<Result<McpProvider>> {
  const role = new Role(options);
  try {
    await role.connect();
  } catch (error) {
    if (error instanceof CallgateError) return fault(error.message);
    throw error;
  }
  return ok({ close: () => role.close(), ended: role.ended });
}

const TOLD_MAX = 1000;
const UNCONFINED =
  "warning: the server is not confined, so a hostile one can reach what this user can: give it a user of its own";

class Role {
  readonly ended: Promise<ProviderEnd | undefined>;
  readonly #options: McpProviderOptions;
  readonly #exact = new ExactArguments();
  readonly #effects: Effects;
  #end!: (why: ProviderEnd | undefined) => void;
  #provider: Provider | undefined;
  #life: ServerLife | undefined;
  #entries: ReadonlyMap<string, ToolEntry> = new Map();
  /** For the log: how its process is kept. */
  #kept = "";
  #isOutage = false;
  #told: ReadonlySet<string> = new Set();
  readonly #unchecked = new Set<string>();
  /** The list that is being read, or the announcement that is being made: one after another. */
  #turn: Promise<unknown> = Promise.resolve();
  #reading: Promise<unknown> | undefined;
  /** A reading that has not begun waits for its turn: it will see what changes until then. */
  #isReadingDue = false;

  constructor(options: McpProviderOptions) {
    this.#options = options;
    this.#effects = { ...REAL_EFFECTS, ...options.effects };
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** @throws CallgateError */
  async connect(): Promise<void> {
    const { to, concurrency, reconnect, effects } = this.#options;
    this.#provider = await provide({
      ...{ to, concurrency, reconnect, effects, waitForBroker: true, session: "mcp" },
      handle: (request) => this.#handle(request),
      onConnection: (state) => this.#connectionIs(state),
    });
    void this.#provider.ended.then(async (why) => {
      await this.#life?.close();
      this.#end(why === undefined ? undefined : { words: why.message, isBroker: true });
    });
    this.#life = this.#begin();
    void this.#life.ended.then((why) => why !== undefined && this.#giveUp(why));
  }

  async close(): Promise<void> {
    await this.#provider?.close();
    await this.#life?.close();
    this.#end(undefined);
  }

  /** An outage is told once; a connection that the broker refuses at once does not end it. */
  #connectionIs(state: ConnectionState): void {
    const { say } = this.#options;
    if (!state.open && !this.#isOutage) say(`no connection to the broker (${state.why}); trying again`);
    if (!state.open) this.#isOutage = true;
    this.#life?.checkHidden();
    if (state.open && this.#provider !== undefined) void this.#inTurn(() => this.#announce());
  }

  #begin(): ServerLife {
    const { source: sourceOf, version, startMs, say } = this.#options;
    const { monotonicMs } = this.#effects;
    const source = sourceOf({ exact: this.#exact, say, monotonicMs });
    if (source.confined !== undefined)
      this.#kept = source.confined ? "; it is confined" : "; it is not confined";
    if (source.confined === false) say(UNCONFINED);
    return new ServerLife({
      source,
      session: { version, stepMs: startMs },
      effects: this.#effects,
      say,
      onUp: (session) => this.#inTurn(() => this.#readAndAnnounce(session)),
      onToolsChanged: () => this.#toolsChanged(),
    });
  }

  #giveUp(words: string): void {
    this.#end({ words, isBroker: false });
    void this.#provider?.close({ drainMs: 0 });
    void this.#life?.close();
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(run);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Calls wait until it is known what the tools have become. */
  #toolsChanged(): void {
    if (this.#life?.session === undefined || this.#isReadingDue) return;
    this.#isReadingDue = true;
    const reading = this.#inTurn(async () => {
      this.#isReadingDue = false;
      const session = this.#life?.session;
      if (session !== undefined && !(await this.#readAndAnnounce(session))) this.#life?.lost(session);
    }).finally(() => {
      if (this.#reading === reading) this.#reading = undefined;
    });
    this.#reading = reading;
  }

  /** False: this server is of no use. */
  async #readAndAnnounce(session: McpSession): Promise<boolean> {
    const { prefix } = this.#options;
    const listed = await session.listTools();
    if (!listed.ok) {
      this.#options.say(`the server's tools can't be listed: ${listed.fault}`);
      return false;
    }
    const { entries, leftOut } = readTools(listed.value, prefix, this.#unchecked, this.#entries);
    this.#entries = entries;
    const about = `the server speaks ${session.protocol} and has ${entries.size} tools${this.#kept}`;
    this.#tell([...leftOut, about]);
    return this.#announce();
  }

  /** What is as it was when it was told last is not told again: a server may say very often that its tools changed. */
  #tell(lines: readonly string[]): void {
    const fresh = lines.filter((line) => !this.#told.has(line));
    for (const line of fresh) this.#options.say(line);
    if (fresh.length > 0) this.#told = new Set([...this.#told, ...lines].slice(-TOLD_MAX));
  }

  async #announce(): Promise<boolean> {
    const { uncheckedSchemas } = this.#options;
    const provider = this.#provider;
    if (provider === undefined) return false;
    const answered = await announceTools(provider, [...this.#entries.values()]);
    if (!answered.ok) {
      this.#giveUp(answered.fault);
      return false;
    }
    this.#isOutage = false;
    const { verdicts, role } = answered.value;
    this.#tell([...connectionLines(role), ...verdictLines(verdicts, uncheckedSchemas)]);
    const again = uncheckedSchemas ? verdicts.filter(isSchemaRefused) : [];
    if (again.length === 0) return true;
    return this.#announceUnchecked(again);
  }

  async #announceUnchecked(refused: readonly ToolVerdict[]): Promise<boolean> {
    for (const { entry } of refused) this.#unchecked.add(entry.announced.name);
    const tools = [...this.#entries.values()].map(({ tool }) => tool);
    this.#entries = readTools(tools, this.#options.prefix, this.#unchecked, this.#entries).entries;
    return this.#announce();
  }

  /** The library's way to say that a call failed is a thrown error, so that is done here, at its edge. */
  async #handle(request: Request): Promise<string | AsyncGenerator<string>> {
    const before = this.#entries.get(request.tool);
    if (this.#reading !== undefined) await this.#reading;
    const entry = this.#entries.get(request.tool);
    const session = this.#life?.session;
    if (entry === undefined) throw new Error("the server has no such tool now; nothing ran");
    if (entry !== before || !entry.isKnown) throw new Error("the tool has just changed; nothing ran");
    if (session === undefined) throw new Error("the MCP server is not there now; nothing ran");
    const pieces = new ProgressPieces(this.#effects.monotonicMs);
    const asked = this.#ask(session, entry, request, pieces).finally(() => pieces.end());
    if (!(await pieces.begun)) return contentOf(await asked);
    asked.catch(() => undefined); // heard of when the pieces are sent
    return withProgress(pieces, asked);
  }

  async #ask(
    session: McpSession,
    { tool }: ToolEntry,
    { arguments: text, signal }: Request,
    pieces: ProgressPieces,
  ): Promise<Asked> {
    const { idleMs, totalMs } = this.#options;
    const held = this.#exact.hold(text);
    if (held === undefined) throw new Error("the arguments are no JSON object; nothing ran");
    const stop = new AbortController();
    let isBroken = false;
    held.onStreamEnd = () => {
      isBroken = true;
      stop.abort();
    };
    const onAbort = () => stop.abort();
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) stop.abort();
    try {
      const answered = await session.call(tool, {
        ...{ args: held.value, signal: stop.signal, idleMs, totalMs },
        onProgress: (params) => {
          const notice = progressNotice(params);
          if (notice !== undefined) pieces.take(notice);
        },
      });
      if (answered.ok) return answered;
      if (isBroken && !signal.aborted) return fault({ ...answered.fault, kind: "gone" as const });
      if (LOST.has(answered.fault.kind)) this.#life?.lost(session);
      return answered;
    } finally {
      signal.removeEventListener("abort", onAbort);
      held.release();
    }
  }
}

type Asked = Result<Readonly<Record<string, unknown>>, CallFault>;

/** @throws Error whose message is for the caller */
function contentOf(answered: Asked): string {
  if (!answered.ok) throw new Error(sentenceOf(answered.fault));
  const content = resultContent(answered.value);
  if (!content.ok) throw new Error(`the server ran, and what it gave is no result: ${content.fault}`);
  return content.value;
}

async function* withProgress(pieces: ProgressPieces, asked: Promise<Asked>): AsyncGenerator<string> {
  yield* pieces;
  yield resultAfterProgress(contentOf(await asked));
}

/** After which there is no session. */
const LOST: ReadonlySet<CallFault["kind"]> = new Set(["gone", "forgotten"]);

function sentenceOf({ kind, words }: CallFault): string {
  switch (kind) {
    case "told":
      return `the MCP server answered with an error: ${words}`;
    case "gone":
      return "the MCP server went away while the call ran; it may have run, and is not asked again";
    case "forgotten":
      return "the MCP server has forgotten our session, so it did not take the call; a new session is opened";
    case "unsent":
      return `the MCP server could not be asked (${words}); it may have run`;
    case "timeout":
      return "the MCP server did not answer in time and was told to stop; it may have run";
    case "cancelled":
      return "the call was cancelled, and the MCP server was told; it may have run";
    case "invalid":
      return `the MCP server ran, and its answer is of no use: ${words}`;
  }
}

function isSchemaRefused({ state, why, entry }: ToolVerdict): boolean {
  return state === "refused" && why?.startsWith("`schema`") === true && entry.announced.schema !== undefined;
}

/** A server that gets at the socket could connect beside us, and be taken for us. */
function connectionLines(role: RoleAnswer | undefined): readonly string[] {
  if (role === undefined || role.connections === 1) return [];
  return [
    `warning: role ${visibleLine(role.role, 64)} may have ${role.connections} connections, and a server could be one of them: write connections = 1 under [roles.${visibleLine(role.role, 64)}]`,
  ];
}

/** What an owner has to know of an announcement. */
function verdictLines(verdicts: readonly ToolVerdict[], uncheckedSchemas: boolean): readonly string[] {
  const named = (state: string) => verdicts.filter((one) => one.state === state);
  const names = (some: readonly ToolVerdict[]) =>
    visibleLine(some.map(({ entry }) => entry.announced.name).join(" "), 1000);
  const why = (one: ToolVerdict) => {
    const hint =
      isSchemaRefused(one) && !uncheckedSchemas ? " (--unchecked-schemas announces it without)" : "";
    return `${one.why ?? "no reason given"}${hint}`;
  };
  const refused = named("refused");
  const lines = [...new Set(refused.map(why))].map(
    (reason) => `the broker refuses ${names(refused.filter((one) => why(one) === reason))}: ${reason}`,
  );
  const waiting = named("waiting");
  const changed = named("changed");
  if (waiting.length > 0)
    lines.push(`waiting for an operator (callgate tools diff, then accept): ${names(waiting)}`);
  if (changed.length > 0)
    lines.push(
      `changed, so out of service until an operator has looked (callgate tools diff): ${names(changed)}`,
    );
  lines.push(`in service: ${named("in_service").length} of ${verdicts.length}`);
  return lines;
}
