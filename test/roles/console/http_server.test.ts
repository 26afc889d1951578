import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { KEY_HEADER } from "../../../src/roles/console/api.ts";
import { startConsole } from "../../../src/roles/console/console.ts";
import { EVERY_HEADER } from "../../../src/roles/console/response_headers.ts";
import { ConsoleRig, exchange, parsed } from "./rig.ts";

/** A connection that stays open, and what has come on it. */
async function opened(port: number, bytes: string) {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(bytes);
  return socket;
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

describe("every answer", () => {
  it("says that nothing foreign runs, is shown or is kept, whatever it answers", async () => {
    const rig = await ConsoleRig.start();
    const login = await rig.logIn();
    const answers = [
      await rig.get("/"),
      await rig.get("/app.js"),
      await rig.get("/app.css"),
      await rig.get("/nothing"),
      await rig.get("/metrics"),
      await rig.get("/", ["Host: evil.example"]),
      await rig.ask(login, "callgate.status"),
      await rig.ask(login, "callgate.nothing"),
      await rig.post("/api/login", rig.ownHeaders(), "{}"),
      await rig.post("/api/login", rig.ownHeaders(), JSON.stringify({ token: rig.token() })),
      await rig.post("/api/logout", rig.ownHeaders(login), "{}"),
      parsed(await exchange(rig.port, "no HTTP at all\r\n\r\n")),
      parsed(
        await exchange(rig.port, `GET / HTTP/1.1\r\nHost: ${rig.host}\r\nX: ${"x".repeat(20_000)}\r\n\r\n`),
      ),
    ];
    expect(answers.map(({ status }) => status)).toEqual([
      200, 200, 200, 404, 404, 421, 200, 404, 401, 200, 200, 400, 400,
    ]);
    for (const { headers } of answers) {
      for (const [name, value] of Object.entries(EVERY_HEADER))
        expect(headers.get(name.toLowerCase())).toBe(value);
      expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });

  it("is no cross-origin permission, also where a browser asks for one", async () => {
    const rig = await ConsoleRig.start();
    const asking = [
      `Host: ${rig.host}`,
      "Origin: http://evil.example",
      "Access-Control-Request-Method: POST",
    ];
    const text = await exchange(rig.port, `OPTIONS /api/login HTTP/1.1\r\n${asking.join("\r\n")}\r\n\r\n`);
    expect(parsed(text).status).toBe(405);
    expect(text.toLowerCase()).not.toContain("access-control");
  });

  it("has a policy that allows scripts and styles of its own files alone", () => {
    const policy = EVERY_HEADER["Content-Security-Policy"] ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
  });

  it("makes a browser forget a worker that another server on this port may have left", async () => {
    const rig = await ConsoleRig.start();
    const answered = await rig.get("/sw.js", [`Host: ${rig.host}`, "Service-Worker: script"]);
    expect(answered.status).toBe(404);
    expect(answered.headers.get("clear-site-data")).toBe('"storage"');
    expect((await rig.get("/")).headers.has("clear-site-data")).toBe(false);
  });
});

describe("a body", () => {
  it("of up to a megabyte is taken, and more is not, declared or not", async () => {
    const rig = await ConsoleRig.start({ "tools.list": { tools: [] } });
    const login = await rig.logIn();
    const asked = (size: number) => rig.ask(login, "callgate.tools.list", { prefix: "x".repeat(size) });
    expect((await asked(1_000_000)).status).toBe(200);
    expect((await asked(1_048_576)).status).toBe(413);
    const chunk = `10000\r\n${"x".repeat(65_536)}\r\n`;
    const headers = [...rig.ownHeaders(login), "Transfer-Encoding: chunked"].join("\r\n");
    const text = await exchange(
      rig.port,
      `POST /api/ask/callgate.tools.list HTTP/1.1\r\n${headers}\r\n\r\n${chunk.repeat(17)}`,
    );
    expect(parsed(text).status).toBe(413);
    expect(rig.broker.of("tools.list")).toHaveLength(1);
  });

  it("goes to the broker as it is, to be read strictly there", async () => {
    const rig = await ConsoleRig.start({ "calls.list": { calls: [], all_seen: true } });
    const login = await rig.logIn();
    const body = `{"session":"a","before":9007199254740993}`;
    expect((await rig.post("/api/ask/callgate.calls.list", rig.ownHeaders(login), body)).status).toBe(200);
    expect(rig.broker.of("calls.list")).toHaveLength(1);
  });

  it("that is no UTF-8 is refused", async () => {
    const rig = await ConsoleRig.start();
    const login = await rig.logIn();
    const socket = await opened(
      rig.port,
      `POST /api/ask/callgate.status HTTP/1.1\r\n${rig.ownHeaders(login).join("\r\n")}\r\nContent-Length: 10\r\n\r\n`,
    );
    socket.write(Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0x22, 0x7d]));
    const [chunk] = (await once(socket, "data")) as [Buffer];
    expect(parsed(String(chunk)).status).toBe(400);
  });
});

describe("hostile HTTP", () => {
  it("of 10,000 requests of rubbish leaves the console as it was", async () => {
    const rig = await ConsoleRig.start({}, { ownerOf: async () => process.getuid?.() });
    const kinds = [
      "\0\0\0\0",
      "GET",
      "GET / HTTP/9.9\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
      `POST /api/login HTTP/1.1\r\nHost: ${rig.host}\r\nContent-Length: 99999999999999999999\r\n\r\n`,
      `POST /api/login HTTP/1.1\r\nHost: ${rig.host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
      `GET / HTTP/1.1\r\nHost: ${rig.host}\r\n${"a: b\r\n".repeat(3000)}\r\n`,
      `GET /${"a".repeat(15_000)} HTTP/1.1\r\nHost: ${rig.host}\r\nConnection: close\r\n\r\n`,
    ];
    for (let round = 0; round < 50; round += 1) {
      const all = Array.from({ length: 200 }, (_, i) => {
        const socket = connect(rig.port, "127.0.0.1");
        socket.on("error", () => undefined);
        socket.resume();
        socket.end(kinds[(round + i) % kinds.length] ?? "");
        return closed(socket);
      });
      await Promise.all(all);
    }
    const login = await rig.logIn();
    expect((await rig.ask(login, "callgate.approvals.list")).status).toBe(200);
  }, 240_000);

  it.each([
    ["a line that never ends", "GET / HTTP/1.1\r\nHost: "],
    ["nothing at all", ""],
  ])("of %s is ended by the console, and nobody else waits for it", async (_, bytes) => {
    const rig = await ConsoleRig.start();
    const socket = await opened(rig.port, bytes);
    expect((await rig.get("/")).status).toBe(200);
    await closed(socket.resume());
  });

  it("of many requests at once on one connection ends that connection", async () => {
    const rig = await ConsoleRig.start({ "grants.list": () => new Promise<object>(() => {}) });
    const login = await rig.logIn();
    const one = `POST /api/ask/callgate.grants.list HTTP/1.1\r\n${rig.ownHeaders(login).join("\r\n")}\r\nContent-Length: 2\r\n\r\n{}`;
    const text = await exchange(rig.port, one.repeat(1000));
    expect(text).toBe("");
    expect((await rig.get("/")).status).toBe(200);
  });

  it("asks too much at once and hears so, and nothing of it is kept when it leaves", async () => {
    const rig = await ConsoleRig.start({ "grants.list": () => new Promise<object>(() => {}) });
    const login = await rig.logIn();
    const one = `POST /api/ask/callgate.grants.list HTTP/1.1\r\n${rig.ownHeaders(login).join("\r\n")}\r\nContent-Length: 2\r\n\r\n{}`;
    const sockets = await Promise.all(Array.from({ length: 64 }, () => opened(rig.port, one)));
    let last = await rig.ask(login, "callgate.tools.list");
    while (last.status === 200) last = await rig.ask(login, "callgate.tools.list"); // until all of them have arrived
    expect(last.status).toBe(429);
    for (const socket of sockets) socket.destroy();
    while (last.status === 429) last = await rig.ask(login, "callgate.tools.list");
    expect(last.status).toBe(200);
  });
});

describe("the port", () => {
  it("that is in use is named in a sentence", async () => {
    const rig = await ConsoleRig.start();
    const second = await startConsole({
      ...{ to: { path: rig.broker.path }, session: "s", address: "127.0.0.1", port: rig.port },
      say: () => undefined,
    });
    expect(second).toEqual({
      ok: false,
      fault: `127.0.0.1 port ${rig.port} is in use: give another --port, or none for a free one`,
    });
  });

  it("is open on the loopback address alone", async () => {
    const rig = await ConsoleRig.start();
    const elsewhere = connect(rig.port, "127.0.0.2");
    const [error] = (await once(elsewhere, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNREFUSED");
  });

  it("of IPv6 has its own name, and no other", async () => {
    const rig = await ConsoleRig.start({}, { address: "::1" });
    const { url } = rig.running.newLink();
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+\/#login=[\w-]{43}$/);
    const asked = async (host: string) => {
      const socket = connect(rig.port, "::1");
      onTestFinished(() => void socket.destroy());
      socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      const [chunk] = (await once(socket, "data")) as [Buffer];
      return parsed(String(chunk)).status;
    };
    expect(await asked(`[::1]:${rig.port}`)).toBe(200);
    expect(await asked(`127.0.0.1:${rig.port}`)).toBe(421);
    expect(await asked(`[0:0:0:0:0:0:0:1]:${rig.port}`)).toBe(421);
  });
});

describe("another user", () => {
  /** The lookup says that every connection is somebody else's. */
  it("who has the cookie and the key is refused all the same, and may hold few connections", async () => {
    let uid = process.getuid?.();
    const rig = await ConsoleRig.start({}, { ownerOf: async () => uid });
    const login = await rig.logIn();
    for (uid of [61_234, 0, undefined].filter((one) => one !== process.getuid?.())) {
      expect((await rig.ask(login, "callgate.approvals.list")).status).toBe(403);
      expect((await rig.get("/")).status).toBe(403);
      expect(
        (
          await rig.get("/api/events", [
            `Host: ${rig.host}`,
            `Cookie: ${login.cookie}`,
            `${KEY_HEADER}: ${login.key}`,
          ])
        ).status,
      ).toBe(403);
      expect(
        (await rig.post("/api/login", rig.ownHeaders(), JSON.stringify({ token: rig.token() }))).status,
      ).toBe(403);
    }
    expect(rig.broker.of("approvals.list")).toEqual([]);
    const held = await Promise.all(Array.from({ length: 40 }, () => opened(rig.port, "GET / HTTP/1.1\r\n")));
    await Promise.race(held.map(closed)); // those above the bound
    uid = process.getuid?.();
    expect((await rig.ask(login, "callgate.approvals.list")).status).toBe(200);
  });

  it("who leaves before it is known whose the connection was takes no room from those who come later", async () => {
    let release = (_: number): void => undefined;
    let looked = 0;
    const known = new Promise<number>((resolve) => {
      release = resolve;
    });
    const ownerOf = () => {
      looked += 1;
      return known;
    };
    const rig = await ConsoleRig.start({}, { ownerOf });
    const gone = await Promise.all(Array.from({ length: 40 }, () => opened(rig.port, "no HTTP\r\n\r\n")));
    await Promise.all(gone.map((socket) => closed(socket.resume()))); // the server ends each, since it is no HTTP
    expect(looked).toBe(40);
    release(61_234);
    expect((await rig.get("/")).status).toBe(403); // an answer, and not just the end of the connection
  });

  it("is nobody's where the lookup itself fails", async () => {
    const rig = await ConsoleRig.start({}, { ownerOf: () => Promise.reject(new Error("EIO")) });
    expect((await rig.get("/")).status).toBe(403);
  });
});
