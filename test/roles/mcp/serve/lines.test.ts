import { PassThrough, Writable } from "node:stream";
import { expect, it } from "vitest";
import { LineTransport } from "../../../../src/roles/mcp/serve/lines.ts";

const turned = () => new Promise((resolve) => setImmediate(resolve));

it("a client that does not read is not read from, and goes on where it was once it reads", async () => {
  const input = new PassThrough();
  const untaken: (() => void)[] = [];
  let isTaking = false;
  const output = new Writable({
    highWaterMark: 1,
    write: (_, __, taken) => void (isTaking ? taken() : untaken.push(taken)),
  });
  const transport = new LineTransport(input, output);
  let count = 0;
  let all = () => {};
  const done = new Promise<void>((resolve) => (all = resolve));
  transport.onmessage = (message) => {
    count += 1;
    const { id = 0 } = message as { readonly id?: number };
    void transport.send({ jsonrpc: "2.0", id, result: { text: "x".repeat(100_000) } });
    if (count === 200) all();
  };
  await transport.start();
  const lines = Array.from({ length: 200 }, (_, id) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}\n`);
  input.write(lines.slice(0, 100).join(""));
  for (let i = 0; i < 5; i += 1) await turned();
  expect(count).toBe(11); // a megabyte, and what was over it
  expect(input.isPaused()).toBe(true);
  input.write(lines.slice(100).join(""));
  for (let i = 0; i < 5; i += 1) await turned();
  expect(count).toBe(11);
  isTaking = true;
  for (const taken of untaken) taken();
  await done;
  await transport.close();
});
