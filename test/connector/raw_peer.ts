// A peer of a connector's socket that does whatever a test wants, and tells what came back and how it ended.

import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface End {
  readonly bytes: Buffer;
  /** `end`: the other side ended its half. `reset`: it was cut off. */
  readonly how: "end" | "reset";
}

export class RawPeer {
  readonly socket: Socket;
  readonly ended: Promise<End>;

  static async connect(port: number, host = "127.0.0.1", localAddress?: string): Promise<RawPeer> {
    const socket = connect({ host, port, allowHalfOpen: true, ...(localAddress && { localAddress }) });
    const peer = new RawPeer(socket);
    await once(socket, "connect");
    return peer;
  }

  private constructor(socket: Socket) {
    this.socket = socket;
    const chunks: Buffer[] = [];
    this.ended = new Promise((resolve) => {
      const end = (how: End["how"]) => resolve({ bytes: Buffer.concat(chunks), how });
      socket.on("data", (chunk: Buffer) => chunks.push(chunk));
      socket.on("end", () => end("end"));
      socket.on("error", () => end("reset"));
      socket.on("close", () => end("reset"));
    });
  }

  /** Resolves when the system has it. */
  send(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => this.socket.write(bytes, () => resolve()));
  }

  close(): void {
    this.socket.destroy();
  }
}
