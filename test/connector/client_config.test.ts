import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { ConnectorClient, type ConnectorOptions } from "../../src/connector/client.ts";
import { FakeConnector, SECRET } from "./fake_connector.ts";
import { INVOCATION } from "./golden_values.ts";

function options(port: number): ConnectorOptions {
  return { host: "127.0.0.1", port, secret: SECRET, maxFrameBytes: 65_536 };
}

describe("a client", () => {
  it("that finds nobody listening says so, and that nothing was sent", async () => {
    const fake = await FakeConnector.start(() => {});
    const { port } = fake;
    await fake.stop();
    const error = await new ConnectorClient(options(port))
      .execute(INVOCATION)
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ name: "ConnectorError", code: "Connection", mayHaveRun: false });
    expect(String(error)).toContain(`127.0.0.1:${port} (ECONNREFUSED)`);
  });

  it("shows nothing of its secret or key", () => {
    const client = new ConnectorClient(options(1));
    expect(inspect(client, { depth: 9, showHidden: true }) + JSON.stringify(client)).not.toMatch(
      /secret|key|<Buffer/,
    );
  });

  it.each<readonly [string, object]>([
    ["a name for a host", { host: "localhost" }],
    ["an address of another machine", { host: "10.0.0.1" }],
    ["any address", { host: "0.0.0.0" }],
    ["an address that only begins like loopback", { host: "127.0.0.1.example" }],
    ["loopback in IPv6's dress", { host: "::ffff:127.0.0.1" }],
    ["no host", { host: undefined }],
    ["port 0", { port: 0 }],
    ["port 65536", { port: 65_536 }],
    ["half a port", { port: 1.5 }],
    ["a port in text", { port: "7811" }],
    ["a frame bound too small for an answer", { maxFrameBytes: 6807 }],
    ["a frame bound past four bytes", { maxFrameBytes: 2 ** 32 }],
    ["no time", { responseTimeoutMs: 0 }],
    ["time that runs back", { responseTimeoutMs: -1 }],
    ["endless time in a number", { responseTimeoutMs: Number.POSITIVE_INFINITY }],
    ["no time at all", { responseTimeoutMs: null }],
    ["a short secret", { secret: "x".repeat(31) }],
    ["no secret", { secret: undefined }],
  ])("with %s is not made", (_, changed) => {
    const error = caughtFrom(() => new ConnectorClient({ ...options(7811), ...changed } as ConnectorOptions));
    expect(error).toMatchObject({ code: "InvalidConfig", mayHaveRun: false });
    expect(String(error)).not.toContain(SECRET);
  });

  it.each([
    { host: "127.0.0.1" },
    { host: "127.255.255.254" },
    { host: "::1" },
    { port: 1 },
    { port: 65_535 },
    { maxFrameBytes: 6808 },
    { maxFrameBytes: 2 ** 32 - 1 },
    { responseTimeoutMs: 1 },
    { responseTimeoutMs: undefined },
  ])("with %o is made", (changed) => {
    expect(new ConnectorClient({ ...options(7811), ...changed })).toBeInstanceOf(ConnectorClient);
  });
});

function caughtFrom(make: () => unknown): unknown {
  try {
    return make();
  } catch (error) {
    return error;
  }
}
