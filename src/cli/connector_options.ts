// Options of the commands that ask a connector. Apart from the code that reads them, so that a command line which needs
// none of it loads none of it.

import { secondsOf } from "../base/time_text.ts";
import { type Flags, type OptionRow, WANTS_LENGTH, wholeNumber } from "./command_row.ts";

/** What a connector allows a caller whose config does not say (host/connector_callers.ts). */
const PAYLOAD_BYTES_DEFAULT = 1_048_576;

export const CONNECTOR_OPTIONS: readonly OptionRow[] = [
  {
    flags: "--connect <address>",
    about: "the connector, on this machine (or CALLGATE_CONNECTOR in the environment; else 127.0.0.1:7811)",
  },
  { flags: "--caller <id>", about: "who this is, as the connector's config has it", required: true },
  { flags: "--secret-file <file>", about: "the file of that caller's connection secret", required: true },
  {
    flags: "--max-payload-bytes <number>",
    about: "of a request or an answer, as the connector's config has it",
    parse: wholeNumber,
    wants: "It must be a whole number from 1.",
    fallback: { value: PAYLOAD_BYTES_DEFAULT, shown: String(PAYLOAD_BYTES_DEFAULT) },
  },
  lengthOption("--expiry-horizon <duration>", "the connector's expiry_horizon, or less", 300, "5m"),
];

export function lengthOption(flags: string, about: string, seconds: number, shown: string): OptionRow {
  return { flags, about, parse: secondsOf, wants: WANTS_LENGTH, fallback: { value: seconds, shown } };
}

/** In milliseconds. */
export function lengthOf(flags: Flags, name: string): number {
  const seconds = flags[name];
  if (typeof seconds !== "number") throw new Error(`${name} has a default`);
  return seconds * 1000;
}
