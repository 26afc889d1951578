// A model of the broker as its callers know it: what each request must be answered, told from the policy
// in plain facts, the calls, the questions and the time. It knows nothing of frames, stages or stores.

import {
  askedAnyway,
  type Caller,
  type PolicyName,
  READS,
  type Ruling,
  rule,
  type Tool,
  UNTRUSTED,
} from "./policies.ts";

/** One request and what it must have heard by now. */
export interface Asked {
  readonly expected: string[];
}

type State = "waiting" | "running" | "ended" | "unknown";

export interface Call {
  readonly name: string;
  readonly role: Caller;
  readonly session: string;
  readonly call: bigint;
  readonly tool: Tool;
  readonly args: string;
  /** Of equal calls. */
  readonly equal: string;
  state: State;
  /** Requests that wait for its end. */
  askers: Asked[];
  /** Equal calls under other ids that wait for the same question. */
  followers: Call[];
  /** While a question is open or was approved. */
  question:
    | { readonly expiresAtMs: number; readonly refuseForMs: number; readonly order: number }
    | undefined;
  end: string;
  deadlineAtMs: number;
}

const PAUSE_MS = 3_600_000;

export class Model {
  policy: PolicyName = "open";
  nowMs: number;
  providers = 1;
  readonly #timeoutMs: number;
  readonly #calls = new Map<string, Call>();
  readonly #untrusted = new Set<Caller>();
  /** By role and equality: until when. */
  readonly #refused = new Map<string, number>();
  readonly #refusals = new Map<Caller, number[]>();
  /** Equal calls of a role whose outcome nobody knows. */
  readonly #doubts = new Map<string, Call>();
  #questions = 0;

  constructor(nowMs: number, timeoutMs: number) {
    this.nowMs = nowMs;
    this.#timeoutMs = timeoutMs;
  }

  ask(role: Caller, session: string, call: bigint, tool: Tool, args: string): Asked {
    const asked: Asked = { expected: [] };
    const name = `${role}:${session} ${call}`;
    const known = this.#calls.get(name);
    if (known !== undefined) this.#again(known, tool, args, asked);
    else this.#fresh({ name, role, session, call, tool, args }, asked);
    return asked;
  }

  #again(known: Call, tool: Tool, args: string, asked: Asked): void {
    if (known.tool !== tool || known.args !== args) return end(asked, "failed conflict");
    const ruling = this.#rule(known.role, tool);
    if (ruling.kind === "deny" && ruling.reason === "denied_by_grant")
      return end(asked, "denied denied_by_grant");
    if (known.state === "unknown") return end(asked, "failed outcome_unknown");
    if (known.state === "ended") {
      this.#taint(known, known.end);
      return end(asked, known.end);
    }
    if (leaderOf(this.#calls, known).question !== undefined) asked.expected.push("part: pending_approval");
    known.askers.push(asked);
  }

  #rule(role: Caller, tool: Tool): Ruling {
    return rule(this.policy, role, tool, this.#untrusted.has(role));
  }

  #fresh(request: Pick<Call, "name" | "role" | "session" | "call" | "tool" | "args">, asked: Asked): void {
    const { role, session, tool, args, name } = request;
    const ruling = this.#rule(role, tool);
    if (ruling.kind === "deny") return end(asked, `denied ${ruling.reason}`);
    if (this.providers === 0) return end(asked, "failed no_provider");
    const equal = `${role} ${tool} ${JSON.stringify(JSON.parse(args))}`;
    const call: Call = {
      ...request,
      equal,
      state: "running",
      askers: [asked],
      followers: [],
      question: undefined,
      end: "",
      deadlineAtMs: this.nowMs + this.#timeoutMs,
    };
    const doubted = !READS.has(tool) && this.#doubts.has(equal);
    if (ruling.kind === "allow" && !doubted) {
      this.#calls.set(name, call);
      return;
    }
    if (this.#isRefused(equal) || this.#isPaused(role, session, equal))
      return end(asked, "denied approval_refused");
    asked.expected.push("part: pending_approval");
    call.state = "waiting";
    const same = this.#open().find((one) => one.equal === equal && one.session === session);
    if (same !== undefined) same.followers.push(call);
    else {
      const { ttlMs, refuseForMs } = askedAnyway(ruling, tool);
      call.question = { expiresAtMs: this.nowMs + ttlMs, refuseForMs, order: ++this.#questions };
    }
    this.#calls.set(name, call);
  }

  #isRefused(equal: string): boolean {
    return this.nowMs < (this.#refused.get(equal) ?? 0);
  }

  /** Five refusals within an hour, of whatever name; a question that is open already is followed all the same. */
  #isPaused(role: Caller, session: string, equal: string): boolean {
    if (this.#open().some((one) => one.equal === equal && one.session === session)) return false;
    const times = (this.#refusals.get(role) ?? []).slice(-5);
    const [first, last] = [times[0], times.at(-1)];
    if (times.length < 5 || first === undefined || last === undefined) return false;
    return last - first <= PAUSE_MS && this.nowMs < last + PAUSE_MS;
  }

  /** Open questions in the order in which they were asked. */
  #open(): readonly Call[] {
    return [...this.#calls.values()]
      .filter((call) => call.state === "waiting" && call.question !== undefined)
      .sort((a, b) => (a.question?.order ?? 0) - (b.question?.order ?? 0));
  }

  get open(): readonly Call[] {
    return this.#open();
  }

  get running(): readonly Call[] {
    return [...this.#calls.values()].filter((call) => call.state === "running");
  }

  /** What the approver hears. */
  approve(call: Call): string {
    const ruling = this.#rule(call.role, call.tool);
    if (ruling.kind === "deny") {
      this.#forget(call, `denied ${ruling.reason}`);
      return "failed conflict";
    }
    if (this.providers === 0) return "failed no_provider";
    call.state = "running";
    for (const follower of call.followers) follower.state = "running";
    call.deadlineAtMs = this.nowMs + this.#timeoutMs;
    return "result";
  }

  refuse(call: Call): string {
    const until = this.nowMs + (call.question?.refuseForMs ?? 0);
    this.#refused.set(call.equal, Math.max(until, this.#refused.get(call.equal) ?? 0));
    this.#refusals.set(call.role, [...(this.#refusals.get(call.role) ?? []), this.nowMs]);
    this.#end(call, "denied approval_refused");
    return "result";
  }

  /** The provider's last word on a running call. */
  answered(call: Call, words: string): void {
    this.#end(call, words);
  }

  /** Its provider's connection is gone. */
  lost(calls: readonly Call[]): void {
    for (const call of calls) {
      this.#end(call, "failed provider_lost");
      this.#doubt(call);
    }
  }

  cancel(name: string): string {
    const call = this.#calls.get(name);
    if (call === undefined || (call.state !== "waiting" && call.state !== "running")) return "false";
    this.#end(leaderOf(this.#calls, call), "failed cancelled");
    return "true";
  }

  /** Everybody's connections are gone, and nothing that was not written is known any more. */
  crash(): void {
    for (const call of this.#calls.values()) {
      call.askers = [];
      if (call.state === "running") {
        call.state = "unknown";
        this.#doubt(call);
      }
    }
    for (const call of this.#open()) {
      for (const follower of call.followers) this.#calls.delete(follower.name);
      call.followers = [];
    }
    this.expire();
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.expire();
    for (const call of this.running) {
      if (this.nowMs < call.deadlineAtMs || leaderOf(this.#calls, call) !== call) continue;
      this.#end(call, "failed timeout");
      this.#doubt(call);
    }
  }

  expire(): void {
    for (const call of this.#open())
      if (this.nowMs >= (call.question?.expiresAtMs ?? 0)) this.#end(call, "denied approval_expired");
  }

  /** An asker's connection is gone; the call goes on. */
  gone(asked: ReadonlySet<Asked>): void {
    for (const call of this.#calls.values()) call.askers = call.askers.filter((one) => !asked.has(one));
  }

  #doubt(call: Call): void {
    if (!READS.has(call.tool)) this.#doubts.set(call.equal, call);
  }

  /** A question that became void leaves nothing: asked again it is decided afresh. */
  #forget(call: Call, words: string): void {
    for (const one of [call, ...call.followers]) {
      for (const asker of one.askers) end(asker, words);
      this.#calls.delete(one.name);
    }
  }

  #end(call: Call, words: string): void {
    for (const one of [call, ...call.followers]) {
      one.state = "ended";
      one.end = words;
      for (const asker of one.askers) end(asker, words);
      one.askers = [];
    }
    this.#taint(call, words);
  }

  #taint(call: Call, words: string): void {
    if (words === "failed provider" || (words.startsWith("result") && UNTRUSTED.has(call.tool)))
      this.#untrusted.add(call.role);
  }
}

function end(asked: Asked, words: string): void {
  asked.expected.push(words);
}

/** The call whose question it waits for: its own, or the equal one's that it follows. */
export function leaderOf(calls: ReadonlyMap<string, Call>, call: Call): Call {
  for (const one of calls.values()) if (one.followers.includes(call)) return one;
  return call;
}
