// Run as a child by load.test.ts: answers each call of `echo` with its `text`. Prints `ready`.
// load_provider.ts SOCKET

import { connect } from "node:net";
import { decodeBody } from "../../src/wire/envelope.ts";
import { FrameReader } from "../../src/wire/frame.ts";
import { frame, trusted } from "./frames.ts";

const socket = connect(process.argv[2] ?? "", () => process.stdout.write("ready\n"));
socket.on("close", () => process.exit(0));
const reader = new FrameReader();
socket.on("data", (chunk: Buffer) => {
  socket.cork();
  reader.push(chunk);
  for (let body = reader.next(); body !== undefined; body = reader.next()) {
    const { id, msg } = decodeBody(body);
    if (msg.kind !== "tool_request") continue;
    const { text } = JSON.parse(msg.body.arguments) as { text: string };
    socket.write(frame(id, { kind: "tool_response", body: trusted(text) }));
  }
  socket.uncork();
});
