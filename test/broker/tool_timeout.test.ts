// How long a provider has: from the moment it is given the call, and not while a human is asked, by this broker or
// by one behind it, within a cap.

import { describe, expect, it } from "vitest";
import { Approver, ASKING, put } from "./approvals_rig.ts";
import { type Rig, withRig } from "./rig.ts";
import type { Served } from "./rig_peer.ts";

const TIMEOUT_MS = 10_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

const LOOKS = ASKING.replace("[tools.look]", `[tools.look]\ntimeout = "${TIMEOUT_MS / 1000}s"`);
/** `files` is a broker itself. */
const BEHIND = ASKING.replace("[roles.files]\n", "[roles.files]\nbroker = true\n");

function asksHuman(rig: Rig, request: Served, forMs: number): void {
  const expires = BigInt(Math.max(0, rig.clock.nowMs() + forMs));
  request.answer({ status: "pending_approval", approval: "theirs", expires }, false);
}

describe("while this broker asks a human", () => {
  it("the timeout does not run; the provider has all of it from the release on", () =>
    withRig(LOOKS, async (rig) => {
      const [agent, files, operator] = [rig.peer("agent"), rig.peer("files"), new Approver(rig)];
      const reply = await put(rig, agent, "look", {});
      await rig.pass(10 * MINUTE_MS);
      await operator.letThrough();
      expect(files.requests).toHaveLength(1);
      await rig.pass(TIMEOUT_MS - 1);
      expect(reply.end).toBe("nothing yet");
      await rig.pass(1);
      expect(reply.end).toBe("failed timeout");
    }));
});

describe("while a broker behind this one asks a human", () => {
  it("its answer in time is the call's, though the tool's timeout has long been over", () =>
    withRig(BEHIND, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = await put(rig, agent, "read", { path: "a" });
      const request = files.take();
      asksHuman(rig, request, 30 * MINUTE_MS);
      await rig.pass(29 * MINUTE_MS);
      request.result("approved");
      await rig.settle();
      expect(reply.seen).toEqual(["part: pending_approval", "result public approved"]);
      await rig.pass(DAY_MS); // no timer of the call is left that could end it again
      expect(reply.finals).toBe(1);
    }));

  it("question after question, all of them together stop the timeout for a day and no longer", () =>
    withRig(BEHIND, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = await put(rig, agent, "read", { path: "a" });
      const request = files.take();
      for (let asked = 0; asked < 30; asked += 1) {
        asksHuman(rig, request, DAY_MS);
        await rig.pass(DAY_MS / 30);
      }
      await rig.pass(TIMEOUT_MS - 1);
      expect(reply.end).toBe("nothing yet");
      await rig.pass(1);
      expect(reply.end).toBe("failed timeout");
    }));

  it.each([
    ["is over already", -MINUTE_MS],
    ["never ends", Number.MAX_SAFE_INTEGER - DAY_MS * 40_000],
  ])("a question whose time %s stops it within the same bounds", (_, forMs) =>
    withRig(BEHIND, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = await put(rig, agent, "read", { path: "a" });
      asksHuman(rig, files.take(), forMs);
      await rig.pass(Math.min(Math.max(0, forMs), DAY_MS) + TIMEOUT_MS - 1);
      expect(reply.end).toBe("nothing yet");
      await rig.pass(1);
      expect(reply.end).toBe("failed timeout");
    }),
  );

  it("it stands still for that call alone", () =>
    withRig(BEHIND, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const asked = await put(rig, agent, "read", { path: "a" });
      const other = await put(rig, agent, "read", { path: "b" });
      asksHuman(rig, files.take(), MINUTE_MS);
      await rig.pass(TIMEOUT_MS);
      expect([asked.end, other.end]).toEqual(["nothing yet", "failed timeout"]);
    }));

  it("is no way out for a provider that is no broker", () =>
    withRig(ASKING, async (rig) => {
      const [agent, files] = [rig.peer("agent"), rig.peer("files")];
      const reply = await put(rig, agent, "read", { path: "a" });
      asksHuman(rig, files.take(), MINUTE_MS);
      await rig.settle();
      expect(reply.end).toBe("failed provider");
    }));
});
