import { describe, expect, it } from "vitest";
import { isLoopbackHost } from "../../src/base/loopback.ts";

describe("a URL to this machine", () => {
  it.each([
    "http://localhost:1/",
    "http://127.0.0.1/",
    "http://127.1/",
    "http://0x7f000001/",
    "http://127.255.0.9/",
    "http://[::1]:8080/v1",
  ])("is %s", (url) => {
    expect(isLoopbackHost(new URL(url).hostname)).toBe(true);
  });

  it.each([
    "http://127.0.0.1.example/",
    "http://localhost.example/",
    "http://agent.localhost/",
    "http://0.0.0.0/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://10.0.0.1/",
    "http://128.0.0.1/",
    "http://127.0.0.1@example.com/",
  ])("is not %s", (url) => {
    expect(isLoopbackHost(new URL(url).hostname)).toBe(false);
  });
});
