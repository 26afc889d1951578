// The tools that the conformance suite's scenarios call, each with the answer that its scenario asks for, on the
// official SDK: for every version of the protocol that it speaks.

import { readFileSync } from "node:fs";
import {
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  inputResponse,
  McpServer,
} from "@modelcontextprotocol/server";
import { elicitedTools } from "./elicited_tools.mjs";

const IMAGE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const AUDIO = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const text = (words) => ({ type: "text", text: words });
const image = { type: "image", data: IMAGE, mimeType: "image/png" };
const resource = (uri, mimeType, words) => ({ type: "resource", resource: { uri, mimeType, text: words } });
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

const CONTENTS = {
  test_simple_text: [text("This is a simple text response for testing.")],
  test_image_content: [image],
  test_audio_content: [{ type: "audio", data: AUDIO, mimeType: "audio/wav" }],
  test_embedded_resource: [
    resource("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ],
  test_multiple_content_types: [
    text("Multiple content types test:"),
    image,
    resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ],
};

/** As the scenario json-schema-2020-12 has it. */
const SCHEMA_2020_12 = JSON.parse(readFileSync(new URL("schema_2020_12.json", import.meta.url), "utf8"));

const NOTHING = { type: "object", properties: {} };
const states = createRequestStateCodec({ key: "of this fixture alone: 32 bytes of key" });

/** `onToolsChanged`: told when the list is another one, where the server that tells of it is not this one. */
export function conformanceServer(onToolsChanged = () => {}) {
  const server = new McpServer(
    { name: "conformance", version: "1" },
    {
      capabilities: { tools: { listChanged: true }, logging: {} },
      requestState: { verify: (state) => states.verify(state) },
    },
  );
  const tool = (name, run, schema = NOTHING) =>
    server.registerTool(name, { description: `For ${name}.`, inputSchema: fromJsonSchema(schema) }, run);
  for (const [name, content] of Object.entries(CONTENTS)) tool(name, () => ({ content }));
  plainTools(tool, onToolsChanged);
  elicitedTools(tool);
  inputTools(tool);
  return server;
}

function plainTools(tool, onToolsChanged) {
  tool("test_error_handling", () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  tool("test_tool_with_progress", withProgress);
  tool("test_tool_with_logging", withLogging);
  tool("test_logging_tool", withLogging);
  tool("test_reconnection", async (_, { http }) => {
    http?.closeSSE?.();
    await pause();
    return { content: [text("The stream was closed and this came all the same.")] };
  });
  tool("json_schema_2020_12_tool", () => ({ content: [text("ok")] }), SCHEMA_2020_12);
  tool("test_custom_headers", ({ region }) => ({ content: [text(`region ${region}`)] }), {
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" } },
    required: ["region"],
  });
  tool("test_missing_capability", (_, { mcpReq }) => {
    // The library refuses to ask for what the client has not declared.
    if (inputResponse(mcpReq.inputResponses, "q").kind === "sampling") return { content: [text("ok")] };
    return inputRequired({ inputRequests: { q: question("May I ask you?", 10) } });
  });
  const added = tool("test_added_tool", () => ({ content: [text("new")] }));
  tool("test_trigger_tool_change", () => {
    added.update({ description: "Another one." });
    onToolsChanged();
    return { content: [text("changed")] };
  });
}

async function withProgress(_, { mcpReq }) {
  const progressToken = mcpReq._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progressToken !== undefined) {
      const params = { progressToken, progress, total: 100, message: `${progress} of 100` };
      await mcpReq.notify({ method: "notifications/progress", params });
    }
    if (progress < 100) await pause();
  }
  return { content: [text("done")] };
}

async function withLogging(_, { mcpReq }) {
  for (const words of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
    await mcpReq.log("info", words);
    await pause();
  }
  return { content: [text("logged")] };
}

function capabilities(mcpReq) {
  return mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
}

const form = (message, name, type = "string") =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: "object", properties: { [name]: { type } }, required: [name] },
  });
const question = (words, maxTokens) =>
  inputRequired.createMessage({ messages: [{ role: "user", content: text(words) }], maxTokens });

/** What each asks for before it answers. */
const ASKED = {
  test_input_required_result_elicitation: () => ({ user_name: form("What is your name?", "name") }),
  test_input_required_result_sampling: () => ({
    capital_question: question("What is the capital of France?", 100),
  }),
  test_input_required_result_list_roots: () => ({ client_roots: inputRequired.listRoots() }),
  test_input_required_result_request_state: () => ({ confirm: form("Please confirm", "ok", "boolean") }),
  test_input_required_result_tampered_state: () => ({ confirm: form("Please confirm", "ok", "boolean") }),
  test_input_required_result_multiple_inputs: () => ({
    user_name: form("What is your name?", "name"),
    greeting: question("Generate a greeting", 50),
    client_roots: inputRequired.listRoots(),
  }),
  test_streaming_elicitation: () => ({ user_name: form("What is your name?", "name") }),
};
const STATEFUL = /request_state|tampered_state|multiple_inputs/;

function inputTools(tool) {
  for (const [name, asked] of Object.entries(ASKED)) {
    tool(name, async (_, { mcpReq }) => {
      const inputRequests = asked();
      const given = Object.keys(inputRequests).map((key) => inputResponse(mcpReq.inputResponses, key));
      if (given.every(isGiven)) return { content: [text(`state-ok ${JSON.stringify(given)}`)] };
      if (!STATEFUL.test(name)) return inputRequired({ inputRequests });
      return inputRequired({ inputRequests, requestState: await states.mint({ name }) });
    });
  }
  tool("test_input_required_result_capabilities", (_, { mcpReq }) => {
    const { sampling, elicitation } = capabilities(mcpReq);
    const inputRequests = {
      ...(sampling === undefined ? {} : { capital: question("What is the capital of France?", 100) }),
      ...(elicitation === undefined ? {} : { user_name: form("What is your name?", "name") }),
    };
    return inputRequired({ inputRequests });
  });
  tool("test_input_required_result_multi_round", async (_, { mcpReq }) => {
    const { round = 1 } = mcpReq.requestState() ?? {};
    if (round === 1) return step(1, "step1", "name", "Step 1: What is your name?");
    const [before, after] = [
      inputResponse(mcpReq.inputResponses, "step1"),
      inputResponse(mcpReq.inputResponses, "step2"),
    ];
    if (isGiven(after)) return { content: [text("Both rounds are done.")] };
    if (isGiven(before)) return step(2, "step2", "color", "Step 2: What is your favorite color?");
    return step(1, "step1", "name", "Step 1: What is your name?");
  });
}

async function step(round, key, name, message) {
  const requestState = await states.mint({ round: round + 1 });
  return inputRequired({ inputRequests: { [key]: form(message, name) }, requestState });
}

/** An accepted form has a text or a truth value for each of its fields. */
function isGiven(view) {
  if (view.kind !== "elicit") return view.kind !== "missing";
  return view.action === "accept" && Object.values(view.content ?? {}).length > 0;
}
