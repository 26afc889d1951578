import { afterEach, expect, it } from "vitest";
import { BrokerSide, LOOK_MS } from "../../../../src/roles/mcp/serve/broker_side.ts";
import { cleanUp } from "../../../daemon/daemon.ts";
import { ManualTime, Scene } from "./rig.ts";

afterEach(cleanUp);

it("a front whose client goes while the tools are looked at again leaves no timer that keeps its process", async () => {
  const scene = await Scene.open();
  const time = new ManualTime();
  const side = await BrokerSide.connect({
    ...{ to: scene.way("agent"), session: "s", effects: time.effects },
    say: () => undefined,
  });
  if (!side.ok) throw new Error(side.fault);
  expect((await side.value.list()).ok).toBe(true);
  await time.passed(LOOK_MS);
  const look = side.value.list(); // the one that is under way
  await side.value.close();
  await look;
  await new Promise((turned) => setImmediate(turned));
  expect(time.waiting).toBe(0);
});
