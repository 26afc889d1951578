// The whole path from a client to a server, each step the real program: broker, `callgate mcp provide` with a server
// behind it, `callgate mcp serve` before it. And a server without any of that, to compare.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { connect } from "../../../src/client/caller.ts";
import type { ToolResponse } from "../../../src/wire/message.ts";
import { callgate, Daemon, onCleanUp, Place } from "../../daemon/daemon.ts";

export const TOKEN = "w".repeat(43);

const grant = (id: string, role: string, tools: readonly string[], effect = "allow") => `
[[grants]]
id = "${id}"
role = "${role}"
tools = ${JSON.stringify(tools)}
effect = "${effect}"
taint_max = "restricted"
taint_untrusted = true
`;

export interface PathSettings {
  /** Of the server's tools at the broker, as `provides` has it; the first is `--prefix` unless that is given. */
  readonly provides: readonly string[];
  readonly prefix?: string;
  /** Tools that a person is asked about. */
  readonly asked?: readonly string[];
}

function configOf({ provides, asked = [] }: PathSettings): string {
  const tools = [...provides.map((prefix) => `${prefix}*`), "callgate.tools.list", "callgate.calls.cancel"];
  return `
[roles.agent]
anyone = true
[roles.operator]
anyone = true
operator = true
[roles.server]
anyone = true
connections = 1
class_max = "restricted"
provides = ${JSON.stringify(provides)}
${grant("announces", "server", ["callgate.tools.announce"])}
${asked.length === 0 ? "" : grant("asks", "agent", asked, "ask")}
${grant("uses", "agent", [...tools, "callgate.calls.why"])}
${grant("operates", "operator", ["callgate.*"])}`;
}

/** A line of a program's output or log, come or to come. */
class Lines {
  readonly #lines: string[] = [];
  #waiting: (() => void)[] = [];

  constructor(child: ChildProcess, stream: "stdout" | "stderr") {
    const lines = createInterface({ input: child[stream]! });
    lines.on("line", (line) => {
      this.#lines.push(line);
      for (const wake of this.#waiting.splice(0)) wake();
    });
    lines.on("close", () => {
      for (const wake of this.#waiting.splice(0)) wake();
    });
    child.once("exit", (status) => this.#lines.push(`(it ended with ${status})`));
  }

  async match(pattern: RegExp): Promise<string> {
    for (;;) {
      for (const line of this.#lines) {
        const found = pattern.exec(line);
        if (found !== null) return found[1] ?? found[0];
      }
      if (this.#lines.at(-1)?.startsWith("(it ended")) throw new Error(this.#lines.join("\n"));
      await new Promise<void>((wake) => this.#waiting.push(wake));
    }
  }
}

function started(words: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const child = spawn(process.execPath, words, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NODE_OPTIONS: "", ...env },
  });
  onCleanUp(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  });
  return child;
}

/** The conformance suite's server over HTTP; its URL. */
export async function directServer(): Promise<string> {
  const child = started([CONFORMANCE_SERVER, "--http"]);
  return `http://127.0.0.1:${await new Lines(child, "stdout").match(/^\d+$/)}/mcp`;
}

export const CONFORMANCE_SERVER = fileURLToPath(new URL("conformance/server.mjs", import.meta.url));

export class WholePath {
  readonly broker: Daemon;

  private constructor(broker: Daemon) {
    this.broker = broker;
  }

  /** `command`: the server's, after `--`; every tool that it announces is accepted. */
  static async open(
    settings: PathSettings,
    command: readonly string[],
    env: readonly string[] = [],
  ): Promise<WholePath> {
    const place = new Place("");
    writeFileSync(
      place.config,
      `allow_same_user = true\n[daemon]\nsockets = "run"\nstate = "state"\n${configOf(settings)}`,
    );
    const path = new WholePath(await Daemon.start(place));
    const words = [
      "--prefix",
      settings.prefix ?? settings.provides[0]!,
      ...env.flatMap((one) => ["--env", one]),
    ];
    const provide = started([callgate(), ...path.#to("provide", "server"), ...words, "--", ...command]);
    await new Lines(provide, "stderr").match(/in service: \d+ of/);
    await path.#acceptAll();
    return path;
  }

  #to(program: "provide" | "serve", role: string): string[] {
    return ["mcp", program, "--socket", this.broker.socket(role)];
  }

  /** What a client starts: `process.execPath` and these. */
  get stdioWords(): readonly string[] {
    return [callgate(), ...this.#to("serve", "agent")];
  }

  /** `callgate mcp serve --http`; its URL. */
  async serveHttp(words: readonly string[] = []): Promise<string> {
    const tokenFile = join(this.broker.place.directory, "token");
    writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
    const http = ["--http", "127.0.0.1:0", "--token-file", tokenFile];
    const serve = started([...this.stdioWords, ...http, ...words]);
    return new Lines(serve, "stderr").match(/serving MCP at (http:\S+)/);
  }

  async ask(tool: string, args: object): Promise<Readonly<Record<string, unknown>>> {
    const operator = await connect({ to: { path: this.broker.socket("operator") } });
    const answer: ToolResponse = await operator.call(tool, { ...args }).final;
    await operator.close();
    if (answer.status !== "result") throw new Error(JSON.stringify(answer, (_, one) => String(one)));
    return JSON.parse(answer.content) as Readonly<Record<string, unknown>>;
  }

  /** A person is asked: resolves with the name of the question that is open. */
  async question(): Promise<string> {
    for (;;) {
      const open = await this.questions();
      if (open[0] !== undefined) return open[0];
    }
  }

  async questions(): Promise<readonly string[]> {
    const { approvals } = (await this.ask("callgate.approvals.list", {})) as {
      approvals: readonly { approval: string; state: string }[];
    };
    return approvals.filter(({ state }) => state === "pending").map(({ approval }) => approval);
  }

  async decide(how: "approve" | "refuse"): Promise<void> {
    const approval = await this.question();
    const { digest } = await this.ask("callgate.approvals.show", { approval });
    await this.ask(`callgate.approvals.${how}`, { approval, digest });
  }

  /** Calls of the agent's of that tool, newest first. */
  async calls(tool: string): Promise<readonly { readonly status: string | null }[]> {
    const { calls } = (await this.ask("callgate.calls.list", { role: "agent" })) as {
      calls: readonly { tool: string; status: string | null }[];
    };
    return calls.filter((call) => call.tool === tool);
  }

  async #acceptAll(): Promise<void> {
    const { tools } = (await this.ask("callgate.tools.list", {})) as {
      tools: readonly { name: string; in_service: boolean }[];
    };
    for (const { name: tool, in_service } of tools) {
      if (in_service) continue;
      const shown = await this.ask("callgate.tools.diff", { tool });
      const { announced, pinned } = shown as Record<string, { digest: string } | null>;
      await this.ask("callgate.tools.accept", { tool, digest: (announced ?? pinned)?.digest });
    }
  }
}

/**
 * A way to an address for clients that know no token: requests go on as they are, with the token, and under the
 * address's own name where they have this one's. A foreign Host or Origin stays what it is, so who refuses it is the server.
 */
export async function tokenBefore(url: string): Promise<string> {
  const to = new URL(url);
  const server = createServer((incoming, outgoing) => {
    const own = (server.address() as AddressInfo).port;
    const renamed = incoming.rawHeaders.map((text) =>
      text.replace(new RegExp(`^((?:http://)?)(?:127\\.0\\.0\\.1|localhost):${own}$`), `$1${to.host}`),
    );
    const headers = [...renamed, "Authorization", `Bearer ${TOKEN}`];
    const onward = request(to, { method: incoming.method, path: incoming.url, headers, setHost: false });
    onward.on("response", (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders);
      outgoing.flushHeaders();
      response.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onCleanUp(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${to.pathname}`;
}
