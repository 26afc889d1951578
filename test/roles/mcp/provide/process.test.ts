import { once } from "node:events";
import { chmodSync, openSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { cleanUp, onCleanUp, run } from "../../../daemon/daemon.ts";
import { House, ROUGH } from "./house.ts";
import { processesWith, untilProcesses } from "./processes.ts";

// `callgate mcp provide` as the process that it is.

afterEach(cleanUp);

const WAYS: readonly (readonly [string, readonly string[]])[] = [
  ["confined", []],
  ["unconfined", ["--unconfined"]],
];

describe("the role's process", () => {
  it.each(WAYS)(
    "gives its server, %s, the given environment and none of its own descriptors",
    async (name, how) => {
      const home = await House.build();
      const leaked = openSync(home.broker.place.config, "r");
      home.run(["--env", "GIVEN=yes", ...how, "--", process.execPath, ROUGH], {
        env: { SECRET: "s", CALLGATE_SOCKET: "x" },
        passed: [leaked],
      });
      await home.hears(/in service/);
      const { env, files } = JSON.parse(await home.text("env")) as {
        readonly env: Record<string, string>;
        readonly files: readonly string[];
      };
      expect(files.filter((file) => file.startsWith(home.directory))).toEqual([]);
      const known = new Set([
        "PATH",
        "HOME",
        "GIVEN",
        ...(name === "confined" ? [] : ["CALLGATE_MCP_SERVER"]),
      ]);
      expect(Object.keys(env).filter((variable) => !known.has(variable))).toEqual([]);
      expect(env["GIVEN"]).toBe("yes");
    },
  );

  it.each(WAYS)(
    "at SIGTERM ends in order, and its %s server and what that started with it",
    async (_, how) => {
      const home = await House.build();
      const role = home.run([...how, "--", process.execPath, ROUGH, "--notes", home.notes, "--children"]);
      await home.hears(/in service/);
      expect(home.serverProcesses()).toHaveLength(3);
      role.kill("SIGTERM");
      expect((await once(role, "exit"))[0]).toBe(0);
      expect(processesWith(home.notes)).toEqual([]);
      expect(home.noted()).toContain("input ended");
    },
  );

  it.each(WAYS)(
    "killed with -9, while it serves or starts, leaves no process of its %s server's",
    async (_, how) => {
      const home = await House.build();
      for (const ready of [/in service/, undefined, /in service/, undefined]) {
        const from = home.said.length;
        const noted = home.noted().length;
        const role = home.run([
          ...how,
          ...["--", process.execPath, ROUGH, "--notes", home.notes, "--children", "--stubborn"],
        ]);
        if (ready !== undefined) await home.hears(ready, from);
        else while (home.noted().length < noted + 3) await new Promise((resolve) => setImmediate(resolve));
        expect(home.serverProcesses()).toHaveLength(3);
        role.kill("SIGKILL");
        await once(role, "exit");
        await untilProcesses(home.notes, (count) => count === 0);
      }
    },
  );

  it("says what is wrong with how it is used", async () => {
    const home = await House.build();
    const file = join(home.directory, "headers");
    writeFileSync(file, "Authorization: Bearer secret\n");
    chmodSync(file, 0o644);
    const provide = (...words: readonly string[]) =>
      run(["mcp", "provide", "--socket", home.broker.socket("server"), ...words]);
    const wrong: readonly [readonly string[], RegExp][] = [
      [[], /one of a command, after --, --url/],
      [["--url", "http://127.0.0.1/", "--", "x"], /one of a command/],
      [["--url", "http://example.com/"], /must be https/],
      [["--url", "ftp://example.com/"], /http or https/],
      [["--url", "https://me:secret@example.com/"], /no user and password/],
      [["--url", "https://example.com/", "--header-file", file], /open to every user/],
      [["--url", "http://127.0.0.1/", "--unconfined"], /go with a command/],
      [["--hide", "/etc", "--unconfined", "--", "x"], /--hide does not go with --unconfined/],
      [["--prefix", "Bad.", "--", "x"], /--prefix must begin with a letter/],
      [["--env", "NOT_THERE_AT_ALL", "--", "x"], /not in the environment/],
    ];
    for (const [words, why] of wrong) {
      const { status, err } = await provide(...words);
      expect(err).toMatch(why);
      expect(err).not.toContain("secret");
      expect(status).toBe(2);
    }
    const unstartable: readonly (readonly [readonly string[], string])[] = [
      [["--", "/nowhere/at-all"], "there is no such program (ENOENT)"],
      [["--", "no-such-program-anywhere"], "there is no such program (ENOENT)"],
      [["--", file], "it is no program that this user may run (EACCES)"],
      [["--unconfined", "--", "/nowhere/at-all"], "there is no such program (ENOENT)"],
      [["--cwd", file, "--", process.execPath], "its --cwd is no directory"],
      [
        ["--hide", "/nowhere", "--", process.execPath],
        "it can't be confined: what it is not to see is not there",
      ],
    ];
    for (const [words, why] of unstartable) {
      const { status, err } = await provide("--prefix", "mcp.", ...words);
      expect(err).toContain(`callgate: mcp: the server can't be started: ${why}`);
      expect(status).toBe(4);
    }
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
