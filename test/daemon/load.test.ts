import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { ECHO } from "./configs.ts";
import { cleanUp, Daemon, onCleanUp, run } from "./daemon.ts";

afterEach(cleanUp);

/** CI_FULL asks for ten times as many. */
const CALLS = process.env["CI_FULL"] === undefined ? 200_000 : 2_000_000;
const IDLE = 1000;
const BUSY = 64;

const CONFIG = `${ECHO.replace("[roles.agent]\n", "[roles.agent]\nconnections = 2000\n")}
[roles.agent.limits]
connects_per_second = 10000
calls_per_second = 1000000
`;

function child(file: string, args: readonly string[]): ChildProcess {
  const words = ["--import", "tsx", join(import.meta.dirname, file), ...args];
  const started = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  onCleanUp(() => started.kill("SIGKILL"));
  return started;
}

describe("under load", () => {
  it(
    `${IDLE} idle and ${BUSY} busy connections lose and cross no answer in ${CALLS} calls`,
    async () => {
      const daemon = await Daemon.start(CONFIG);
      const before = daemon.descriptors();
      const provider = child("load_provider.ts", [daemon.socket("tools")]);
      await once(provider.stdout!, "data");
      const words = [BUSY, 4, CALLS, IDLE].map(String);
      const callers = child("load_callers.ts", [daemon.socket("agent"), ...words]);
      const [told] = await Promise.all([text(callers.stdout!), once(callers, "close")]);
      expect(JSON.parse(told)).toEqual({ answered: CALLS, crossed: 0, failed: 0, lost: 0 });
      provider.kill("SIGKILL");
      await daemon.event("peer.disconnected", ({ role }) => role === "tools");
      const status = JSON.parse((await run(["status", "--json", "--socket", daemon.socket("operator")])).out);
      expect(status).toMatchObject({ running_calls: 0 });
      expect(daemon.count("call.ended", ({ status }) => status === "result")).toBe(CALLS);
      expect(daemon.count("log.dropped")).toBe(0);
      expect(daemon.descriptors()).toBeLessThanOrEqual(before + 2);
    },
    CALLS / 1000 + 240_000,
  );
});
