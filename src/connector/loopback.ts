// Which addresses a connector may have: those that never leave the machine (spec: connector, 6.1 and 7).

import { isIPv4 } from "node:net";

/** An IP literal in 127.0.0.0/8, or `::1` as it is spelt here. No name: a name may resolve to anything. */
export function isLoopbackLiteral(host: unknown): host is string {
  return typeof host === "string" && (host === "::1" || (host.startsWith("127.") && isIPv4(host)));
}

/** For people: `127.0.0.1:7811`, `[::1]:7811`. */
export function addressText(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
