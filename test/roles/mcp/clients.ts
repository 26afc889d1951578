// The official SDK's client, in both of its modes, before a server or before the gate.

import { Client, type ClientOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { onCleanUp } from "../../daemon/daemon.ts";
import { TOKEN } from "./whole_path.ts";

/** `legacy`: 2025-11-25. `auto`: 2026-07-28, where the other side speaks it. */
export type Mode = "legacy" | "auto";

export function clientOf(mode: Mode, options: ClientOptions = {}): Client {
  return new Client({ name: "test", version: "1" }, { ...options, versionNegotiation: { mode } });
}

/** Starts `node WORDS…` and speaks to it. */
export async function overStdio(
  client: Client,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Client> {
  const command = { command: process.execPath, args: [...words], env: { ...env } };
  await client.connect(new StdioClientTransport({ ...command, stderr: "ignore" }));
  onCleanUp(() => client.close());
  return client;
}

export async function overHttp(client: Client, url: string): Promise<Client> {
  const requestInit = { headers: { Authorization: `Bearer ${TOKEN}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  onCleanUp(() => client.close());
  return client;
}

/** In place of a schema of the SDK's, which leaves out what it does not know. */
const AS_IT_CAME = {
  "~standard": { version: 1 as const, vendor: "test", validate: (value: unknown) => ({ value }) },
};

/** The whole result; for an error of the protocol's its message. */
export async function raw(client: Client, method: string, params: object): Promise<unknown> {
  try {
    return await client.request({ method, params: { ...params } }, AS_IT_CAME);
  } catch (error) {
    return (error as Error).message;
  }
}
