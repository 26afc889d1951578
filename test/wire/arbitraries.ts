// Any envelope that the types and the grammar allow, for properties.

import fc from "fast-check";
import { DENY_REASONS } from "../../src/base/faults.ts";
import { U64_MAX } from "../../src/base/ids.ts";
import { DATA_CLASSES } from "../../src/base/labels.ts";
import { type Envelope, ERROR_CODES, type Message } from "../../src/wire/message.ts";

export const u64 = fc.oneof(
  fc.bigInt({ min: 0n, max: U64_MAX }),
  fc.constantFrom(0n, 9_007_199_254_740_993n, 999_999_999_999_999n, 1_000_000_000_000_000n, U64_MAX),
);

/** Well-formed texts: of any characters, of what JSON escapes, and long ones that are read by words. */
export const text = fc.oneof(
  fc.string({ unit: "binary" }).filter((any) => any.isWellFormed()),
  fc.string({
    unit: fc.constantFrom('"', "\\", "/", "\0", "\u001f", "\n", "\u007f", "é", "\u2028", "😀", "a"),
  }),
  fc
    .tuple(fc.nat(700), fc.constantFrom("", '"', "\n", "é", "\\", "\u0001"), fc.nat(700))
    .map(([before, odd, after]) => "x".repeat(before) + odd + "y".repeat(after)),
);

const session = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$/);

export const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({
    kind: fc.constant("tool_request" as const),
    body: fc.record({ session, call: u64, tool: text, arguments: text }),
  }),
  fc.record({
    kind: fc.constant("tool_response" as const),
    body: fc.oneof(
      fc.record({ status: fc.constant("pending_approval" as const), approval: text, expires: u64 }),
      fc.record({
        status: fc.constant("result" as const),
        content: text,
        class: fc.constantFrom(...DATA_CLASSES),
        untrusted: fc.boolean(),
        truncated: fc.boolean(),
      }),
      fc.record({ status: fc.constant("failed" as const), message: text }),
      fc.record({ status: fc.constant("denied" as const), reason: fc.constantFrom(...DENY_REASONS) }),
    ),
  }),
  fc.record({
    kind: fc.constant("error" as const),
    body: fc.record({ code: fc.constantFrom(...ERROR_CODES), detail: text }),
  }),
);

export const envelope: fc.Arbitrary<Envelope> = fc.record({
  v: fc.constant(1),
  id: u64,
  final: fc.boolean(),
  msg: message,
});
