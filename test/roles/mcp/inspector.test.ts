import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cleanUp, onCleanUp } from "../../daemon/daemon.ts";
import { everything } from "./real_servers.ts";
import { TOKEN, WholePath } from "./whole_path.ts";

// The Inspector's command line, as its users run it, before the gate with server-everything behind it.

afterAll(cleanUp);

const INSPECTOR = fileURLToPath(
  new URL("../../../node_modules/@modelcontextprotocol/inspector-cli/build/cli.js", import.meta.url),
);

interface Inspected {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

async function inspect(words: readonly string[]): Promise<Inspected> {
  const child = spawn(process.execPath, [INSPECTOR, "--cli", ...words], {
    cwd: dirname(INSPECTOR), // it looks for its own package.json from where it is started
    stdio: ["ignore", "pipe", "pipe"],
  });

  onCleanUp(() => child.kill("SIGKILL"));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { status: child.exitCode, out, err };
}

describe("the Inspector's command line", () => {
  const targets: Record<string, readonly string[]> = {};

  beforeAll(async () => {
    const settings = { provides: ["srv."] };
    const path = await WholePath.open(settings, [process.execPath, ...everything().command]);
    targets["stdio"] = [process.execPath, ...path.stdioWords];
    const header = ["--header", `Authorization: Bearer ${TOKEN}`];
    targets["http"] = [await path.serveHttp(), "--transport", "http", ...header];
  }, 60_000);

  describe.each(["stdio", "http"])("over %s", (way) => {
    it("lists the tools of the role", { timeout: 30_000 }, async () => {
      const listed = await inspect([...targets[way]!, "--method", "tools/list"]);
      expect(listed).toMatchObject({ status: 0 });
      const { tools } = JSON.parse(listed.out) as { tools: readonly { name: string; inputSchema: object }[] };
      expect(tools.map(({ name }) => name)).toContain("srv__get-sum");
      expect(tools.find(({ name }) => name === "srv__get-sum")?.inputSchema).toMatchObject({
        properties: { a: { type: "number" } },
      });
      expect(tools.some(({ name }) => name.startsWith("callgate"))).toBe(false);
    });

    it("calls a tool, with arguments of its own making", { timeout: 30_000 }, async () => {
      const words = ["--method", "tools/call", "--tool-name", "srv__get-sum", "--tool-arg", "a=2", "b=3.5"];
      const called = await inspect([...targets[way]!, ...words]);
      expect(called).toMatchObject({ status: 0 });
      const { content, isError } = JSON.parse(called.out) as {
        content: readonly { text: string }[];
        isError?: boolean;
      };
      expect(content.map((block) => block.text)).toEqual(["The sum of 2 and 3.5 is 5.5."]);
      expect(isError).toBeUndefined();
    });

    it("shows what the schema refuses as an error of the tool's", { timeout: 30_000 }, async () => {
      const words = ["--method", "tools/call", "--tool-name", "srv__get-sum", "--tool-arg", "a=two", "b=3"];
      const called = await inspect([...targets[way]!, ...words]);
      const { content, isError } = JSON.parse(called.out) as {
        content: readonly { text: string }[];
        isError: boolean;
      };
      expect(isError).toBe(true);
      expect(content[0]?.text).toMatch(/bad_arguments/);
    });
  });

  it("without the token is not served, and says so with its status", { timeout: 30_000 }, async () => {
    const [url = ""] = targets["http"]!;
    const refused = await inspect([url, "--transport", "http", "--method", "tools/list"]);
    expect(refused.status).not.toBe(0);
    expect(refused.err).toMatch(/401|token/i);
  });
});
