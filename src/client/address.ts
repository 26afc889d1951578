// Where a broker is, and the byte streams to it. Sockets are opened here and nowhere else.

import { connect as connectSocket, Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { fault, ok, type Result } from "../base/faults.ts";

/**
 * A socket's path; or an inherited descriptor that is connected to the broker; or standard input and
 * output (then nothing else in the process may write to standard output). Who we are to the broker is
 * the socket, not anything we say.
 */
export type Address = { readonly path: string } | { readonly fd: number } | { readonly stdio: true };

/** Bytes from and to the broker; one object where it is one socket. */
export interface Transport {
  readonly input: Readable;
  readonly output: Writable;
}

/** Only a path can be connected to once more. */
export function canReopen(address: Address): boolean {
  return "path" in address;
}

/** sockaddr_un holds 108 bytes with the NUL; Node cuts a longer path silently and would reach another socket. */
const PATH_BYTES_MAX = 107;

/** The fault is a word for people: the system's error code, or what is wrong with the address. */
export async function openTransport(address: Address): Promise<Result<Transport>> {
  if ("path" in address) return openPath(address.path);
  try {
    if ("fd" in address) {
      const socket = new Socket({ fd: address.fd, readable: true, writable: true });
      return ok({ input: socket, output: socket });
    }
    // Not process.stdin and process.stdout: writes to the latter block the whole process.
    return ok({
      input: new Socket({ fd: 0, readable: true, writable: false }),
      output: new Socket({ fd: 1, readable: false, writable: true }),
    });
  } catch (error) {
    return fault(systemCode(error));
  }
}

function openPath(path: string): Promise<Result<Transport>> {
  if (Buffer.byteLength(path) > PATH_BYTES_MAX || path.includes("\0")) {
    return Promise.resolve(fault("a socket path of more than 107 bytes, or with a NUL"));
  }
  return new Promise((resolve) => {
    const socket = connectSocket({ path });
    const failed = (error: Error) => resolve(fault(systemCode(error)));
    socket.once("error", failed);
    socket.once("connect", () => {
      socket.off("error", failed);
      resolve(ok({ input: socket, output: socket }));
    });
  });
}

function systemCode(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : "unknown error";
}
