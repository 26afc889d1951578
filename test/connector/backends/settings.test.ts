import { describe, expect, it } from "vitest";
import { type BackendSettings, checkSettings } from "../../../src/connector/backends/settings.ts";

function checked(settings: Partial<BackendSettings>) {
  return checkSettings({
    kind: "openai-chat",
    baseUrl: "https://api.example.com/v1",
    key: null,
    ...settings,
  });
}

function faultOf(settings: Partial<BackendSettings>): string {
  const result = checked(settings);
  return result.ok ? "" : result.fault;
}

describe("the settings of a backend", () => {
  it("name one endpoint, with or without a slash behind the base URL", () => {
    for (const [kind, baseUrl, endpoint] of [
      ["anthropic", "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"],
      ["anthropic", "https://gate.example/anthropic/", "https://gate.example/anthropic/v1/messages"],
      ["openai-responses", "https://api.openai.com/v1/", "https://api.openai.com/v1/responses"],
      ["openai-chat", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"],
      ["openai-chat", "http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"],
      ["openai-chat", "http://localhost:11434/v1", "http://localhost:11434/v1/chat/completions"],
    ] as const) {
      const result = checked({ kind, baseUrl });
      expect(result.ok && result.value.endpoint.href).toBe(endpoint);
    }
  });

  it("send nothing in clear to another machine, unless they say so", () => {
    for (const baseUrl of [
      "http://api.example.com/v1",
      "http://127.0.0.1.example.com/v1",
      "http://0.0.0.0:8080/v1",
      "http://localhost.example/v1",
      "http://192.168.1.2/v1",
    ]) {
      expect(faultOf({ baseUrl })).toContain("in clear");
      expect(faultOf({ baseUrl, allowPlainHttp: true })).toBe("");
    }
  });

  it("refuse an address that is none, or that holds more than one", () => {
    expect(faultOf({ baseUrl: "api.example.com" })).toContain("no URL");
    expect(faultOf({ baseUrl: "ftp://api.example.com" })).toContain("https://");
    expect(faultOf({ baseUrl: "https://user:word@api.example.com" })).toContain("user");
    expect(faultOf({ baseUrl: "https://api.example.com/v1?key=1" })).toContain("query");
    expect(faultOf({ baseUrl: "https://api.example.com/v1#a" })).toContain("query");
  });

  it("leave the headers that carry the key, or frame the request, to the program", () => {
    for (const name of [
      "Authorization",
      "x-api-key",
      "Host",
      "content-length",
      "Transfer-Encoding",
      "Cookie",
    ]) {
      expect(faultOf({ headers: { [name]: "a" } })).toContain("not yours");
    }
    expect(faultOf({ headers: { "a b": "x" } })).toContain("no token");
    expect(faultOf({ headers: { a: "x\r\nhost: evil" } })).toContain("visible");
    expect(faultOf({ headers: { a: "x", A: "y" } })).toContain("twice");
    expect(faultOf({ headers: { "openai-organization": "org-1" } })).toBe("");
  });

  it("bound what is waited for and what is read", () => {
    for (const settings of [
      { connectTimeoutMs: 0 },
      { silenceTimeoutMs: 2 ** 31 },
      { retriesMax: 11 },
      { retryWaitMsMax: -1 },
      { answerBytesMax: 0.5 },
    ]) {
      expect(faultOf(settings)).toContain(Object.keys(settings)[0]);
    }
  });
});
