// Four MCP servers that people use, from npm: how each is started, and calls of all of its tools in an order that leaves
// the server as it was.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { program } from "./provide/house.ts";

export type Args = Readonly<Record<string, unknown>>;
export type Calls = readonly (readonly [tool: string, args: Args])[];

export interface RealServer {
  /** After `node`. */
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly calls: Calls;
  /** Before all calls: what they are about. */
  readonly prepare?: () => void;
}

export function everything(): RealServer {
  return {
    command: [program("@modelcontextprotocol/server-everything")],
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
      ["toggle-simulated-logging", {}],
      ["toggle-subscriber-updates", {}],
      ["toggle-subscriber-updates", {}],
      ["trigger-long-running-operation", { duration: 0.2, steps: 2 }],
    ],
  };
}

/** Of two whose `root` is as long, results differ in that alone. */
export function filesystem(root: string): RealServer {
  const path = join(root, "a.txt");
  return {
    command: [program("@modelcontextprotocol/server-filesystem"), root],
    prepare: () => {
      rmSync(root, { recursive: true, force: true });
      mkdirSync(root);
      writeFileSync(path, "one\ntwo\n");
    },
    calls: [
      ["read_file", { path }],
      ["read_text_file", { path, head: 1 }],
      ["read_media_file", { path }],
      ["read_multiple_files", { paths: [path] }],
      ["write_file", { path: join(root, "b.txt"), content: "b" }],
      ["edit_file", { path, edits: [{ oldText: "one", newText: "1" }] }],
      ["create_directory", { path: join(root, "d") }],
      ["list_directory", { path: root }],
      ["list_directory_with_sizes", { path: root }],
      ["directory_tree", { path: root }],
      ["move_file", { source: join(root, "b.txt"), destination: join(root, "c.txt") }],
      ["search_files", { path: root, pattern: "*.txt" }],
      ["get_file_info", { path: "/etc/passwd" }],
      ["list_allowed_directories", {}],
    ],
  };
}

export function memory(file: string): RealServer {
  const entity = { name: "a", entityType: "t", observations: ["o"] };
  return {
    command: [program("@modelcontextprotocol/server-memory")],
    env: { MEMORY_FILE_PATH: file },
    calls: [
      ["create_entities", { entities: [entity, { ...entity, name: "b" }] }],
      ["create_relations", { relations: [{ from: "a", to: "b", relationType: "r" }] }],
      ["add_observations", { observations: [{ entityName: "a", contents: ["p"] }] }],
      ["read_graph", {}],
      ["search_nodes", { query: "p" }],
      ["open_nodes", { names: ["b"] }],
      ["delete_observations", { deletions: [{ entityName: "a", observations: ["p"] }] }],
      ["delete_relations", { relations: [{ from: "a", to: "b", relationType: "r" }] }],
      ["delete_entities", { entityNames: ["a", "b"] }],
    ],
  };
}

export function sequentialThinking(): RealServer {
  const thought = { thought: "t", nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 2 };
  return {
    command: [program("@modelcontextprotocol/server-sequential-thinking")],
    calls: [
      ["sequentialthinking", thought],
      ["sequentialthinking", { ...thought, thoughtNumber: 2, nextThoughtNeeded: false }],
    ],
  };
}
