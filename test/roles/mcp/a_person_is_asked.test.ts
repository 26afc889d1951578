import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cleanUp } from "../../daemon/daemon.ts";
import { clientOf, type Mode, overHttp, overStdio } from "./clients.ts";
import { everything } from "./real_servers.ts";
import { TOKEN, WholePath } from "./whole_path.ts";

// Calls that a person is asked about, along the whole path: clients whose patience ends before the person answers, clients
// that come again, and clients that want it no more.

afterAll(cleanUp);

const TOOL = "srv.echo";
const IMPATIENT_MS = 500;

let path: WholePath;
let url: string;

beforeAll(async () => {
  path = await WholePath.open({ provides: ["srv."], asked: [TOOL] }, [
    process.execPath,
    ...everything().command,
  ]);
  url = await path.serveHttp();
}, 60_000);

function textOf(result: unknown): string {
  return (result as { content: readonly { text: string }[] }).content.map(({ text }) => text).join("\n");
}

const call = (message: string) => ({ name: "srv__echo", arguments: { message } });

const WAYS = (["legacy", "auto"] satisfies Mode[]).flatMap((mode) => [
  [mode, "stdio", () => overStdio(clientOf(mode), path.stdioWords)] as const,
  [mode, "HTTP", () => overHttp(clientOf(mode), url)] as const,
]);

describe.each(WAYS)("a client (%s, over %s)", (mode, way, connect) => {
  let client: Client;

  beforeAll(async () => {
    client = await connect();
    await client.listTools();
  }, 30_000);

  it("whose time is over asks again, joins its call, and it runs once", { timeout: 30_000 }, async () => {
    const before = (await path.calls(TOOL)).length;
    const asked = call(`late ${mode} ${way}`);
    await expect(client.callTool(asked, { timeout: IMPATIENT_MS })).rejects.toThrow(/timed out/i);
    await expect(client.callTool(asked, { timeout: IMPATIENT_MS })).rejects.toThrow(/timed out/i);
    const heard = client.callTool(asked, { timeout: 20_000 });
    await path.decide("approve");
    expect(textOf(await heard)).toBe(`Echo: late ${mode} ${way}`);
    expect((await path.calls(TOOL)).length).toBe(before + 1);
  });

  it("hears of a refusal what happened and what would help", { timeout: 30_000 }, async () => {
    const heard = client.callTool(call(`no ${mode} ${way}`), { timeout: 20_000 });
    await path.decide("refuse");
    const result = await heard;
    expect(result.isError).toBe(true);
    expect(textOf(result)).toBe(
      "callgate denied `srv.echo` (approval_refused). Nothing ran. A person looked at this call and refused it. Do not ask for the same again: tell the user what you wanted to do and why.",
    );
  });
});

describe.each(WAYS.filter(([mode, way]) => mode === "legacy" || way === "stdio"))(
  "a client (%s, over %s) that wants its call no more",
  (mode, way, connect) => {
    it("withdraws the question with it", { timeout: 30_000 }, async () => {
      const client = await connect();
      const abort = new AbortController();
      const heard = client.callTool(call(`cancel ${mode} ${way}`), { signal: abort.signal });
      await path.question();
      abort.abort("the user said stop");
      await expect(heard).rejects.toThrow();
      while ((await path.questions()).length > 0);
      expect((await path.calls(TOOL))[0]?.status).not.toBe("result");
    });
  },
);

describe("a client of 2026-07-28 is told to come again, as often as it takes", () => {
  it("and finds the answer of the call that ran once", { timeout: 30_000 }, async () => {
    const quick = await path.serveHttp(["--wait", "1"]);
    const before = (await path.calls(TOOL)).length;
    let state: string | undefined;
    for (let round = 1; round <= 3; round += 1) {
      const { result } = await post(quick, round, state);
      expect(result).toMatchObject({ resultType: "input_required", requestState: expect.any(String) });
      expect(result).not.toHaveProperty("inputRequests"); // it has not said that it can ask its user
      state = result?.requestState;
    }
    await path.decide("approve");
    const { result } = await post(quick, 4, state);
    expect(textOf(result)).toBe("Echo: rounds");
    expect((await path.calls(TOOL)).length).toBe(before + 1);
  });
});

interface Answered {
  readonly result?: { readonly requestState?: string };
}

async function post(to: string, id: number, requestState: string | undefined): Promise<Answered> {
  const version = "2026-07-28";
  const response = await fetch(to, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${TOKEN}`,
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": version,
      "Mcp-Method": "tools/call",
      "Mcp-Name": "srv__echo",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id,
      method: "tools/call",
      params: {
        ...call("rounds"),
        ...(requestState === undefined ? {} : { requestState }),
        _meta: {
          "io.modelcontextprotocol/protocolVersion": version,
          "io.modelcontextprotocol/clientInfo": { name: "raw", version: "0" },
          "io.modelcontextprotocol/clientCapabilities": {},
        },
      },
    }),
  });
  return (await response.json()) as Answered;
}
