// A provider that answers every request with a result of fixed size, as fast as it can.
// node bench/provider.ts SOCKET CONTENT_BYTES

import { connect } from "node:net";
import { framed, gatherer, idOf, splitFrames } from "./frames.ts";

const [path = "", contentBytes = "64"] = process.argv.slice(2);
const content = "x".repeat(Number(contentBytes));
const tail = `,"final":true,"msg":{"kind":"tool_response","body":{"status":"result","content":"${content}","class":"internal","untrusted":false,"truncated":false}}}`;

const socket = connect(path, () => process.stdout.write("ready\n"));
socket.on("error", () => process.exit(1));
socket.on("close", () => process.exit(0));
const answer = gatherer(socket);
splitFrames(socket, (frame) => answer(framed(`{"v":1,"id":${idOf(frame)}${tail}`)));
