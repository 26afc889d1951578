import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, expect, it } from "vitest";
import { checkConnector } from "../../src/host/connector_check.ts";
import { ConnectorPlace } from "../connector/daemon_rig.ts";
import { cleanUp } from "../daemon/daemon.ts";

afterEach(cleanUp);

it("of a config whose secrets are all credentials of a service ends in warnings, outside of that service", async () => {
  const place = new ConnectorPlace(
    'kind = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"\ncredential = "key"\n',
  );
  const config = readFileSync(place.config, "utf8");
  writeFileSync(place.config, config.replace('secret_file = "me.secret"', 'secret_credential = "me"'));
  const { ok, lines } = await checkConnector(place.config);
  expect(ok).toBe(true);
  expect(lines.slice(0, -1)).toEqual([
    expect.stringContaining("a credential of the service"),
    expect.stringContaining("a credential of the service"),
  ]);
});
