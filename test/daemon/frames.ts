// Frames that the peers of the daemon tests send.

import { encodeFrame } from "../../src/wire/frame.ts";
import type { Message, ToolResponse } from "../../src/wire/message.ts";

export function frame(id: bigint, msg: Message, final = true): Buffer {
  return encodeFrame({ v: 1, id, final, msg });
}

export function requestFrame(id: bigint, tool: string, args: object, call: bigint, session = "s"): Buffer {
  return frame(id, {
    kind: "tool_request",
    body: { session, call, tool, arguments: JSON.stringify(args) },
  });
}

export const trusted = (content: string): ToolResponse => ({
  status: "result",
  content,
  class: "public",
  untrusted: false,
  truncated: false,
});
