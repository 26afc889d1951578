// The process that holds the key, and what Node itself would show of it.

import { afterEach, describe, expect, it } from "vitest";
import { exposureOf } from "../../src/host/exposure.ts";
import { cleanUp } from "../daemon/daemon.ts";
import { Connector, ConnectorPlace } from "./daemon_rig.ts";

afterEach(cleanUp);

const BACKEND = 'kind = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\n';

describe("a connector", () => {
  it("opens no debugger to every user of the machine where somebody sends it SIGUSR1", async () => {
    const connector = await Connector.start(new ConnectorPlace(BACKEND));
    connector.child.kill("SIGUSR1");
    await connector.event("connector.not_reloaded", ({ why }) => String(why).includes("no debugger"));
    connector.child.kill("SIGTERM");
    expect(await connector.ended).toBe(0);
    expect(await connector.errors).toBe("");
  });

  it("does not start where Node would write its key to standard error, or has its debugger open", async () => {
    for (const env of [{ NODE_DEBUG: "http" }, { NODE_OPTIONS: "--inspect=127.0.0.1:0" }]) {
      const place = new ConnectorPlace(`${BACKEND}credential_file = "key"\n`);
      const connector = await Connector.start(place, { ready: false, env });
      expect(await connector.ended).toBe(78);
      expect(await connector.errors).toMatch(/callgate: (?:NODE_DEBUG is set|Node's debugger is open)/);
    }
  });
});

it("an environment without a word of debugging exposes nothing", () => {
  expect(exposureOf(undefined, undefined)).toBeUndefined();
  expect(exposureOf("", undefined)).toBeUndefined();
});
