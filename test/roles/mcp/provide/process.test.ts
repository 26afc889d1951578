import { once } from "node:events";
import { chmodSync, openSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { cleanUp, onCleanUp, run } from "../../../daemon/daemon.ts";
import { House, isAlive, ROUGH } from "./house.ts";

// `callgate mcp provide` as the process that it is.

afterEach(cleanUp);

function pidsIn(home: House): readonly number[] {
  const started = home.noted().filter((line) => /^(start|child|daemon) /.test(line));
  return started.map((line) => Number(line.split(" ")[1]));
}

/** Resolves when none of them is left; a process's end is no event for others. */
async function gone(pids: readonly number[]): Promise<void> {
  while (pids.some(isAlive)) await new Promise((resolve) => setImmediate(resolve));
}

describe("the role's process", () => {
  it("gives its server the given environment, and none of the descriptors that it has itself", async () => {
    const home = await House.build();
    const leaked = openSync(home.broker.place.config, "r");
    home.run(["--env", "GIVEN=yes", "--", process.execPath, ROUGH], { SECRET: "s", CALLGATE_SOCKET: "x" }, [
      leaked,
    ]);
    await home.hears(/in service/);
    const { env, files } = JSON.parse(await home.text("env")) as {
      readonly env: Record<string, string>;
      readonly files: readonly string[];
    };
    expect(files.filter((file) => file.startsWith(home.directory))).toEqual([]);
    const known = new Set(["PATH", "HOME", "GIVEN", "CALLGATE_MCP_SERVER"]);
    expect(Object.keys(env).filter((name) => !known.has(name))).toEqual([]);
    expect(env["GIVEN"]).toBe("yes");
  });

  it("at SIGTERM ends in order, and its server and what that started with it", async () => {
    const home = await House.build();
    const role = home.run(["--", process.execPath, ROUGH, "--notes", home.notes, "--children"]);
    await home.hears(/in service/);
    const pids = pidsIn(home);
    expect(pids.map(isAlive)).toEqual([true, true, true]);
    role.kill("SIGTERM");
    expect((await once(role, "exit"))[0]).toBe(0);
    expect(pids.map(isAlive)).toEqual([false, false, false]);
  });

  it("killed with -9, while it serves or while it starts, leaves no process of its server's", async () => {
    const home = await House.build();
    for (const ready of [/in service/, undefined, /in service/, undefined]) {
      const from = home.said.length;
      const noted = home.noted().length;
      const role = home.run([
        "--",
        process.execPath,
        ROUGH,
        "--notes",
        home.notes,
        "--children",
        "--stubborn",
      ]);
      if (ready !== undefined) await home.hears(ready, from);
      else while (home.noted().length < noted + 3) await new Promise((resolve) => setImmediate(resolve));
      role.kill("SIGKILL");
      await once(role, "exit");
      await gone(pidsIn(home));
    }
    expect(pidsIn(home)).toHaveLength(12);
  });

  it("says what is wrong with how it is used", async () => {
    const home = await House.build();
    const file = join(home.directory, "headers");
    writeFileSync(file, "Authorization: Bearer secret\n");
    chmodSync(file, 0o644);
    const provide = (...words: readonly string[]) =>
      run(["mcp", "provide", "--socket", home.broker.socket("server"), ...words]);
    const wrong: readonly [readonly string[], RegExp][] = [
      [[], /either a command, after --, or --url/],
      [["--url", "http://127.0.0.1/", "--", "x"], /either a command/],
      [["--url", "http://example.com/"], /must be https/],
      [["--url", "ftp://example.com/"], /http or https/],
      [["--url", "https://me:secret@example.com/"], /no user and password/],
      [["--url", "https://example.com/", "--header-file", file], /open to every user/],
      [["--prefix", "Bad.", "--", "x"], /--prefix must begin with a letter/],
      [["--env", "NOT_THERE_AT_ALL", "--", "x"], /not in the environment/],
    ];
    for (const [words, why] of wrong) {
      const { status, err } = await provide(...words);
      expect(err).toMatch(why);
      expect(err).not.toContain("secret");
      expect(status).toBe(2);
    }
    const { status, err } = await provide("--prefix", "mcp.", "--", "/nowhere/at-all");
    expect(err).toContain("the server can't be started: ENOENT");
    expect(status).toBe(4);
  });
});

describe("a server over HTTP", () => {
  it("gets the headers of the file, and its redirect to elsewhere is not followed", async () => {
    const home = await House.build();
    const asked: string[] = [];
    const elsewhere = createServer((request, response) => {
      asked.push(`elsewhere ${request.headers.authorization ?? "-"}`);
      response.end();
    }).listen(0, "127.0.0.1");
    await once(elsewhere, "listening");
    onCleanUp(() => elsewhere.close());
    const { port } = elsewhere.address() as AddressInfo;
    const server = createServer((request, response) => {
      asked.push(`server ${request.headers.authorization ?? "-"}`);
      response.writeHead(307, { location: `http://localhost:${port}/mcp` }).end();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onCleanUp(() => server.close());
    const file = join(home.directory, "headers");
    writeFileSync(file, "Authorization: Bearer of-mine\n", { mode: 0o600 });
    const at = (server.address() as AddressInfo).port;
    home.run(["--url", `http://127.0.0.1:${at}/mcp`, "--header-file", file]);
    await home.hears(/the server is gone/);
    expect(asked).toContain("server Bearer of-mine");
    expect(asked.filter((one) => one.startsWith("elsewhere"))).toEqual([]);
    expect(home.said.join("\n")).not.toContain("of-mine");
  });
});
