// An MCP server for tests whose list of tools is used against whoever reads it: it says very often that it has changed, and
// answers only after the last time; and it lists a tool, or gives a result, that nests deeper than can be written.

import { createInterface } from "node:readline";

const send = (text) => process.stdout.write(`${text}\n`);
const answer = (id, result) => send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`);
const changed = () => send('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');

const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
const names = ["echo", "hold", "deepen", "deep"];
const tools = (meta) =>
  `{"tools":[${names.map((name) => `{"name":"${name}","inputSchema":{"type":"object"}${name === "deep" ? meta : ""}}`)}]}`;

let lists = 0;
let meta = "";
/** Lists that are not answered yet; undefined: each is answered at once. */
let held;

const calls = {
  echo: (id) => answer(id, `{"content":[{"type":"text","text":"${lists}"}]}`),
  deep: (id) => answer(id, `{"content":[],"structuredContent":{"deep":${deep}}}`),
  // Each of these comes in a turn of its own, later than the reader waits for more of them.
  hold: async (id, { times }) => {
    held = [];
    for (let i = 0; i < times; i++) {
      changed();
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    for (const one of held) answer(one, tools(meta));
    held = undefined;
    answer(id, '{"content":[]}');
  },
  deepen: (id) => {
    meta = `,"_meta":{"deep":${deep}}`;
    changed();
    answer(id, '{"content":[]}');
  },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize")
    answer(
      id,
      `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"restless","version":"1"}}`,
    );
  else if (method === "tools/list") {
    lists += 1;
    process.stderr.write(`list ${lists}\n`);
    if (held === undefined) answer(id, tools(meta));
    else held.push(id);
  } else if (method === "tools/call") calls[params.name](id, params.arguments);
  else if (id !== undefined)
    send(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"no"}}`);
});
