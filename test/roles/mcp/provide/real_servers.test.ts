import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, describe, expect, it } from "vitest";
import { clientTool, clientToolName, type McpTool } from "../../../../src/roles/mcp/definition.ts";
import { cleanUp, onCleanUp } from "../../../daemon/daemon.ts";
import { House, houseConfig, program } from "./house.ts";

// Servers that people use, asked directly and through the broker: the same tools, the same results.

afterEach(cleanUp);

type Args = Readonly<Record<string, unknown>>;
type Calls = readonly (readonly [tool: string, args: Args])[];

interface Server {
  readonly args: readonly string[];
  readonly calls: Calls;
  readonly env?: Readonly<Record<string, string>>;
}

const AS_IT_CAME = {
  "~standard": { version: 1 as const, vendor: "test", validate: (value: unknown) => ({ value }) },
};

async function direct({ args, env }: Server): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StdioClientTransport({
    ...{ command: process.execPath, args: [...args], stderr: "ignore" },
    env: { ...env },
  });
  await client.connect(transport);
  onCleanUp(() => client.close());
  return client;
}

/** Of every tool of the server; `differs`: those whose result is another each time. */
async function compare(server: Server, through: Server, differs: readonly string[] = []): Promise<void> {
  const home = await House.build(houseConfig([]));
  const words = Object.entries(through.env ?? {}).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
  home.run([...words, "--", process.execPath, ...through.args]);
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
    else if (!differs.includes(name)) expect(JSON.parse(answer.content)).toEqual(own);
  }
}

describe("a server of npm's, directly and through the broker, has the same tools and results:", () => {
  it("everything", async () => {
    const server: Server = {
      args: [program("@modelcontextprotocol/server-everything")],
      calls: [
        ["echo", { message: "hé\u0000" }],
        ["get-annotated-message", { messageType: "error", includeImage: true }],
        ["get-env", {}],
        ["get-resource-links", { count: 3 }],
        ["get-resource-reference", { resourceType: "Text", resourceId: 1 }],
        ["get-structured-content", { location: "Chicago" }],
        ["get-sum", { a: 1.5, b: 2 }],
        ["get-tiny-image", {}],
        ["gzip-file-as-resource", { name: "a.gz", data: "data:text/plain,hello", outputType: "resource" }],
        ["simulate-research-query", { topic: "x" }],
        ["toggle-simulated-logging", {}],
        ["toggle-subscriber-updates", {}],
        ["trigger-long-running-operation", { duration: 0.2, steps: 2 }],
      ],
    };
    await compare(server, server, [
      "get-env",
      "get-resource-reference",
      "toggle-simulated-logging",
      "toggle-subscriber-updates",
    ]);
  });

  it("filesystem", async () => {
    const at = (root: string): Server => {
      mkdirSync(root, { recursive: true });
      writeFileSync(join(root, "a.txt"), "one\ntwo\n");
      const path = join(root, "a.txt");
      return {
        args: [program("@modelcontextprotocol/server-filesystem"), root],
        calls: [
          ["read_file", { path }],
          ["read_text_file", { path, head: 1 }],
          ["read_media_file", { path }],
          ["read_multiple_files", { paths: ["a.txt"] }],
          ["write_file", { path: join(root, "b.txt"), content: "b" }],
          ["edit_file", { path, edits: [{ oldText: "one", newText: "1" }] }],
          ["create_directory", { path: join(root, "d") }],
          ["list_directory", { path: root }],
          ["list_directory_with_sizes", { path: root }],
          ["directory_tree", { path: root }],
          ["move_file", { source: join(root, "b.txt"), destination: join(root, "c.txt") }],
          ["search_files", { path: root, pattern: "nothing-of-this-name" }],
          ["get_file_info", { path: "/etc/passwd" }],
          ["list_allowed_directories", {}],
        ],
      };
    };
    // Both have the same path in their texts: one after another, in two directories whose names are as long.
    const home = await House.build();
    await compare(at(join(home.directory, "root")), at(join(home.directory, "root")), [
      "edit_file",
      "write_file",
      "move_file",
      "list_directory",
      "list_directory_with_sizes",
      "directory_tree",
      "read_multiple_files",
    ]);
  });

  it("memory", async () => {
    const home = await House.build();
    const entity = { name: "a", entityType: "t", observations: ["o"] };
    const at = (file: string): Server => ({
      args: [program("@modelcontextprotocol/server-memory")],
      env: { MEMORY_FILE_PATH: join(home.directory, file) },
      calls: [
        ["create_entities", { entities: [entity, { ...entity, name: "b" }] }],
        ["create_relations", { relations: [{ from: "a", to: "b", relationType: "r" }] }],
        ["add_observations", { observations: [{ entityName: "a", contents: ["p"] }] }],
        ["read_graph", {}],
        ["search_nodes", { query: "p" }],
        ["open_nodes", { names: ["b"] }],
        ["delete_observations", { deletions: [{ entityName: "a", observations: ["p"] }] }],
        ["delete_relations", { relations: [{ from: "a", to: "b", relationType: "r" }] }],
        ["delete_entities", { entityNames: ["b"] }],
      ],
    });
    await compare(at("one.jsonl"), at("two.jsonl"));
  });

  it("sequential-thinking", async () => {
    const thought = { thought: "t", nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 2 };
    const server: Server = {
      args: [program("@modelcontextprotocol/server-sequential-thinking")],
      calls: [
        ["sequentialthinking", thought],
        ["sequentialthinking", { ...thought, thoughtNumber: 2, nextThoughtNeeded: false }],
      ],
    };
    await compare(server, server);
  });
});
