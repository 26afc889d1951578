import { describe, expect, it } from "vitest";
import { serverEnvironment } from "../../../../src/roles/mcp/provide/environment.ts";
import { ExactArguments } from "../../../../src/roles/mcp/provide/exact_arguments.ts";
import { guardedFetch } from "../../../../src/roles/mcp/provide/guarded_fetch.ts";
import { isHeadersText, parseHeaders } from "../../../../src/roles/mcp/provide/header_lines.ts";
import { LineReader } from "../../../../src/roles/mcp/provide/line_reader.ts";
import { ServerText } from "../../../../src/roles/mcp/provide/server_text.ts";
import { readTools } from "../../../../src/roles/mcp/provide/tool_table.ts";

describe("lines", () => {
  it("are the same however the bytes are cut", () => {
    const bytes = Buffer.from('one\n\ntwé "\n3');
    for (let at = 0; at <= bytes.length; at++) {
      const reader = new LineReader(20);
      const taken = [bytes.subarray(0, at), bytes.subarray(at)].flatMap((piece) => {
        const lines = reader.take(piece);
        return lines.ok ? lines.value.map(String) : ["fault"];
      });
      expect([...taken, String(reader.rest())]).toEqual(["one", "", 'twé "', "3"]);
    }
  });

  it("are refused one byte above the bound, whole or not", () => {
    expect(new LineReader(3).take(Buffer.from("abc\nabc")).ok).toBe(true);
    expect(new LineReader(3).take(Buffer.from("abcd\n"))).toEqual({ ok: false, fault: "too_long" });
    expect(new LineReader(3).take(Buffer.from("abcd"))).toEqual({ ok: false, fault: "too_long" });
  });
});

describe("a server's environment", () => {
  const ours = { PATH: "/bin", HOME: "/h", TOKEN: "t", CALLGATE_SOCKET: "/s" };

  it("is what was given, and PATH and HOME", () => {
    expect(serverEnvironment([], ours)).toEqual({ ok: true, value: { PATH: "/bin", HOME: "/h" } });
    expect(serverEnvironment(["TOKEN", "A=b=c", "HOME=/x"], ours)).toEqual({
      ok: true,
      value: { PATH: "/bin", HOME: "/x", TOKEN: "t", A: "b=c" },
    });
  });

  it("has nothing of callgate's, nothing that is not there, and no odd name", () => {
    for (const given of ["CALLGATE_SOCKET", "CALLGATE_X=1", "ABSENT", "1A=b", "", "=b", "A B=c", "A=\0"])
      expect(serverEnvironment([given], ours).ok).toBe(false);
  });
});

describe("a file of headers", () => {
  it("is names and values, with comments", () => {
    expect(parseHeaders("# mine\r\nAuthorization: Bearer a:b c\n\nX-Y:  z \n")).toEqual({
      ok: true,
      value: { authorization: "Bearer a:b c", "x-y": "z" },
    });
  });

  it("is refused by the line, which is not quoted", () => {
    for (const text of [
      "a: b\nsecret",
      "a: b\nX y: secret",
      "a: b\na: secret",
      "a: b\nHost: secret",
      "a: b\nc:",
    ]) {
      const parsed = parseHeaders(text);
      expect(parsed.ok ? "" : parsed.fault).toContain("line 2");
      expect(JSON.stringify(parsed)).not.toContain("secret");
    }
    expect(isHeadersText(Buffer.from("a: \u0000"))).toBe(false);
  });
});

describe("what a server says on its standard error", () => {
  it("is escaped, cut and counted", () => {
    const said: string[] = [];
    let nowMs = 0;
    const text = new ServerText({ say: (line) => said.push(line), monotonicMs: () => nowMs });
    text.take(Buffer.from("a\u001b[2Jb\n".repeat(300)));
    text.take(Buffer.from("x".repeat(10_000)));
    nowMs = 10_000;
    text.take(Buffer.from("\nlast"));
    text.end();
    expect(said[0]).toBe("server: a\\u{1b}[2Jb");
    expect(said).toHaveLength(202);
    expect(said.at(-2)).toBe("(101 more lines of the server's left out)");
    expect(said.at(-1)).toBe("server: last");
  });
});

describe("exact arguments", () => {
  it("take the place of the value, whatever they hold", () => {
    const exact = new ExactArguments();
    const text = '{"n":9007199254740993,"toJSON":"$&$1","__proto__":{"a":1}}';
    const held = exact.hold(text)!;
    const message = JSON.stringify({ id: 1, params: { arguments: held.value, _meta: {} } });
    expect(exact.spliced(message)).toBe(`{"id":1,"params":{"arguments":${text},"_meta":{}}}`);
  });

  it("of a call that is over by then are not sent, nor any others in their place: nobody has decided on those", async () => {
    const exact = new ExactArguments();
    const held = exact.hold('{"path":"/srv/old"}')!;
    const body = JSON.stringify({ id: 1, method: "tools/call", params: { arguments: held.value } });
    held.release();
    expect(exact.spliced(body)).toBeUndefined();
    const sent: unknown[] = [];
    const ask = guardedFetch({
      exact,
      fetch: async (_, init) => {
        sent.push(init?.body);
        return new Response("{}");
      },
    });
    await expect(ask("http://127.0.0.1/", { method: "POST", body })).rejects.toThrow("the call is over");
    expect(sent).toEqual([]);
  });

  it("are one object, and nothing else", () => {
    for (const text of ["[]", "null", "1", "{", '"{}"'])
      expect(new ExactArguments().hold(text)).toBeUndefined();
  });
});

describe("asking over HTTP", () => {
  const ask = (body: string, type: string, bytesMax: number) =>
    guardedFetch({
      exact: new ExactArguments(),
      fetch: async () => new Response(body, { headers: { "content-type": type } }),
      bytesMax,
    })("http://127.0.0.1/", {});

  it("reads no answer beyond its bound", async () => {
    expect(await (await ask("x".repeat(100), "application/json", 100)).text()).toHaveLength(100);
    await expect((await ask("x".repeat(101), "application/json", 100)).text()).rejects.toThrow("100 bytes");
  });

  it("reads events without end, but none beyond the bound", async () => {
    const events = "data: 12345\r\n\r\n".repeat(1000);
    expect(await (await ask(events, "text/event-stream", 20)).text()).toBe(events);
    const long = `data: 12345\n\n${"data: 12345\n".repeat(3)}\n`;
    await expect((await ask(long, "text/event-stream", 20)).text()).rejects.toThrow("20 bytes");
  });
});

describe("a server's list", () => {
  const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: "object" }, ...more });

  it("leaves out what can't be served, and says why", () => {
    const listed = [
      tool("a"),
      tool("a"),
      null,
      5,
      { name: "b" },
      tool(""),
      tool("x".repeat(257)),
      tool("\u001b"),
    ];
    const { entries, leftOut } = readTools(listed, "p.", new Set(), new Map());
    expect([...entries.values()].map(({ tool: { name } }) => name)).toEqual(["a", "\u001b"]);
    expect(leftOut).toHaveLength(6);
    expect(leftOut[0]).toBe("the tool a is left out: another has the same name");
  });

  it("keeps the entry of a tool that is as it was, and makes another of one that changed", () => {
    const before = readTools([tool("a"), tool("b")], "", new Set(), new Map()).entries;
    const after = readTools([tool("a"), tool("b", { description: "new" })], "", new Set(), before).entries;
    expect(after.get("a")).toBe(before.get("a"));
    expect(after.get("b")).not.toBe(before.get("b"));
  });

  it("drops pictures that are too large, and a tool that is too large without them", () => {
    const icons = [{ src: "x".repeat(70_000) }];
    const { entries, leftOut } = readTools(
      [tool("a", { icons }), tool("b", { _meta: { icons } })],
      "",
      new Set(),
      new Map(),
    );
    expect(entries.get("a")?.tool).toEqual(tool("a"));
    expect(leftOut).toEqual([expect.stringContaining("the tool b is left out: its definition is longer")]);
  });
});
