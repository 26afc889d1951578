// `callgate role model`: the model provider as a program, until a signal ends it.

import { MODEL_TOOL } from "../roles/model/definition.ts";
import { serveModel } from "../roles/model/model_role.ts";
import { addressOf } from "./call.ts";
import { type Flags, textOf, type Words } from "./command_row.ts";
import { lengthOf } from "./connector_options.ts";
import { connectorReach } from "./connector_reach.ts";
import { type Dialogue, EXIT } from "./terminal.ts";

export async function runModel(terminal: Dialogue, _: Words, flags: Flags): Promise<number> {
  const { caller, horizonMs, ...connector } = connectorReach(flags);
  const prefix = textOf(flags, "prefix");
  const served = await serveModel({
    to: addressOf(flags),
    connector,
    caller,
    turns: {
      horizonMs,
      lookBackMs: lengthOf(flags, "lookBack"),
      patienceMs: lengthOf(flags, "wait"),
      turnMsMax: lengthOf(flags, "timeout"),
    },
    concurrency: Number(flags["concurrency"]),
    prefix,
    announce: flags["announce"] === true,
  });
  if (!served.ok) {
    terminal.err(`callgate: ${served.fault}\n`);
    return EXIT.connection;
  }
  terminal.err(`serving ${prefix ?? ""}${MODEL_TOOL}\n`);
  let restore = (): void => undefined;
  const signalled = new Promise<undefined>((resolve) => {
    restore = terminal.onInterrupt(() => resolve(undefined));
  });
  const why = await Promise.race([signalled, served.value.ended]);
  restore();
  await served.value.close();
  if (why === undefined) return EXIT.ok;
  terminal.err(`callgate: ${why}\n`);
  return EXIT.connection;
}
