import { describe, expect, it } from "vitest";
import { parseConnectorAddress } from "../../src/connector/address.ts";

describe("a connector's address", () => {
  it.each([
    ["127.0.0.1:7000", "127.0.0.1", 7000],
    ["127.1.2.3", "127.1.2.3", 7811],
    [":7000", "127.0.0.1", 7000],
    ["[::1]:7000", "::1", 7000],
    ["[::1]", "::1", 7811],
    ["::1", "::1", 7811],
  ])("%s is %s, port %i", (text, host, port) => {
    expect(parseConnectorAddress(text)).toEqual({ ok: true, value: { host, port } });
  });

  it.each([
    "",
    "localhost:1",
    "0.0.0.0:1",
    "10.0.0.1:1",
    "127.0.0.1:0",
    "127.0.0.1:65536",
    "127.0.0.1:",
    "[::]:1",
    "::2",
    "127.1:1",
    "127.0.0.1:1x",
    "[fe80::1]:1",
    "http://127.0.0.1:1",
  ])("%j is none", (text) => {
    expect(parseConnectorAddress(text).ok).toBe(false);
  });
});
