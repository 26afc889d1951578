// An MCP server of the official SDK that speaks protocol 2026-07-28, and older ones to who asks so.

import { fromJsonSchema, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

serveStdio(() => {
  const server = new McpServer({ name: "modern", version: "1" });
  const inputSchema = fromJsonSchema({ type: "object" });
  const say = (text) => ({ content: [{ type: "text", text }] });
  const echo = server.registerTool("echo", { description: "A tool.", inputSchema }, (args) =>
    say(JSON.stringify(args)),
  );
  server.registerTool("change", { inputSchema }, ({ to }) => {
    echo.update({ description: to });
    return say("changed");
  });
  server.registerTool("odd", { inputSchema }, () =>
    inputRequired({
      inputRequests: {
        who: inputRequired.elicit({
          message: "Your password?",
          requestedSchema: { type: "object", properties: { p: { type: "string" } } },
        }),
      },
    }),
  );
  server.registerTool("wait", { inputSchema }, () => inputRequired({ requestState: "come again" }));
  return server;
});
