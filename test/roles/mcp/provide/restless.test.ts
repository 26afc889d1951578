import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { cleanUp } from "../../../daemon/daemon.ts";
import { describeWith } from "../../../needs.ts";
import { House, houseConfig } from "./house.ts";

// A server that uses its list of tools, or how deep its words nest, against the role that reads them.

afterEach(cleanUp);

const RESTLESS = fileURLToPath(new URL("restless_server.mjs", import.meta.url));
const NAMES = ["echo", "hold", "deepen", "deep"];

async function house(): Promise<House> {
  const home = await House.build(houseConfig(NAMES));
  await home.provide([RESTLESS]);
  await home.hears(/^in service: 4/);
  return home;
}

describeWith(["unshare", "setpriv", "mount", "setsid", "env"], "a restless server", () => {
  it("that says again and again that its tools have changed is read once more, not once for each time", async () => {
    const home = await house();
    await home.call("hold", { times: 8 });
    await home.hears(/list 3/);
    expect(await home.text("echo")).toBe("3");
  });

  it("whose tool nests deeper than can be written loses that tool, and the role goes on", async () => {
    const home = await house();
    await home.call("deepen");
    await home.hears(/the tool deep is left out: .*nested too deep/);
    await home.hears(/in service: 3 of 3/);
    expect(await home.text("echo")).toBe("2");
  });

  it("whose result nests deeper than can be written is told so", async () => {
    const home = await house();
    expect(await home.call("deep")).toMatchObject({
      status: "failed",
      message: expect.stringMatching(/what it gave is no result: it is nested too deep$/),
    });
  });
});
