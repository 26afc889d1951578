// A process that was started with inherited descriptors: takes them, serves what it took, and
// prints one line of JSON about it.

import { readFileSync } from "node:fs";

import { takeInherited } from "../../src/host/activation.ts";
import { loadLibc } from "../../src/host/libc.ts";
import { listenInherited } from "../../src/host/listen.ts";

const paths = new Map(JSON.parse(process.argv[2] ?? "") as [string, string][]);
const taken = takeInherited(process.env, process.pid, paths, await loadLibc());
const left = Object.keys(process.env).filter((name) => name.startsWith("LISTEN_"));
const O_CLOEXEC = 0o2000000;
const serving: string[] = [];
const stops: (() => void)[] = [];
for (const inherited of taken.ok ? taken.value.byRole.values() : []) {
  const listener = await listenInherited(inherited, {
    role: inherited.role,
    mode: 0o755,
    gid: undefined,
    backlog: 511,
    onConnection: (socket) => socket.end(inherited.role),
    onAcceptFault: () => undefined,
  });
  const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${inherited.fd}`, "utf8"))?.[1];
  const heirs = (Number.parseInt(flags ?? "0", 8) & O_CLOEXEC) === 0 ? "for children too" : "for us alone";
  serving.push(listener.ok ? `${inherited.role} ${inherited.fd} ${heirs}` : listener.fault.code);
  if (listener.ok) stops.push(listener.value.close);
}
process.stdout.write(
  `${JSON.stringify({ fault: taken.ok ? undefined : taken.fault.code, serving, left })}\n`,
);
process.on("SIGTERM", () => {
  for (const stop of stops) stop();
});
