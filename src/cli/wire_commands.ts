// The rows of `callgate wire …`.

import type { CommandRow } from "./command_row.ts";
import type { WireMode } from "./wire.ts";

const ABOUT: Readonly<Record<WireMode, string>> = {
  decode: '{"name":…,"hex":…} to {"name","outcome","detail","reencoded_hex"}',
  encode: '{"name":…,"envelope":{…}} to {"name","outcome","detail","hex"}',
};

const HELP: Readonly<Record<WireMode, string>> = {
  decode: `One line for each that is not empty, in order. The bytes are one stream, of which the first frame is read. Outcomes: ok,
closed, empty, too_large (detail: the length), bad_version (detail: the v), json, io. For long streams, instead of hex:
"recipe":{"prefix_hex":…,"fill_hex":…,"fill_count":…,"suffix_hex":…}.`,
  encode: `One line for each that is not empty, in order. In the envelope, id, call and expires are decimal strings, and
{"repeat":…,"count":…} may stand in place of a string. Outcomes: ok, too_large (detail: the length), json (outside the
grammar).`,
};

const EXAMPLES: Readonly<Record<WireMode, string>> = {
  decode: `echo '{"name":"a","hex":"0000000c7b2276223a312c226964223a"}' | callgate wire decode`,
  encode: "callgate wire encode < envelopes.jsonl",
};

export const WIRE_ROWS: readonly CommandRow[] = (["decode", "encode"] as const).map((mode) => ({
  words: `wire ${mode}`,
  about: `JSON Lines on standard input to JSON Lines: ${ABOUT[mode]}`,
  reaches: false,
  run: async () => {
    const { runWire } = await import("./wire.ts");
    return () => runWire(mode, process.stdin, process.stdout);
  },
  help: `${HELP[mode]}

A line that is no such object is answered too: outcome error, detail says why.`,
  exits: {
    0: "each line was answered with an outcome of the codec",
    1: "a line was no such object",
    2: "the answers could not be written",
  },
  examples: [EXAMPLES[mode]],
}));
