import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, describe, expect, inject, it } from "vitest";
import { ConnectorClient, invocationOf, type ProviderRequest } from "../../src/library_connector.ts";
import {
  loadLibc,
  openReplayStore,
  type ProviderBackend,
  serve,
  systemClock,
  TransportService,
} from "../../src/library_connector_service.ts";
import { blocks, ROOT } from "../docs/console.ts";

/** Tells each module that is loaded, and CommonJS ones when the process ends. */
const HOOK = `
import { writeSync } from "node:fs";
export async function load(url, context, next) {
  writeSync(1, url + "\\n");
  return next(url, context);
}`;
const TELLING = `
import { writeSync } from "node:fs";
import { Module, register } from "node:module";
register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(HOOK)}`)});
process.on("exit", () => writeSync(1, Object.keys(Module._cache).join("\\n") + "\\n"));`;

/** What importing an entry of the compiled package loads: its own files from the package on, others whole. */
async function loadedBy(entry: string): Promise<readonly string[]> {
  const compiled = inject("compiled");
  if ("fault" in compiled) throw new Error(compiled.fault);
  const url = pathToFileURL(join(compiled.directory, "src", entry)).href;
  const node = ["--import", `data:text/javascript,${encodeURIComponent(TELLING)}`, "--input-type=module"];
  const { stdout } = await promisify(execFile)(process.execPath, [...node, "-e", `await import("${url}")`]);
  const root = pathToFileURL(compiled.directory).href;
  return stdout
    .split("\n")
    .filter((line) => line.includes("/") && !line.includes("[eval"))
    .map((line) => line.replace(`${root}/`, ""));
}

describe("the entry for callers", () => {
  it("loads contract, envelope and client, and no service, store, provider or library of others", async () => {
    const urls = await loadedBy("library_connector.js");
    expect(urls).toContain("src/connector/client.js"); // the hook sees what is loaded
    const service = /serv|admission|claims|replay|backend|start_error|published|json_schema/;
    expect(
      urls.filter((url) => !/^src\/(library_connector|base\/\w+|connector\/\w+)\.js$/.test(url)),
    ).toEqual([]);
    expect(urls.filter((url) => service.test(url))).toEqual([]);
  });
});

const directories: string[] = [];

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

const SECRET = "library-connection-secret-0123456789abcdef";
const NOW_MS = 1_760_000_000_000;
const REQUEST: Omit<ProviderRequest, "schema_id"> = {
  request_id: "request-0001",
  conversation_id: "conversation-0001",
  model: "echo",
  instructions: "Say it again.",
  input: [{ UserText: { text: "Good morning" } }],
  reasoning_effort: null,
  output_format_name: null,
  tools: [],
  tool_choice: "auto",
  parallel_tool_calls: false,
  output_schema_json: null,
  max_output_tokens: 100,
};

class EchoBackend implements ProviderBackend {
  readonly transport = "echo_v1";
  turns = 0;

  async execute(invocation: Parameters<ProviderBackend["execute"]>[0]) {
    this.turns += 1;
    const said = invocation.request.input.map((item) => ("UserText" in item ? item.UserText.text : ""));
    const usage = {
      ...{ input_tokens: null, output_tokens: null },
      ...{ reasoning_output_tokens: null, cached_input_tokens: null },
    };
    return {
      events: [{ TextDelta: { text: said.join("") } }],
      outcome: { Completed: { provider_response_id: null, stop_reason: "EndTurn" as const, usage } },
    };
  }
}

/** A connector in this process, over a store on disk. */
async function started(directory: string, backend: ProviderBackend) {
  const clock = { ...systemClock(), nowMs: () => NOW_MS };
  const log = () => {};
  const config = {
    bind: "127.0.0.1",
    max_frame_bytes: 65_536,
    max_connections: 8,
    socket_timeout_ms: 10_000,
    expiry_horizon_ms: 300_000,
    retention_ms: 86_400_000,
    callers: [
      {
        caller_runtime_id: "caller-alpha",
        connection_secret: SECRET,
        allowed_models: ["echo"],
        max_concurrent_requests: 2,
        max_payload_bytes: 16_384,
        max_output_tokens: 1000,
      },
    ],
  };
  const libc = await loadLibc();
  const service = await TransportService.open({
    ...{ config, backend, clock, log },
    store: () => openReplayStore({ directory, libc, clock, log }),
    random: (bytes) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))),
  });
  if (!service.ok) throw new Error(JSON.stringify(service.fault));
  const server = await serve(service.value, { clock, log });
  if (!server.ok) throw new Error(JSON.stringify(server.fault));
  const stop = async () => {
    await server.value.close(1000);
    await service.value.close();
  };
  return { port: server.value.port, stop };
}

describe("a program over both entries", () => {
  it("takes a turn, fetches its answer again after a restart, and never enters the provider twice", async () => {
    const directory = join(mkdtempSync(join(tmpdir(), "callgate-library-")), "turns");
    directories.push(join(directory, ".."));
    const backend = new EchoBackend();
    const expiresAtUnixMs = NOW_MS + 60_000;
    const invocation = invocationOf({ caller: "caller-alpha", expiresAtUnixMs, request: REQUEST });
    const ask = async () => {
      const connector = await started(directory, backend);
      const { port, stop } = connector;
      const client = new ConnectorClient({ host: "127.0.0.1", port, secret: SECRET, maxFrameBytes: 65_536 });
      return client.execute(invocation).finally(stop);
    };
    const first = await ask();
    expect(first.disposition).toMatchObject({
      Transported: { events: [{ sequence: 0, payload: { TextDelta: { text: "Good morning" } } }] },
    });
    expect(await ask()).toEqual(first);
    expect(backend.turns).toBe(1);
  });

  it("is told nothing by a connector that does not know its secret", async () => {
    const directory = join(mkdtempSync(join(tmpdir(), "callgate-library-")), "turns");
    directories.push(join(directory, ".."));
    const backend = new EchoBackend();
    const { port, stop } = await started(directory, backend);
    const client = new ConnectorClient({
      ...{ host: "127.0.0.1", port, maxFrameBytes: 65_536 },
      secret: `${SECRET}-another`,
    });
    const expiresAtUnixMs = NOW_MS + 60_000;
    const invocation = invocationOf({ caller: "caller-alpha", expiresAtUnixMs, request: REQUEST });
    await expect(client.execute(invocation).finally(stop)).rejects.toMatchObject({ code: "NoAnswer" });
    expect(backend.turns).toBe(0);
  });

  it("is what docs/connector.md shows, run as it stands there against a connector of this test", async () => {
    const compiled = inject("compiled");
    if ("fault" in compiled) throw new Error(compiled.fault);
    const home = mkdtempSync(join(tmpdir(), "callgate-library-"));
    directories.push(home);
    const { port, stop } = await started(join(home, "turns"), new EchoBackend());
    const [shown = ""] = blocks(readFileSync(join(ROOT, "docs/connector.md"), "utf8"), "js");
    const here = [
      [
        '"callgate/connector"',
        `"${pathToFileURL(join(compiled.directory, "src/library_connector.js")).href}"`,
      ],
      ["port: 7811", `port: ${port}`],
      ['caller: "me"', 'caller: "caller-alpha"'],
      ['model: "gpt-oss"', 'model: "echo"'],
      ["Date.now()", String(NOW_MS)],
    ] as const;
    for (const [theirs] of here) expect(shown).toContain(theirs);
    const program = here.reduce((text, [theirs, ours]) => text.replace(theirs, ours), shown);
    writeFileSync(join(home, "program.mjs"), program);
    writeFileSync(join(home, "me.secret"), `${SECRET}\n`);
    const run = promisify(execFile)(process.execPath, ["program.mjs"], { cwd: home });
    const { stdout } = await run.finally(stop);
    expect(stdout).toMatch(/^Say hello\.\n/);
    expect(stdout).toContain("stop_reason: 'EndTurn'");
  });
});
