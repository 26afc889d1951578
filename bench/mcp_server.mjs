// The server behind every path of the bench of MCP: one tool, on the official SDK, over stdio. It does as little as a
// server can, so that what is measured is the way to it.

import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";

const server = new McpServer({ name: "echo", version: "1" });
const inputSchema = fromJsonSchema({
  type: "object",
  properties: { text: { type: "string" } },
  required: ["text"],
  additionalProperties: false,
});
server.registerTool("echo", { description: "Says it again.", inputSchema }, ({ text }) => ({
  content: [{ type: "text", text }],
}));
await server.connect(new StdioServerTransport());
