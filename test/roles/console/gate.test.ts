import { describe, expect, it } from "vitest";
import { KEY_HEADER } from "../../../src/roles/console/api.ts";
import { judge, type Verdict } from "../../../src/roles/console/gate.ts";
import { ConsoleRig, type Login, send } from "./rig.ts";

interface Attempt {
  readonly line?: string;
  /** Of the page's own headers, by name: others, none, or several. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly more?: readonly string[];
  readonly body?: string;
}

const ASK = "POST /api/ask/callgate.approvals.list HTTP/1.1";

/** Sends the page's own request, but for what the attempt changes. */
async function attempt(rig: ConsoleRig, login: Login, given: Attempt): Promise<number> {
  const { line = ASK, headers = {}, more = [], body = "{}" } = given;
  const own = { ...own_(rig, login), ...headers };
  const lines = Object.entries(own).flatMap(([name, value]) =>
    (typeof value === "string" ? [value] : (value ?? [])).map((one) => `${name}: ${one}`),
  );
  const answered = await send(rig.port, line, [...lines, ...more], line.startsWith("GET") ? undefined : body);
  if (answered.status !== 200 && answered.body !== "") {
    // what is no HTTP is answered without a body
    expect(Object.keys(JSON.parse(answered.body) as object)).toEqual(["error"]);
    expect(answered.body).not.toMatch(/evil|login=|callgate_/);
  }
  expect(answered.headers.get("access-control-allow-origin")).toBeUndefined();
  return answered.status;
}

function own_(rig: ConsoleRig, { cookie, key }: Login): Record<string, string> {
  return {
    Host: rig.host,
    Origin: rig.origin,
    "Content-Type": "application/json",
    Cookie: cookie,
    [KEY_HEADER]: key,
  };
}

describe("whoever asks the console to ask the broker", () => {
  /** Each with what is wrong about it; the page's own request beside it goes through. */
  const REFUSED: readonly [string, (rig: ConsoleRig, login: Login) => Attempt, number][] = [
    ["under another host's name", () => ({ headers: { Host: "evil.example" } }), 421],
    [
      "under another host's name with the port",
      (rig) => ({ headers: { Host: `evil.example:${rig.port}` } }),
      421,
    ],
    ["as localhost, which any page can be", (rig) => ({ headers: { Host: `localhost:${rig.port}` } }), 421],
    ["by another spelling of the address", (rig) => ({ headers: { Host: `127.1:${rig.port}` } }), 421],
    ["with a dot behind the host", (rig) => ({ headers: { Host: `127.0.0.1.:${rig.port}` } }), 421],
    ["without the port", () => ({ headers: { Host: "127.0.0.1" } }), 421],
    ["with two hosts", (rig) => ({ headers: { Host: [rig.host, "evil.example"] } }), 421],
    ["with a user in the host", (rig) => ({ headers: { Host: `evil@${rig.host}` } }), 421],
    [
      "by an absolute address",
      (rig) => ({ line: `POST http://${rig.host}/api/ask/callgate.approvals.list HTTP/1.1` }),
      400,
    ],
    [
      "by another host's absolute address",
      () => ({ line: "POST http://evil.example/api/ask/callgate.status HTTP/1.1" }),
      400,
    ],
    [
      "as an older HTTP without a host",
      () => ({ line: ASK.replace("1.1", "1.0"), headers: { Host: undefined } }),
      421,
    ],
    ["without an origin", () => ({ headers: { Origin: undefined } }), 403],
    ["from the origin null", () => ({ headers: { Origin: "null" } }), 403],
    ["from another origin", () => ({ headers: { Origin: "http://evil.example" } }), 403],
    ["from another port", () => ({ headers: { Origin: "http://127.0.0.1:1" } }), 403],
    ["from https", (rig) => ({ headers: { Origin: `https://${rig.host}` } }), 403],
    ["from two origins", (rig) => ({ headers: { Origin: [rig.origin, rig.origin] } }), 403],
    ["from elsewhere, as the browser says", () => ({ more: ["Sec-Fetch-Site: cross-site"] }), 403],
    ["from another port, as the browser says", () => ({ more: ["Sec-Fetch-Site: same-site"] }), 403],
    ["by typing it, as the browser says", () => ({ more: ["Sec-Fetch-Site: none"] }), 403],
    [
      "by a form",
      () => ({ headers: { "Content-Type": "application/x-www-form-urlencoded" }, body: "a=b" }),
      415,
    ],
    ["by a form that looks like JSON", () => ({ headers: { "Content-Type": "text/plain" } }), 415],
    ["by a form of parts", () => ({ headers: { "Content-Type": "multipart/form-data; boundary=x" } }), 415],
    ["with no type", () => ({ headers: { "Content-Type": undefined } }), 415],
    [
      "with a type that begins right",
      () => ({ headers: { "Content-Type": "application/json; text/plain" } }),
      415,
    ],
    ["with no cookie", () => ({ headers: { Cookie: undefined } }), 401],
    ["with no key", () => ({ headers: { [KEY_HEADER]: undefined } }), 401],
    ["with neither", () => ({ headers: { Cookie: undefined, [KEY_HEADER]: undefined } }), 401],
    [
      "with a wrong cookie",
      (rig) => ({ headers: { Cookie: `callgate_${rig.port}=${"A".repeat(43)}` } }),
      401,
    ],
    ["with a wrong key", () => ({ headers: { [KEY_HEADER]: "A".repeat(43) } }), 401],
    [
      "with the cookie as the key",
      (_, { cookie }) => ({ headers: { [KEY_HEADER]: cookie.split("=")[1] } }),
      401,
    ],
    ["with two keys", (_, { key }) => ({ headers: { [KEY_HEADER]: [key, key] } }), 401],
    [
      "with a second cookie of that name",
      (rig, { cookie }) => ({ headers: { Cookie: `${cookie}; callgate_${rig.port}=x` } }),
      401,
    ],
    [
      "with another console's cookie",
      (_, { cookie }) => ({ headers: { Cookie: cookie.replace("_", "_9") } }),
      401,
    ],
    ["with a token of the figures too", () => ({ more: ["Authorization: Bearer x"] }), 403],
    ["by PUT", () => ({ line: ASK.replace("POST", "PUT") }), 405],
    ["by GET", () => ({ line: ASK.replace("POST", "GET") }), 405],
    [
      "by OPTIONS, as another page's browser first does",
      () => ({ line: ASK.replace("POST", "OPTIONS") }),
      405,
    ],
    ["with a query", () => ({ line: ASK.replace(" HTTP", "?x=1 HTTP") }), 400],
    ["by a dotted address", () => ({ line: ASK.replace("/api/", "/api/../api/") }), 400],
    ["by an escaped address", () => ({ line: ASK.replace("/api", "/%61pi") }), 400],
    ["by a doubled slash", () => ({ line: ASK.replace("/api", "//api") }), 400],
    [
      "for a tool that is not of the list",
      () => ({ line: ASK.replace("approvals.list", "calls.settle") }),
      404,
    ],
    [
      "for a tool that is not the broker's",
      () => ({ line: ASK.replace("callgate.approvals.list", "mail.send") }),
      404,
    ],
    ["for the prototype's", () => ({ line: ASK.replace("callgate.approvals.list", "constructor") }), 404],
    ["with a body that is no object", () => ({ body: "[]" }), 400],
    ["with a body that is no JSON", () => ({ body: "{" }), 400],
    [
      "with a body in a coding that nobody knows",
      () => ({ body: "{}", more: ["Transfer-Encoding: x"] }),
      400,
    ],
  ];

  it.each(REFUSED)("%s is refused, and the broker hears nothing of it", async (_, change, status) => {
    const rig = await ConsoleRig.start();
    const login = await rig.logIn();
    const refused = await attempt(rig, login, change(rig, login));
    expect(refused).toBe(status);
    expect(rig.broker.of("approvals.list")).toEqual([]);
    expect(await attempt(rig, login, {})).toBe(200);
    expect(rig.broker.of("approvals.list")).toEqual([{}]);
  });

  it("as the page itself, as an up-to-date browser says, is let through", async () => {
    const rig = await ConsoleRig.start();
    const login = await rig.logIn();
    expect(await attempt(rig, login, { more: ["Sec-Fetch-Site: same-origin"] })).toBe(200);
    expect(await attempt(rig, login, { headers: { Cookie: `a=b; ${login.cookie}; c=d` } })).toBe(200);
  });
});

describe("a login", () => {
  it("is over after the log-out, for its other pages too", async () => {
    const rig = await ConsoleRig.start();
    const login = await rig.logIn();
    const listener = rig.listen(login);
    await listener.has("broker");
    const out = await rig.post("/api/logout", rig.ownHeaders(login), "{}");
    expect(out.status).toBe(200);
    expect(out.headers.get("set-cookie")).toMatch(/^callgate_\d+=; .*Max-Age=0$/);
    await listener.ended();
    expect((await rig.ask(login, "callgate.approvals.list")).status).toBe(401);
  });

  it("does not outlive its console, not even on the same port", async () => {
    const first = await ConsoleRig.start();
    const login = await first.logIn();
    const { port } = first;
    await first.running.close();
    const second = await ConsoleRig.start({}, { port, effects: undefined });
    expect((await second.ask(login, "callgate.approvals.list")).status).toBe(401);
  });

  it("is over after twelve hours, though the page still listens", async () => {
    const rig = await ConsoleRig.start();
    const login = await rig.logIn();
    const listener = rig.listen(login);
    await listener.has("broker");
    const end = rig.clock.nowMs() + 12 * 3_600_000;
    rig.clock.jump(12 * 3_600_000 - 1);
    expect((await rig.ask(login, "callgate.approvals.list")).status).toBe(200);
    while (rig.clock.step(end + 1));
    await listener.ended();
    expect((await rig.ask(login, "callgate.approvals.list")).status).toBe(401);
  });

  it("sets a cookie that scripts can't read and other sites don't send, and gives the key to the page alone", async () => {
    const rig = await ConsoleRig.start();
    const body = JSON.stringify({ token: rig.token() });
    const answered = await rig.post("/api/login", rig.ownHeaders(), body);
    expect(answered.headers.get("set-cookie")).toMatch(
      new RegExp(`^callgate_${rig.port}=[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200$`),
    );
    const { key } = JSON.parse(answered.body) as { key: string };
    expect(key).toMatch(/^[\w-]{43}$/);
    expect(answered.headers.get("set-cookie")).not.toContain(key);
  });

  it("is opened from nowhere but the page: not by a form, not from another origin", async () => {
    const rig = await ConsoleRig.start();
    const body = JSON.stringify({ token: rig.token() });
    for (const [from, to] of [
      ["Content-Type: application/json", "Content-Type: text/plain"],
      [`Origin: ${rig.origin}`, "Origin: null"],
      [`Origin: ${rig.origin}`, "X-Nothing: 1"],
    ] as const) {
      const headers = rig.ownHeaders().map((one) => (one === from ? to : one));
      expect((await rig.post("/api/login", headers, body)).status).toBeGreaterThanOrEqual(403);
    }
    expect((await rig.post("/api/login", rig.ownHeaders(), body)).status).toBe(200);
  });
});

describe("the gate on its own", () => {
  const settings = { host: "127.0.0.1:1", cookie: "callgate_1", metrics: false };
  const judged = (target: string, isOwner: boolean, site?: string): Verdict => {
    const rawHeaders = ["host", settings.host, ...(site === undefined ? [] : ["Sec-Fetch-Site", site])];
    return judge({ method: "GET", target, rawHeaders, isOwner }, settings);
  };

  it("shows the page to its user only, from wherever the link was opened", () => {
    expect(judged("/", true, "cross-site").ok).toBe(true);
    expect(judged("/app.js", true, "same-origin").ok).toBe(true);
    expect(judged("/app.js", true, "cross-site")).toMatchObject({ ok: false, status: 403 });
    expect(judged("/", false)).toMatchObject({ ok: false, status: 403 });
  });

  it("has no other address", () => {
    for (const target of ["/index.html", "/favicon.ico", "/api/events/", "/api", "/page/main.tsx", "*", ""])
      expect(judged(target, true).ok).toBe(false);
  });
});
