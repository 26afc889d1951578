// A person at a terminal, for tests: what was shown to them, what they type, and when they press ctrl-C. And
// a broker that answers each tool with what the test wrote down.

import { runProgram } from "../../src/cli/program.ts";
import type { Dialogue } from "../../src/cli/terminal.ts";
import type { ToolRequest, ToolResponse } from "../../src/wire/message.ts";
import { FakeBroker, result } from "../client/fake_broker.ts";

/** 2026-11-30T12:00:00Z. */
export const NOW_MS = 1_796_040_000_000;

export class Desk implements Dialogue {
  readonly isTerminal: boolean;
  readonly canAsk: boolean;
  out_ = "";
  err_ = "";
  readonly questions: string[] = [];
  readonly #lines: (string | undefined)[];
  readonly #interrupts = new Set<() => void>();
  #waiting: (() => void)[] = [];

  /** `types`: the lines typed, in order; undefined is the end of input. Without it no terminal is there. */
  constructor(types?: readonly (string | undefined)[]) {
    this.canAsk = types !== undefined;
    this.isTerminal = types !== undefined;
    this.#lines = [...(types ?? [])];
  }

  out(text: string): void {
    this.out_ += text;
    this.#wake();
  }

  err(text: string): void {
    this.err_ += text;
    this.#wake();
  }

  ask(question: string): Promise<string | undefined> {
    this.questions.push(question);
    return Promise.resolve(this.#lines.shift());
  }

  onInterrupt(then: () => void): () => void {
    this.#interrupts.add(then);
    return () => this.#interrupts.delete(then);
  }

  interrupt(): void {
    for (const then of this.#interrupts) then();
  }

  nowMs(): number {
    return NOW_MS;
  }

  /** Resolves when the text has been shown. */
  async shows(text: string): Promise<void> {
    while (!`${this.out_}${this.err_}`.includes(text))
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** The answer to a call, once it is known; `JSON` values become results. */
export type Answer = object | ((args: Readonly<Record<string, unknown>>) => object | Promise<object>);

/** Answers of a broker by tool, without `callgate.`; what is not there is denied. */
export type Answers = Readonly<Record<string, Answer>>;

export class AnsweringBroker {
  readonly #broker: FakeBroker;
  readonly #answers: Answers;
  readonly asked: { readonly tool: string; readonly args: Readonly<Record<string, unknown>> }[] = [];

  private constructor(broker: FakeBroker, answers: Answers) {
    this.#broker = broker;
    this.#answers = answers;
  }

  static async start(answers: Answers): Promise<AnsweringBroker> {
    const broker = new AnsweringBroker(await FakeBroker.start(), answers);
    void broker.#serve();
    return broker;
  }

  get path(): string {
    return this.#broker.path;
  }

  /** Arguments of the calls of one tool, in order. */
  of(tool: string): readonly Readonly<Record<string, unknown>>[] {
    return this.asked.filter((one) => one.tool === tool).map(({ args }) => args);
  }

  /** Cuts all connections and listens again. */
  async restart(): Promise<void> {
    await this.#broker.die();
    await this.#broker.listen();
  }

  remove(): Promise<void> {
    return this.#broker.remove();
  }

  async #serve(): Promise<void> {
    for (;;) {
      const peer = await this.#broker.accept();
      void (async () => {
        for (;;) {
          const request = await peer.request();
          void this.#answer(request).then((body) => peer.answer(request.id, body));
        }
      })();
    }
  }

  async #answer(request: ToolRequest): Promise<ToolResponse> {
    const tool = request.tool.replace(/^callgate\./, "");
    const args = JSON.parse(request.arguments) as Record<string, unknown>;
    this.asked.push({ tool, args });
    const known = this.#answers[tool];
    if (known === undefined) return { status: "denied", reason: "no_grant" };
    const given = typeof known === "function" ? await known(args) : known;
    return isMessage(given) ? given : result(JSON.stringify(given));
  }
}

/** The content that tells of a call has a `status` too, and a `state` beside it. */
function isMessage(given: object): given is ToolResponse {
  return "status" in given && !("state" in given);
}

/** Runs one command line against the broker. */
export async function at(desk: Desk, broker: AnsweringBroker, ...words: string[]): Promise<number> {
  return runProgram([...words, "--socket", broker.path], desk);
}
