// One call in a world that may end at any moment: what its parties have heard before, and what they hear
// after. Invariants that hold for every script are checked here; a script says what else may come.

import { expect } from "vitest";
import { type Answer, type Asked, Gone } from "./peer.ts";
import { type World, wordsOf } from "./world.ts";

/** Kept for replay: what was heard once is heard again byte for byte. */
const KEPT =
  /^(?:result|failed (?:provider|timeout|provider_lost|cancelled)|denied approval_(?:refused|expired))/;

/** A call under an id of its own, asked as often as it takes. */
export class Call {
  readonly #ask: (id: bigint) => Asked;
  readonly id: bigint;
  heard: Answer | undefined;

  constructor(world: World, ask: (id: bigint) => Asked) {
    this.#ask = ask;
    this.id = world.nextCall();
  }

  ask(): Asked {
    return this.#ask(this.id);
  }

  /** Keeps what was heard; what was heard before must be the same. */
  take(answer: Answer): Answer {
    if (this.heard !== undefined && KEPT.test(wordsOf(this.heard)))
      expect(answer.bytes).toEqual(this.heard.bytes);
    this.heard = answer;
    return answer;
  }

  async final(asked = this.ask()): Promise<Answer> {
    return this.take(await asked.final);
  }
}

export class Story {
  readonly world: World;
  readonly session: string;
  /** What scripts note for later. */
  question: string | undefined;
  approved: Answer | undefined;
  unknown: Call | undefined;
  taintVersion = 0;

  constructor(world: World) {
    this.world = world;
    this.session = `s${world.nextCall()}`;
  }

  /** A call of the agent's in the session of the story; equal to none of another story, whose outcome may be unknown. */
  call(tool: string, does: string, more: object = {}): Call {
    const args = { does, story: this.session, ...more };
    return new Call(this.world, (id) => this.world.agent.ask(tool, args, this.session, id));
  }

  /** Withdraws a call of the agent's. */
  async cancel({ id: of }: Call): Promise<void> {
    const args = { call: of.toString() };
    const tool = "callgate.calls.cancel";
    await new Call(this.world, (id) => this.world.agent.ask(tool, args, this.session, id)).final();
  }

  /** A built-in call of the operator's. */
  operating(name: string, args: () => object): Call {
    return new Call(this.world, (id) => this.world.operator.ask(`callgate.${name}`, args(), "operating", id));
  }

  async openSession(session = this.session): Promise<void> {
    await this.opening(session).final();
  }

  opening(session: string): Call {
    const args = { role: "agent", session, expires_in_seconds: 3600 };
    return new Call(this.world, (id) =>
      this.world.frontend.ask("callgate.sessions.open", args, "opening", id),
    );
  }

  runs(call: Call): number {
    return this.world.runsOf(this.session, call.id);
  }

  async digest(question: string): Promise<unknown> {
    return (await this.world.operate("approvals.show", { approval: question }))["digest"];
  }

  /** Approves under that call id; again with the same arguments where that is asked again. */
  async approving(question: string, more: object = {}): Promise<Call> {
    const digest = await this.digest(question);
    return this.operating("approvals.approve", () => ({ approval: question, digest, ...more }));
  }

  /** The state of the question, as an approver sees it. */
  async stateOf(question: string): Promise<unknown> {
    const { approvals } = await this.world.operate("approvals.list", { state: "all", session: this.session });
    return (approvals as { approval: string; state: string }[]).find((one) => one.approval === question)
      ?.state;
  }

  async taint(): Promise<{ readonly taint: object; readonly version: number }> {
    const content = await this.world.operate("sessions.show", { role: "agent", session: this.session });
    return content as unknown as { taint: object; version: number };
  }

  /**
   * Asks a call again until it has its final answer, and once more: that is the same. A question that is
   * open is answered as the script says.
   */
  async again(call: Call, answer: (question: string) => Promise<unknown>): Promise<Answer> {
    const asked = call.ask();
    const question = await asked.question;
    if (question !== undefined) await answer(question);
    const final = await call.final(asked);
    if (KEPT.test(wordsOf(final)) || wordsOf(final) === "failed outcome_unknown")
      expect((await call.ask().final).bytes).toEqual(final.bytes);
    return final;
  }
}

/** Whether all of it was heard; false: the daemon has gone meanwhile. */
export async function survives(live: () => Promise<unknown>): Promise<boolean> {
  try {
    await live();
    return true;
  } catch (error) {
    if (error instanceof Gone) return false;
    throw error;
  }
}
