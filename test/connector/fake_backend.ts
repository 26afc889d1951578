// The backend of the contract's vectors: what it says follows from the model's name and the request alone. Turns can be
// held, so that a test says when each ends. Counts how often it was entered.

import type { ProviderBackend, ProviderTurn } from "../../src/connector/backend.ts";
import type { Completed, EventPayload, TransportInvocation } from "../../src/connector/contract.ts";

/** Larger than any payload bound of the vectors. */
const HUGE_BYTES = 1_048_576;

export class FakeBackend implements ProviderBackend {
  readonly transport = "fake_v1";
  /** How often it was entered. */
  calls = 0;
  /** Turns wait for `release`. */
  held = false;
  readonly #waiting = new Map<string, () => void>();
  #entered: (() => void)[] = [];

  async execute(invocation: TransportInvocation): Promise<ProviderTurn> {
    this.calls += 1;
    for (const entered of this.#entered.splice(0)) entered();
    if (this.held) await new Promise<void>((go) => this.#waiting.set(nameOf(invocation), go));
    return turnOf(invocation);
  }

  /** Resolves when it is entered next. */
  entered(): Promise<void> {
    return new Promise((resolve) => this.#entered.push(resolve));
  }

  /** Lets one held turn end. */
  release(caller: string, requestId: string): void {
    const name = `${caller} ${requestId}`;
    const go = this.#waiting.get(name);
    if (go === undefined) throw new Error(`no turn of ${name} is held`);
    this.#waiting.delete(name);
    go();
  }

  /** The only one that is held. */
  releaseAll(): void {
    for (const go of this.#waiting.values()) go();
    this.#waiting.clear();
  }
}

function nameOf({ caller_runtime_id, request }: TransportInvocation): string {
  return `${caller_runtime_id} ${request.request_id}`;
}

const COUNTED = {
  input_tokens: 1,
  output_tokens: 1,
  reasoning_output_tokens: null,
  cached_input_tokens: null,
} as const;

/** What the backend says to an invocation. @throws for `fake-throw` */
export function turnOf({ request, provider_request_sha256 }: TransportInvocation): ProviderTurn {
  const id = `fake-${Buffer.from(provider_request_sha256).toString("hex").slice(0, 16)}`;
  const turn = (events: readonly EventPayload[], rest: Partial<Completed> = {}): ProviderTurn => ({
    events,
    outcome: { Completed: { provider_response_id: id, stop_reason: "EndTurn", usage: COUNTED, ...rest } },
  });
  switch (request.model) {
    case "fake-tool":
      return turn([{ ToolCall: { call_id: "call-1", name: "read_source", arguments: "{}" } }], {
        stop_reason: "ToolCalls",
        usage: { ...COUNTED, output_tokens: 2 },
      });
    case "fake-reason":
      return turn(
        [
          { ReasoningState: { provider: "fake", model: "fake-reason", opaque: Buffer.from([1, 2, 3]) } },
          text("reasoned"),
        ],
        {
          usage: {
            input_tokens: 3,
            output_tokens: 9,
            reasoning_output_tokens: 7,
            cached_input_tokens: 0,
          },
        },
      );
    case "fake-cut":
      return turn([text("par")], {
        stop_reason: "MaxOutputTokens",
        usage: {
          input_tokens: 1,
          output_tokens: request.max_output_tokens,
          reasoning_output_tokens: 0,
          cached_input_tokens: 0,
        },
      });
    case "fake-limit":
      return {
        events: [],
        outcome: { Failed: { failure_kind: "RateLimited", message: "fake rate limit" } },
      };
    case "fake-throw":
      throw new Error("a secret of the provider's");
    case "fake-invalid":
      return turn([], { stop_reason: "ToolCalls" });
    case "fake-huge":
      return turn([text("x".repeat(HUGE_BYTES))]);
    default:
      return turn([text(`echo:${lastUserText(request.input)}`)]);
  }
}

function text(text: string): EventPayload {
  return { TextDelta: { text } };
}

function lastUserText(input: TransportInvocation["request"]["input"]): string {
  const texts = input.flatMap((item) => ("UserText" in item ? [item.UserText.text] : []));
  return texts.at(-1) ?? "";
}
