import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { LLMock } from "@copilotkit/aimock";
import { afterEach, describe, expect, it } from "vitest";
import { checkConnector } from "../../src/host/connector_check.ts";
import { compileConnectorConfig } from "../../src/host/connector_config.ts";
import { describeWith } from "../needs.ts";
import { blocks, matches, ROOT, Shell, steps } from "./console.ts";

// docs/connector.md, command by command, with a server that others maintain in the place of a model.

const text = readFileSync(join(ROOT, "docs/connector.md"), "utf8");

let mock: LLMock | undefined;

afterEach(async () => {
  await mock?.stop();
  mock = undefined;
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return address.port;
}

describe("docs/connector.md", () => {
  it("prints what it says, command by command", async () => {
    mock = new LLMock({ port: 0 });
    mock.onMessage("Say hello.", { content: "Hello!" });
    await mock.start();
    const { shell, close } = await Shell.open();
    try {
      const port = await freePort();
      const replaced = `s|http://127.0.0.1:8080|${mock.url}|; s|port = 7811|port = ${port}|`;
      const command = `sed -i '${replaced}' examples/local_model.toml; export CALLGATE_CONNECTOR=127.0.0.1:${port}`;
      expect(await shell.run({ command, expected: [] })).toEqual([]);
      const commands = blocks(text, "console").flatMap(steps);
      expect(commands.length).toBeGreaterThan(8);
      for (const step of commands) {
        const printed = await shell.run(step);
        if (!matches(printed, step.expected))
          expect({ ran: step.command, printed }).toEqual({ ran: step.command, printed: step.expected });
      }
    } finally {
      await close();
    }
  }, 600_000);

  it("has every event that the connector logs, and no other", () => {
    const files = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" });
    const source = files
      .filter((file) => /^(?:connector\/.*|connector_main|host\/connector_\w+)\.ts$/.test(file))
      .map((file) => readFileSync(join(ROOT, "src", file), "utf8"))
      .join("");
    const logged = [...source.matchAll(/"(connector\.\w+)"/g)].map(([, event]) => event);
    const told = [...text.matchAll(/^\| `(connector\.\w+)`/gm)].map(([, event]) => event);
    expect(told.length).toBeGreaterThan(10);
    expect(told.toSorted()).toEqual([...new Set(logged)].toSorted());
  });

  it("shows configs that compile, and names only keys that there are", () => {
    const shown = blocks(text, "toml");
    expect(shown.length).toBeGreaterThan(1);
    for (const config of shown) {
      const compiled = compileConnectorConfig(config, "/etc/callgate/connector.toml");
      const missing = /no (?:caller|backend) is configured/;
      const faults = compiled.ok ? [] : compiled.fault.filter(({ message }) => !missing.test(message));
      expect({ config, faults }).toEqual({ config, faults: [] });
    }
  });
});

describeWith(["systemd-analyze"], "systemd itself", () => {
  it("finds nothing wrong with the units that are shown, and the connector's closed", async () => {
    const execute = promisify(execFile);
    const directory = mkdtempSync(join(tmpdir(), "callgate-units-"));
    try {
      const units = blocks(text, "ini").map((unit) => {
        const name = /^# \S+\/(\S+\.service)$/m.exec(unit)?.[1] ?? "";
        const path = join(directory, name);
        writeFileSync(path, unit.replace("/usr/bin/callgate", "/usr/bin/env callgate"));
        return path;
      });
      expect(units).toHaveLength(2);
      for (const unit of units) {
        const { stdout, stderr } = await execute("systemd-analyze", ["verify", "--man=no", unit]);
        expect(`${stdout}${stderr}`).toBe("");
      }
      const { stdout } = await execute("systemd-analyze", ["security", "--offline=yes", units[0] ?? ""]);
      expect(Number(/Overall exposure level for \S+: ([0-9.]+)/.exec(stdout)?.[1])).toBeLessThan(2.5);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

describe("examples/local_model.toml", () => {
  it("would start but for its secrets, which everybody makes for himself", async () => {
    const { ok, lines } = await checkConnector(join(ROOT, "examples/local_model.toml"));
    expect(ok).toBe(false);
    for (const line of lines.slice(0, -1))
      expect(line).toMatch(/(?:me|broker)\.secret" can't be used: .* does not exist/);
    expect(lines).toHaveLength(3);
  });
});
