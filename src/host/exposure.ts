// What would show a process's memory, or what it sends, to whoever looks: Node's debugger, which listens on loopback and
// asks nobody who he is, and Node's own debug output, in which headers stand. For processes that hold a key.

import { url } from "node:inspector";

/**
 * From now on SIGUSR1 opens no debugger, as it does in Node, and calls `onSignal`: whoever rotates logs may send it, and then
 * every user of this machine could run code here.
 */
export function keepDebuggerShut(onSignal: () => void): void {
  process.on("SIGUSR1", onSignal);
}

/** Why no secret may be read into this process, for its owner; undefined: nothing is known against it. */
export function exposureOf(
  debug = process.env["NODE_DEBUG"],
  debuggerUrl: string | undefined = url(),
): string | undefined {
  if (debuggerUrl !== undefined)
    return "Node's debugger is open (--inspect, or SIGUSR1 while this started): whoever reaches its port could read the key";
  if (debug !== undefined && debug !== "")
    return "NODE_DEBUG is set in the environment: Node would write what is sent, the key in it, to standard error; unset it";
  return undefined;
}
