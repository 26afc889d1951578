// What commands that follow a broker share: asking it again where it can't answer now, and waiting in between,
// until they are told to stop.

import type { Caller } from "../client/caller.ts";
import { CallgateError } from "../client/error.ts";
import type { Flags } from "./command_row.ts";
import { askBroker, type BrokerAnswer } from "./operate.ts";

/** Until a broker is asked again. */
export const RETRY_MS = 1000;

/** `lost`: the connection went in between, so nothing is known. `later`: the broker can't answer now. */
export async function askAgain(
  caller: Caller,
  flags: Flags,
  tool: string,
  args: Readonly<Record<string, unknown>>,
): Promise<BrokerAnswer | "lost" | "later"> {
  try {
    const answer = await askBroker(caller, flags, tool, args);
    return "fault" in answer && isUnavailable(answer) ? "later" : answer;
  } catch (error) {
    if (error instanceof CallgateError && error.code === "lost") return "lost";
    throw error;
  }
}

function isUnavailable({ fault }: Extract<BrokerAnswer, { fault: unknown }>): boolean {
  const said = new Said();
  fault(said);
  return said.text.startsWith("failed: unavailable");
}

/** Keeps what would be said. */
class Said {
  readonly isTerminal = false;
  text = "";

  out(text: string): void {
    this.text += text;
  }

  err(text: string): void {
    this.text += text;
  }
}
