import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, describe, expect, it } from "vitest";
import { clientTool, clientToolName, type McpTool } from "../../../../src/roles/mcp/definition.ts";
import { cleanUp, onCleanUp } from "../../../daemon/daemon.ts";
import { everything, filesystem, memory, type RealServer, sequentialThinking } from "../real_servers.ts";
import { House, houseConfig } from "./house.ts";

// Servers that people use, asked directly and through the broker: the same tools, the same results.

afterEach(cleanUp);

const AS_IT_CAME = {
  "~standard": { version: 1 as const, vendor: "test", validate: (value: unknown) => ({ value }) },
};

async function direct({ command, env }: RealServer): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StdioClientTransport({
    ...{ command: process.execPath, args: [...command], stderr: "ignore" },
    env: { ...env },
  });
  await client.connect(transport);
  onCleanUp(() => client.close());
  return client;
}

/** Of every tool of the server; `differs`: those whose result is another each time. */
async function compare(
  server: RealServer,
  through: RealServer,
  differs: readonly string[] = [],
  alike: (text: string) => string = (text) => text,
): Promise<void> {
  for (const one of [server, through]) one.prepare?.();
  const home = await House.build(houseConfig([]));
  const words = Object.entries(through.env ?? {}).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
  home.run([...words, "--", process.execPath, ...through.command]);
  await home.hears(/in service: 0 of/);
  const waiting = await home.tools(home.operator);
  for (const { name } of waiting) await home.accept(name);
  const client = await direct(server);
  const listed = (await client.request({ method: "tools/list" }, AS_IT_CAME)) as {
    readonly tools: readonly McpTool[];
  };
  const shown = await home.tools();
  const expected = listed.tools.map((tool) => {
    const { execution: _, ...seen } = tool as McpTool & { readonly execution?: unknown };
    return { ...seen, name: clientToolName(`mcp.${tool.name}`) };
  });
  expect(shown.map(clientTool)).toEqual(expected.toSorted((a, b) => (a.name < b.name ? -1 : 1)));
  expect(new Set(server.calls.map(([tool]) => tool))).toEqual(new Set(listed.tools.map(({ name }) => name)));
  for (const [index, [name, args]] of server.calls.entries()) {
    const own = await client
      .request({ method: "tools/call", params: { name, arguments: args } }, AS_IT_CAME)
      .then(
        (result) => result,
        (error: Error) => error.message,
      );
    const answer = await home.call(name, through.calls[index]?.[1]);
    if (typeof own === "string") expect(answer.status).toBe("failed");
    else if (answer.status !== "result") throw new Error(JSON.stringify(answer, (_, one) => String(one)));
    else if (!differs.includes(name)) {
      const { progress: _, ...result } = JSON.parse(answer.content) as Record<string, unknown>;
      expect(JSON.parse(alike(JSON.stringify(result)))).toEqual(own);
    }
  }
}

describe("a server of npm's, directly and through the broker, has the same tools and results:", () => {
  it("everything", async () => {
    await compare(everything(), everything(), ["get-env", "get-resource-reference"]);
  });

  it("filesystem", async () => {
    const home = await House.build();
    const [one, two] = [join(home.directory, "one"), join(home.directory, "two")];
    await compare(filesystem(one), filesystem(two), [], (text) => text.replaceAll(two, one));
  });

  it("memory", async () => {
    const home = await House.build();
    const at = (file: string) => memory(join(home.directory, file));
    await compare(at("one.jsonl"), at("two.jsonl"));
  });

  it("sequential-thinking", async () => {
    await compare(sequentialThinking(), sequentialThinking());
  });
});
