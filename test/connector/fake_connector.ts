// A connector for tests of the client that does only what it is told: a real listener on loopback, whose connections do
// what the test says, right or wrong. Answers are sealed with the project's own envelope.

import { createServer, type Server, type Socket } from "node:net";
import { encodeResponseFrame, type Status, statusOf } from "../../src/connector/carriage.ts";
import type { TransportResult } from "../../src/connector/contract.ts";
import { TRANSPORT_RESULT } from "../../src/connector/documents.ts";
import { encode } from "../../src/connector/encode.ts";
import { seal } from "../../src/connector/envelope.ts";
import { FrameIntake, withLength } from "../../src/connector/frame.ts";
import { connectionKey } from "../../src/connector/secret.ts";

export const SECRET = "fake-connection-secret-0123456789abcdef";

/** What one connection does. */
export type Behaviour = (socket: Socket) => void;

export class FakeConnector {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #gone: Promise<void>[] = [];
  #connections = 0;

  private constructor(behaviour: Behaviour, pauseOnConnect: boolean) {
    this.#server = createServer({ pauseOnConnect, allowHalfOpen: true }, (socket) => {
      this.#connections += 1;
      this.#sockets.add(socket);
      this.#gone.push(new Promise((resolve) => socket.once("close", () => resolve())));
      socket.on("error", () => {}).on("close", () => this.#sockets.delete(socket));
      socket.on("end", () => socket.end());
      behaviour(socket);
    });
  }

  /** With `pauseOnConnect` it never reads unless the behaviour does. */
  static start(behaviour: Behaviour, { pauseOnConnect = false } = {}): Promise<FakeConnector> {
    const fake = new FakeConnector(behaviour, pauseOnConnect);
    return new Promise((resolve) => fake.#server.listen(0, "127.0.0.1", () => resolve(fake)));
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  get connections(): number {
    return this.#connections;
  }

  /** Resolves when the client has ended every connection that there was. */
  async allGone(): Promise<void> {
    await Promise.all(this.#gone);
  }

  stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

/** Does `then` when the request frame is whole. */
export function afterRequest(then: (socket: Socket, frame: Buffer) => void): Behaviour {
  return (socket) => {
    const intake = new FrameIntake(2 ** 32 - 1);
    let isDone = false;
    socket.on("data", (chunk) => {
      const taken = intake.take(chunk);
      if (isDone || taken.state !== "whole") return;
      isDone = true;
      then(socket, taken.frame);
    });
  };
}

/** The stream of an answer. */
export function answerOf(result: TransportResult, status: Status = statusOf(result.disposition)): Buffer {
  const key = connectionKey(SECRET);
  const plaintext = encode(TRANSPORT_RESULT, result);
  if (!key.ok || plaintext === undefined) throw new Error("no valid answer");
  const { caller_runtime_id: caller, request_id: requestId } = result;
  const nonce = Buffer.alloc(12, 5);
  const envelope = seal({ key: key.value, caller, requestId, kind: "Result", nonce }, plaintext);
  return withLength(encodeResponseFrame(requestId, status, envelope));
}
