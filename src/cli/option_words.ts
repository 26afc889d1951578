// What the broker says of an argument, in the words of the command line: it knows `expires_in_seconds`, a person has
// typed --expires.

import type { OptionRow } from "./command_row.ts";

/** Arguments of built-in tools whose option has another name. */
const OPTIONS: Readonly<Record<string, string>> = {
  expires_in_seconds: "--expires",
  taint_max: "--class",
  max_calls: "--max-calls",
  max_calls_per_seconds: "--max-calls-per",
  above_taint: "--above-taint",
  taint_class: "--taint-class",
  session: "--of",
  sessions: "--of",
  since_ms: "--since",
  until_ms: "--until",
  timeout_seconds: "--timeout",
};
const SECONDS = /_seconds$/;

/** The sentence with the command's own options in place of the arguments that they stand for. */
export function inOptionWords(sentence: string, options: readonly OptionRow[]): string {
  const own = new Set(options.map(({ flags }) => /--[a-z-]+/.exec(flags)?.[0] ?? ""));
  return sentence.replace(/`([a-z_]+)`/g, (quoted, name: string) => {
    if (name === "taint_untrusted" && own.has("--trusted")) return "--trusted or --untrusted";
    const option = OPTIONS[name] ?? `--${name.replaceAll("_", "-")}`;
    if (!own.has(option)) return quoted;
    return SECONDS.test(name) ? `${option} (in seconds)` : option;
  });
}
