import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CONNECTOR_OPTIONS } from "../../src/cli/connector_options.ts";
import { parseConnectorAddress } from "../../src/connector/address.ts";
import type { ConnectorConfig } from "../../src/host/connector_config.ts";
import { compileConnectorConfig } from "../../src/host/connector_config.ts";

const BACKEND = '[backend]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:8080/v1"\n';
const CALLER =
  '[[callers]]\nid = "me"\nsecret_file = "me.secret"\nallowed_models = ["m"]\nmax_output_tokens = 10\n';
const PATH = "/etc/callgate/connector.toml";

function compiled(text: string): ConnectorConfig {
  const config = compileConnectorConfig(text, PATH);
  if (!config.ok) throw new Error(JSON.stringify(config.fault));
  return config.value;
}

/** `LINE: MESSAGE` of each fault. */
function faults(text: string): readonly string[] {
  const config = compileConnectorConfig(text, PATH);
  return config.ok ? [] : config.fault.map(({ line, message }) => `${line}: ${message}`);
}

describe("a connector's config", () => {
  it("needs a backend and a caller, and has a default for everything else", () => {
    const { settings, backend, callers } = compiled(BACKEND + CALLER);
    expect(settings).toEqual({
      bind: "127.0.0.1",
      port: 7811,
      stateDir: "/var/lib/callgate-connector",
      maxConnections: 64,
      socketTimeoutMs: 10_000,
      expiryHorizonMs: 300_000,
      retentionMs: 86_400_000,
      executionLimitMs: 900_000,
      maxFrameBytes: undefined,
      drainTimeoutMs: 30_000,
      logLevel: "info",
    });
    expect(backend).toMatchObject({
      key: undefined,
      settings: { kind: "openai-chat", baseUrl: "http://127.0.0.1:8080/v1", keyHeader: "authorization" },
    });
    expect(callers).toMatchObject([
      {
        id: "me",
        secret: { kind: "file", path: "/etc/callgate/me.secret" },
        allowedModels: ["m"],
        maxConcurrentRequests: 4,
        maxPayloadBytes: 1_048_576,
        maxOutputTokens: 10,
      },
    ]);
  });

  it("has the defaults that commands which ask a connector go by", () => {
    const { settings, callers } = compiled(BACKEND + CALLER);
    const fallback = (flag: string) =>
      CONNECTOR_OPTIONS.find(({ flags }) => flags.startsWith(flag))?.fallback;
    expect(fallback("--max-payload-bytes")?.value).toBe(callers[0]?.maxPayloadBytes);
    expect(Number(fallback("--expiry-horizon")?.value) * 1000).toBe(settings.expiryHorizonMs);
    expect(parseConnectorAddress("127.0.0.1")).toMatchObject({ value: { port: settings.port } });
  });

  it.each([
    ["anthropic", "https://api.anthropic.com", "x-api-key"],
    ["openai-responses", "https://api.openai.com/v1", "authorization"],
  ])("of %s knows where that is, and which header its key goes in", (kind, baseUrl, keyHeader) => {
    const { backend } = compiled(`[backend]\nkind = "${kind}"\ncredential = "k"\n${CALLER}`);
    expect(backend).toMatchObject({
      settings: { baseUrl, keyHeader },
      key: { kind: "credential", name: "k" },
    });
  });

  it.each([
    ["", "1: no backend is configured"],
    [BACKEND, "1: no caller is configured"],
    [
      `${CALLER}[backend]\nkind = "openai"\n`,
      '7: kind must be one of "anthropic", "openai-responses", "openai-chat", not "openai"',
    ],
    [`${CALLER}[backend]\nkind = "openai-chat"\n`, "6: openai-chat needs base_url"],
    [`${CALLER}[backend]\nkind = "anthropic"\n`, "6: anthropic needs a key"],
    [
      `${CALLER}[backend]\nkind = "anthropic"\nkey = "sk-secret"\n`,
      '8: unknown key "key" in [backend]; a key is never in this file',
    ],
    [`${CALLER}${BACKEND}credential = "../x"\n`, "9: credential must be the name of a credential"],
    [`${CALLER}${BACKEND}credential = "x"\ncredential_file = "y"\n`, "6: a backend has one key"],
    [`${CALLER}${BACKEND}headers = { host = "x" }\n`, "8: the header host is not yours to set"],
    [`${CALLER}${BACKEND}headers = { x-a = 1 }\n`, 'the header "x-a" must be text in quotes'],
    [
      `${CALLER}[backend]\nkind = "openai-chat"\nbase_url = "http://10.0.0.1/v1"\n`,
      "8: the base URL is http to another machine",
    ],
    [
      `${CALLER}[backend]\nkind = "openai-chat"\nbase_url = "http://u:p@127.0.0.1/v1"\n`,
      "8: the base URL must hold no user",
    ],
    [`${CALLER}[backend]\nkind = "openai-chat"\nbase_url = "local"\n`, "8: the base URL is no URL"],
    [
      `${BACKEND}${CALLER}secret = "x"\n`,
      '9: unknown key "secret" in a caller; a secret is never in this file',
    ],
    [`${BACKEND}${CALLER}secret_credential = "x"\n`, "4: a caller has one secret"],
    [
      `${BACKEND}${CALLER.replace(/secret_file.*\n/, "")}`,
      "4: a caller needs secret_file or secret_credential",
    ],
    [`${BACKEND}${CALLER.replace('["m"]', "[]")}`, "7: allowed_models must not be empty"],
    [`${BACKEND}${CALLER.replace(/max_output.*\n/, "")}`, '4: a caller needs "max_output_tokens"'],
    [`${BACKEND}${CALLER.replace('"me"', '" me"')}`, "5: id must be 1 to 256 bytes"],
    [`${BACKEND}${CALLER}${CALLER}`, '10: two callers have the id "me"'],
    [
      `${BACKEND}${CALLER}max_payload_bytes = 4095\n`,
      "9: max_payload_bytes must be a whole number from 4096",
    ],
    [
      `${BACKEND}${CALLER}[connector]\nbind = "0.0.0.0"\n`,
      "10: bind must be an address of this machine alone",
    ],
    [
      `${BACKEND}${CALLER}[connector]\nbind = "localhost"\n`,
      "10: bind must be an address of this machine alone",
    ],
    [`${BACKEND}${CALLER}[connector]\nport = 65536\n`, "10: port must be a whole number from 0 to 65535"],
    [
      `${BACKEND}${CALLER}[connector]\nretention = "1m"\n`,
      "10: retention must not be shorter than expiry_horizon",
    ],
    [`${BACKEND}${CALLER}[roles.agent]\n`, '9: unknown key "roles" in the file; that is the broker\'s'],
    [`${BACKEND}${CALLER}[log]\nlevel = "loud"\n`, "10: level must be one of"],
    ["[backend\n", "2: not valid TOML"],
  ])("that is wrong is refused with the line: %j", (text, says) => {
    expect(faults(text).join("\n")).toContain(says);
  });

  it("is told all its faults at once, each once, and quotes no key", () => {
    const found = faults(
      `${BACKEND}api_key = "sk-canary"\n${CALLER}secret = "canary-secret"\n[connector]\nport = "x"\n`,
    );
    expect(found).toHaveLength(3);
    expect(found.join()).not.toContain("canary");
  });
});

describe("examples/connector.toml", () => {
  const text = readFileSync(new URL("../../examples/connector.toml", import.meta.url), "utf8");
  const lines = text.split("\n");
  const settings = lines.flatMap((line, index) => {
    const [, mark, key = "", value = ""] = /^(#?)([a-z][a-z_]*) = (.+)$/.exec(line) ?? [];
    return key === "" ? [] : [{ index, key, value, commented: mark === "#" }];
  });

  it("compiles, and states every key that there is", () => {
    compiled(text);
    // What a misspelt key is told are all that are known.
    const known = ["[connector]", "[backend]", "[log]", "[[callers]]"].flatMap((header) => {
      const at = lines.indexOf(header);
      const message = faults(lines.toSpliced(at + 1, 0, "zzzzzzzzzzzzzzzzzzzz = 1").join("\n"))[0] ?? "";
      return /known keys: (.*)$/.exec(message)?.[1]?.split(", ") ?? [];
    });
    expect(known.length).toBeGreaterThanOrEqual(30);
    expect(settings.map(({ key }) => key).toSorted()).toEqual(known.toSorted());
  });

  it("is right about every default: taking the # away changes nothing", () => {
    const ALONE = ["credential_file", "secret_file"]; // beside the other, which is set
    const before = compiled(text);
    const strip = ({ at: _, backend, callers, ...rest }: ConnectorConfig) => ({
      ...rest,
      backend: { ...backend.settings, key: backend.key?.kind },
      callers: callers.map(({ at: __, secret, ...caller }) => ({ ...caller, secret: secret.kind })),
    });
    const defaults = settings.filter(({ commented, key }) => commented && !ALONE.includes(key));
    expect(defaults.length).toBeGreaterThan(15);
    for (const { index, key, value } of defaults) {
      const after = strip(compiled(lines.with(index, `${key} = ${value}`).join("\n")));
      // Where the config has none, the backend and the service have one of their own: compared with theirs below.
      expect({ ...after, settings: { ...after.settings, maxFrameBytes: undefined } }).toMatchObject({
        ...strip(before),
      });
    }
  });

  it("is right about the defaults of the backend, and about the frame that its callers need", async () => {
    const { checkSettings } = await import("../../src/connector/backends/settings.ts");
    const { frameBytesForPayload } = await import("../../src/connector/frame_arithmetic.ts");
    const given = lines.map((line) =>
      /^#(?!credential_file|secret_file)([a-z_]+ = )/.test(line) ? line.slice(1) : line,
    );
    const whole = compiled(given.join("\n"));
    const bare = compiled(text);
    const checked = ({ backend }: ConnectorConfig) => checkSettings({ ...backend.settings, key: null });
    expect(checked(whole)).toEqual(checked(bare));
    expect(whole.settings.maxFrameBytes).toBe(frameBytesForPayload(bare.callers[0]?.maxPayloadBytes ?? 0));
  });
});
