// What is in the environment changes nothing of a turn: not where it goes, not what goes with it, not what is printed.

import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { ProviderTurn } from "../../../src/connector/backend.ts";
import { ANTHROPIC_VERSION } from "../../../src/connector/backends/anthropic.ts";
import { postMessages } from "../../../src/connector/backends/anthropic_sdk.ts";
import type { BackendKind } from "../../../src/connector/backends/settings.ts";
import { describeWith } from "../../needs.ts";
import { type Asked, backend, completedOf, KINDS, READ_TOOL, streams, TestProvider, take } from "./rig.ts";
import { STREAMS } from "./streams.ts";

const EVIL = "sk-from-the-environment";

/** Every variable that either SDK reads, with a value that would show. */
function environment(url: string): Record<string, string> {
  const headers = `x-evil: ${EVIL}\nAuthorization: Bearer ${EVIL}\nanthropic-version: 1999-01-01\nHost: evil.example`;
  return {
    ANTHROPIC_API_KEY: EVIL,
    ANTHROPIC_AUTH_TOKEN: EVIL,
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_CUSTOM_HEADERS: headers,
    ANTHROPIC_LOG: "debug",
    ANTHROPIC_PROFILE: "evil",
    ANTHROPIC_CONFIG_DIR: "/nonexistent",
    ANTHROPIC_WEBHOOK_SIGNING_KEY: EVIL,
    ANTHROPIC_ORGANIZATION_ID: EVIL,
    ANTHROPIC_WORKSPACE_ID: EVIL,
    ANTHROPIC_IDENTITY_TOKEN: EVIL,
    ANTHROPIC_OPEN_TELEMETRY: "true",
    ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE: "content",
    OPENAI_API_KEY: EVIL,
    OPENAI_ADMIN_KEY: EVIL,
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_ORG_ID: EVIL,
    OPENAI_PROJECT_ID: EVIL,
    OPENAI_WEBHOOK_SECRET: EVIL,
    OPENAI_CUSTOM_HEADERS: headers,
    OPENAI_LOG: "debug",
    HTTP_PROXY: url,
    HTTPS_PROXY: url,
    ALL_PROXY: url,
    http_proxy: url,
    https_proxy: url,
    NO_PROXY: "",
    no_proxy: "",
  };
}

let provider: TestProvider;
let evil: TestProvider;
beforeEach(async () => {
  [provider, evil] = [new TestProvider(), new TestProvider()];
  await Promise.all([provider.start(), evil.start()]);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  await Promise.all([provider.stop(), evil.stop()]);
});

/** In a process of its own, which has no other environment. Node's own warnings of it are not shown. */
async function turnInProcess(kind: BackendKind, baseUrl: string, env: Readonly<Record<string, string>>) {
  const script = join(import.meta.dirname, "one_turn.ts");
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ["--import", "tsx", script, kind, baseUrl],
    { env: { PATH: process.env["PATH"], HOME: "/nonexistent", NODE_NO_WARNINGS: "1", ...env } },
  );
  return { outcome: (JSON.parse(stdout) as ProviderTurn).outcome, stderr };
}

/** But for the port, which is another each time. */
const shape = ({ path, headers, body }: Asked) => ({ path, headers: { ...headers, host: "" }, body });

describe("the environment", () => {
  it("changes no request, and makes nothing print", async () => {
    const consoles = (["log", "info", "warn", "error", "debug"] as const).map((name) =>
      vi.spyOn(console, name),
    );
    for (const kind of KINDS) {
      provider.answers = [streams(STREAMS[kind])];
      const one = async () => {
        // One of the models that an SDK warns of.
        const request = { tools: [READ_TOOL], model: "claude-opus-4-5" };
        return completedOf(await take(await backend({ kind, baseUrl: provider.baseUrl(kind) }), request));
      };
      await one();
      for (const [name, value] of Object.entries(environment(`http://127.0.0.1:${evil.port}`)))
        vi.stubEnv(name, value);
      await one();
      vi.unstubAllEnvs();
      const [plain, stubbed] = provider.asked.splice(0).map(shape);
      expect(stubbed).toEqual(plain);
      expect(JSON.stringify(stubbed)).not.toContain(EVIL);
      expect(Object.keys(plain?.headers ?? {}).sort()).toEqual([
        "accept",
        "accept-encoding",
        ...(kind === "anthropic" ? ["anthropic-version"] : []),
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
      ]);
    }
    expect(evil.asked).toEqual([]);
    expect(consoles.flatMap(({ mock }) => mock.calls)).toEqual([]);
  });

  it("gives a process that starts with it no proxy, and prints nothing", async () => {
    for (const kind of KINDS) {
      provider.answers = [streams(STREAMS[kind])];
      const turn = await turnInProcess(kind, provider.baseUrl(kind), {
        NODE_USE_ENV_PROXY: "1",
        ...environment(`http://127.0.0.1:${evil.port}`),
      });
      expect(turn.outcome).toMatchObject({ Completed: { stop_reason: "ToolCalls" } });
      expect(turn.stderr).toBe("");
    }
    expect(provider.asked).toHaveLength(KINDS.length);
    expect(evil.asked).toEqual([]);
  });
});

describe("the version of Anthropic's API", () => {
  it("is that of the SDK", async () => {
    let version: string | null = null;
    const fetch = async (_url: unknown, init?: RequestInit): Promise<Response> => {
      version = new Headers(init?.headers).get("anthropic-version");
      return new Response(null, { status: 200 });
    };
    const params = { model: "m", max_tokens: 1, messages: [], stream: true } as const;
    await postMessages({ ...params, messages: [] }, fetch, "https://api.example.com");
    expect(version).toBe(ANTHROPIC_VERSION);
  });
});

describeWith(["openssl"], "a provider's certificate", () => {
  const directory = mkdtempSync(join(tmpdir(), "callgate-tls-"));
  const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  let server: Server;
  let baseUrl = "";
  let requests = 0;
  beforeAll(async () => {
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    const files = ["-keyout", key, "-out", cert];
    execFileSync("openssl", ["req", "-x509", "-nodes", ...kind, ...names, ...files], { stdio: "ignore" });
    server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, response) => {
      requests++;
      streams(STREAMS.anthropic)(response);
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    baseUrl = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    await new Promise((done) => server.close(done));
    rmSync(directory, { recursive: true });
  });

  it("that holds is enough for a turn", async () => {
    requests = 0;
    const { outcome } = await turnInProcess("anthropic", baseUrl, { NODE_EXTRA_CA_CERTS: cert });
    expect(outcome).toMatchObject({ Completed: { stop_reason: "ToolCalls" } });
    expect(requests).toBe(1);
  });

  it("that does not hold ends it before anything is sent, even where the environment says to take it", async () => {
    requests = 0;
    const { outcome } = await turnInProcess("anthropic", baseUrl, { NODE_TLS_REJECT_UNAUTHORIZED: "0" });
    expect(outcome).toEqual({
      Failed: {
        failure_kind: "TransportFailed",
        message:
          "no connection to the provider could be made (DEPTH_ZERO_SELF_SIGNED_CERT); nothing was sent",
      },
    });
    expect(requests).toBe(0);
  });
});
