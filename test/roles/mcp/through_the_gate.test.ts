import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterEach, describe, expect, it } from "vitest";
import { brokerToolName, clientToolName, type McpTool } from "../../../src/roles/mcp/definition.ts";
import { cleanUp, Place } from "../../daemon/daemon.ts";
import { clientOf, type Mode, overHttp, overStdio, raw } from "./clients.ts";
import { everything, filesystem, memory, type RealServer, sequentialThinking } from "./real_servers.ts";
import { WholePath } from "./whole_path.ts";

// Clients that people use before servers that people use: what they see through serve, broker and provide is what they
// see without.

afterEach(cleanUp);

const PREFIX = "srv.";

/** Of every tool; `alike` takes out of a result's text what is another each time, or the other server's. */
async function compare(
  own: RealServer,
  gated: RealServer,
  alike: (text: string) => string = (text) => text,
  differs: readonly string[] = [],
): Promise<void> {
  for (const server of [own, gated]) server.prepare?.();
  const env = Object.entries(gated.env ?? {}).map(([name, value]) => `${name}=${value}`);
  const path = await WholePath.open({ provides: [PREFIX] }, [process.execPath, ...gated.command], env);
  const url = await path.serveHttp();
  const direct = await overStdio(clientOf("auto"), own.command, own.env);
  for (const mode of ["legacy", "auto"] satisfies Mode[]) {
    const stdio = await overStdio(clientOf(mode), path.stdioWords);
    const http = await overHttp(clientOf(mode), url);
    for (const through of [stdio, http]) {
      expect(through.getNegotiatedProtocolVersion()).toBe(mode === "auto" ? "2026-07-28" : "2025-11-25");
      expect(await listed(through)).toEqual(expectedList(await listed(direct)));
      await compareCalls({ own, gated, direct, through, alike, differs });
    }
  }
}

interface Compared {
  readonly own: RealServer;
  readonly gated: RealServer;
  readonly direct: Client;
  readonly through: Client;
  readonly alike: (text: string) => string;
  readonly differs: readonly string[];
}

async function compareCalls({ own, gated, direct, through, alike, differs }: Compared): Promise<void> {
  for (const server of [own, gated]) server.prepare?.();
  const names = (await listed(direct)).map(({ name }) => name);
  expect(new Set(own.calls.map(([tool]) => tool))).toEqual(new Set(names));
  for (const [index, [tool, args]] of own.calls.entries()) {
    const expected = await raw(direct, "tools/call", { name: tool, arguments: args });
    const params = { name: shownName(tool), arguments: gated.calls[index]?.[1] };
    const given = (await raw(through, "tools/call", params)) as object;
    const { resultType: _, _meta, ...result } = given as Record<string, unknown>;
    if (differs.includes(tool)) expect(result, tool).toHaveProperty("content");
    else expect(alike(JSON.stringify(result)), tool).toBe(alike(JSON.stringify(expected)));
  }
}

function shownName(tool: string): string {
  return clientToolName(brokerToolName(PREFIX, tool));
}

async function listed(client: Client): Promise<readonly McpTool[]> {
  return ((await raw(client, "tools/list", {})) as { tools: readonly McpTool[] }).tools;
}

/** The gate lists by name, and knows of no tasks. */
function expectedList(tools: readonly McpTool[]): readonly McpTool[] {
  const seen = tools.map(({ execution: _, ...tool }: McpTool & { readonly execution?: unknown }) => {
    return { ...tool, name: shownName(tool.name) };
  });
  return seen.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

describe("clients in both modes, over stdio and HTTP, see the same tools and results through the gate, of the server", () => {
  it("everything", { timeout: 120_000 }, async () => {
    const alike = (text: string) =>
      text.replace(/\d{1,2}:\d\d:\d\d( [AP]M)?/g, "TIME").replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID");
    await compare(everything(), everything(), alike, ["get-env"]);
  });

  it("filesystem", { timeout: 120_000 }, async () => {
    const place = new Place("");
    const [own, gated] = [join(place.directory, "one"), join(place.directory, "two")];
    await compare(filesystem(own), filesystem(gated), (text) => text.replaceAll(gated, own));
  });

  it("memory", { timeout: 120_000 }, async () => {
    const place = new Place("");
    await compare(memory(join(place.directory, "one")), memory(join(place.directory, "two")));
  });

  it("sequential-thinking", { timeout: 120_000 }, async () => {
    await compare(sequentialThinking(), sequentialThinking());
  });
});
