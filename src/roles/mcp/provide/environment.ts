// The environment of a server that runs as a child: what it was given, and the two variables without which hardly a
// program starts. Nothing else of ours reaches it, so no token or socket that happens to stand in our environment.

import { fault, ok, type Result } from "../../../base/faults.ts";

export type Environment = Readonly<Record<string, string>>;

/** Passed on without being named. */
const ALWAYS = ["HOME", "PATH"] as const;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Ours: how roles find their sockets, and how a server's processes are found again. */
const RESERVED = /^CALLGATE_/;

/** `given`: `NAME` (as it is in ours) or `NAME=VALUE`, the last of a name holds. */
export function serverEnvironment(
  given: readonly string[],
  ours: Readonly<Record<string, string | undefined>>,
): Result<Environment> {
  const found: Record<string, string> = { PATH: "/usr/local/bin:/usr/bin:/bin" };
  for (const name of ALWAYS) {
    const value = ours[name];
    if (value !== undefined) found[name] = value;
  }
  for (const one of given) {
    const equals = one.indexOf("=");
    const name = equals < 0 ? one : one.slice(0, equals);
    if (!NAME.test(name)) return fault("a variable's name must be letters, digits and _, no digit first");
    if (RESERVED.test(name)) return fault(`${name} is callgate's own and not for a server`);
    const value = equals < 0 ? ours[name] : one.slice(equals + 1);
    if (value === undefined) return fault(`${name} is not in the environment`);
    if (value.includes("\0")) return fault(`the value of ${name} holds a NUL`);
    found[name] = value;
  }
  return ok(found);
}
