import { describe, expect, it } from "vitest";
import { kindOf, loadFault, verdictOf } from "./condition_fixture.ts";

function asked(call: string, value: unknown, request?: string): string {
  return kindOf(call, JSON.stringify({ v: value }), { request });
}

/** No function judges these, whatever else it is for. */
const ODD_VALUES: readonly unknown[] = [null, true, 1.5, [], ["x"], {}, { path: "/etc" }];
const ODD_TEXTS: readonly string[] = [
  "\u0000",
  "a\u0000b",
  "a\nb",
  "a\u202eb",
  "a\u200bb",
  "a\u2028b",
  "a\u00adb",
  "\ufeffa",
];

const FUNCTIONS = [
  ["under", "under(args.v, '/etc')", (text: string) => `/etc/${text}`],
  ["host_in", "host_in(args.v, ['bank.example'])", (text: string) => `https://bank.example/${text}`],
  ["address_in", "address_in(args.v, ['@bank.example'])", (text: string) => `a${text}@bank.example`],
  ["in_request", "in_request(args.v)", (text: string) => text],
] as const;

describe.each(FUNCTIONS)("%s", (_, call, wrapped) => {
  const request = "words of the user";

  it.each(ODD_VALUES)("errors on %j, which is no text", (value) => {
    expect(asked(call, value, request)).toBe("error");
  });

  it.each(ODD_TEXTS)("errors on a text with the odd character of %j", (text) => {
    expect(asked(call, text, request)).toBe("error");
    expect(asked(call, wrapped(text), request)).toBe("error");
    expect(asked(call, wrapped(`x${text}x`), request)).toBe("error");
  });

  it("errors on an empty text and on a missing member", () => {
    expect(asked(call, "", request)).toBe("error");
    expect(kindOf(call, "{}", { request })).toBe("error");
  });

  it("errors on a text that is far too long", () => {
    expect(asked(call, wrapped("x".repeat(20_000)), request)).toBe("error");
  });

  it("errors the same when negated", () => {
    for (const value of [...ODD_VALUES, ...ODD_TEXTS])
      expect(asked(`!${call}`, value, request)).toBe("error");
  });
});

describe("under(path, dir)", () => {
  it.each([
    ["/etc", "match"],
    ["/etc/", "match"],
    ["/etc/passwd", "match"],
    ["/etc/a b/c%d/.env", "match"],
    ["/etc/...x", "match"],
    ["/etc/grün", "match"],
    ["/etcetera", "no_match"],
    ["/et", "no_match"],
    ["/", "no_match"],
    ["/srv/etc", "no_match"],
    ["/ETC/passwd", "no_match"],
    ["/srv/../etc", "error"],
    ["/etc/..", "error"],
    ["/etc/./x", "error"],
    ["/etc/.", "error"],
    ["/./etc", "error"],
    ["/etc.", "error"],
    ["/etc./passwd", "error"],
    ["/etc/...", "error"],
    ["//etc", "error"],
    ["/etc//", "error"],
    ["//", "error"],
    ["/etc//passwd", "error"],
    ["etc/passwd", "error"],
    ["./etc", "error"],
    ["~/etc", "error"],
    [" /etc", "error"],
    ["file:///etc/passwd", "error"],
    ["/%65tc/passwd", "error"],
    ["/srv/%2e%2e/etc", "error"],
    ["/srv%2fetc", "error"],
    ["/etc%00", "error"],
    ["/etc\\passwd", "error"],
    ["\\etc", "error"],
    ["/srv/\u2025/etc", "error"],
    ["/srv/\uff0e\uff0e/etc", "error"],
    ["/srv\uff0fetc", "error"],
    ["/srv/\u202e/etc", "error"],
    ["/etc/\u007f", "error"],
    ["/etc/\u0085", "error"],
  ])("judges %j below /etc: %s", (path, kind) => {
    expect(asked("under(args.v, '/etc')", path)).toBe(kind);
    expect(asked("under(args.v, '/etc/')", path)).toBe(kind);
  });

  it("takes `/` for what is above every path", () => {
    expect(asked("under(args.v, '/')", "/x")).toBe("match");
    expect(asked("under(args.v, '/')", "/")).toBe("match");
    expect(asked("under(args.v, '/')", "x")).toBe("error");
  });

  it("judges the directory as strictly: at load where it is written down, else at the call", () => {
    for (const dir of ["", "etc", "/etc/..", "//", "/e%74c"])
      expect(loadFault(`under(args.v, '${dir}')`)).toMatch(/^column 1: `under`: the directory is unusable/);
    expect(kindOf("under(args.v, args.d)", '{"v":"/etc/x","d":"/etc"}')).toBe("match");
    expect(kindOf("under(args.v, args.d)", '{"v":"/etc/x","d":"etc"}')).toBe("error");
    expect(kindOf("under(args.v, args.d)", '{"v":"/etc/x","d":""}')).toBe("error");
    expect(kindOf("under(args.v, args.d)", '{"v":"/etc/x","d":1}')).toBe("error");
  });
});

describe("host_in(url, list)", () => {
  const LIST =
    "host_in(args.v, ['bank.example', '*.shop.example', '127.0.0.1', '[::1]', 'xn--bnk-qla.example'])";

  it.each([
    ["https://bank.example/", "match"],
    ["http://bank.example/x?y=1#z", "match"],
    ["https://bank.example:8443/", "match"],
    ["https://a.shop.example/", "match"],
    ["https://a.b.shop.example/", "match"],
    ["http://127.0.0.1/", "match"],
    ["http://[::1]:8080/", "match"],
    ["https://shop.example/", "no_match"],
    ["https://evilshop.example/", "no_match"],
    ["https://www.bank.example/", "no_match"],
    ["https://bank.example.evil.test/", "no_match"],
    ["https://evil.test/bank.example/", "no_match"],
    ["https://evil.test/?u=https://bank.example/", "no_match"],
    ["https://evil.test/#@bank.example", "no_match"],
    ["https://xn--bank-yga.example/", "no_match"],
    ["https://bank.example@evil.test/", "error"],
    ["https://evil.test@bank.example/", "error"],
    ["https://u:p@bank.example/", "error"],
    ["https://@bank.example/", "error"],
    ["https://bank.example", "error"],
    ["HTTPS://bank.example/", "error"],
    ["https://BANK.example/", "error"],
    ["https://bank.example./", "error"],
    ["https://bank.example:443/", "error"],
    ["http://bank.example:80/", "error"],
    ["https://bank.example\\@evil.test/", "error"],
    ["https:\\\\bank.example/", "error"],
    ["https:/bank.example/", "error"],
    ["https:bank.example", "error"],
    ["//bank.example/", "error"],
    ["bank.example", "error"],
    ["/bank.example", "error"],
    [" https://bank.example/", "error"],
    ["https://bank.example/ ", "error"],
    ["https://bank.example/a/../b", "error"],
    ["https://bank.example/%2e%2e/b", "error"],
    ["https://bank.example/a b", "error"],
    ["https://bank%2eexample/", "error"],
    ["https://b\u0430nk.example/", "error"],
    ["https://bank\u3002example/", "error"],
    ["https://bank.exam\u00adple/", "error"],
    ["http://127.1/", "error"],
    ["http://0x7f000001/", "error"],
    ["http://2130706433/", "error"],
    ["http://[0:0:0:0:0:0:0:1]/", "error"],
    ["ftp://bank.example/", "error"],
    ["file://bank.example/", "error"],
    ["ws://bank.example/", "error"],
    ["javascript:alert(1)", "error"],
    ["data:text/plain,bank.example", "error"],
    ["mailto:a@bank.example", "error"],
    ["https://", "error"],
  ])("judges %j: %s", (url, kind) => {
    expect(asked(LIST, url)).toBe(kind);
  });

  it.each([
    "",
    "Bank.example",
    "bank.example.",
    ".bank.example",
    "bank..example",
    "*",
    "*.",
    "a.*.example",
    "https://bank.example",
    "bank.example:443",
    "bank.example/",
    "u@bank.example",
    "bänk.example",
    "127.1",
    "*.127.0.0.1",
    "[0::1]",
    "bank example",
  ])("refuses the list entry %j at load, and errors where it comes with the call", (entry) => {
    expect(loadFault(`host_in(args.v, ['a.example', '${entry}'])`)).toMatch(
      /^column 1: `host_in`: a host is written/,
    );
    expect(
      kindOf("host_in(args.v, args.l)", JSON.stringify({ v: "https://a.example/", l: ["a.example", entry] })),
    ).toBe("error");
  });

  it("takes a list from the call, if all of it are hosts", () => {
    expect(kindOf("host_in(args.v, args.l)", '{"v":"https://a.example/","l":["a.example"]}')).toBe("match");
    expect(kindOf("host_in(args.v, args.l)", '{"v":"https://a.example/","l":[]}')).toBe("no_match");
    for (const list of ['"a.example"', "[1]", "null", '{"a.example":1}', '["a.example",null]'])
      expect(kindOf("host_in(args.v, args.l)", `{"v":"https://a.example/","l":${list}}`)).toBe("error");
  });
});

describe("address_in(text, list)", () => {
  const LIST = "address_in(args.v, ['ann@bank.example', '@shop.example'])";

  it.each([
    ["ann@bank.example", "match"],
    ["ann@BANK.example", "match"],
    ["bob@shop.example", "match"],
    ["b.o+b-x_1@Shop.Example", "match"],
    ["bob@bank.example", "no_match"],
    ["ann@evil.test", "no_match"],
    ["ann@bank.example.evil.test", "no_match"],
    ["ann@a.shop.example", "no_match"],
    ["ann@evilshop.example", "no_match"],
    ["Ann@bank.example", "error"],
    ["ann@bank.example,eve@evil.test", "error"],
    ["ann@bank.example eve@evil.test", "error"],
    ["ann@bank.example;eve@evil.test", "error"],
    ["<ann@bank.example>", "error"],
    ["Ann <ann@bank.example>", "error"],
    ["ann@bank.example <eve@evil.test>", "error"],
    ['"ann@bank.example" <eve@evil.test>', "error"],
    ['"ann"@bank.example', "error"],
    ["ann(x)@bank.example", "error"],
    ["ann@bank.example(x)", "error"],
    ["friends: ann@bank.example;", "error"],
    ["ann@bank.example@evil.test", "error"],
    ["ann%evil.test@shop.example", "error"],
    ["evil.test!ann@shop.example", "error"],
    ["@evil.test:ann@shop.example", "error"],
    ["ann@[127.0.0.1]", "error"],
    ["ann@127.0.0.1", "error"],
    ["-oQ@shop.example", "error"],
    [".ann@shop.example", "error"],
    ["ann.@shop.example", "error"],
    ["a..b@shop.example", "error"],
    ["ann@shop.example.", "error"],
    ["ann@.shop.example", "error"],
    ["ann@", "error"],
    ["@shop.example", "error"],
    ["ann", "error"],
    ["mailto:ann@bank.example", "error"],
    [" ann@bank.example", "error"],
    ["ann@bank.example\n", "error"],
    ["ann@bank.example\r\nBcc: eve@evil.test", "error"],
    ["\u0430nn@bank.example", "error"],
    ["ann@b\u00e4nk.example", "error"],
    ["ann@bank\u3002example", "error"],
    ["ann@\u212aank.example", "error"],
    [`${"a".repeat(65)}@shop.example`, "error"],
  ])("judges %j: %s", (text, kind) => {
    expect(asked(LIST, text)).toBe(kind);
  });

  it.each([
    "",
    "@",
    "ann",
    "ann@",
    "@@bank.example",
    "Ann <ann@bank.example>",
    "@Bank.example",
    "*@bank.example",
    "@*.bank.example",
    "@127.0.0.1",
  ])("refuses the list entry %j at load", (entry) => {
    expect(loadFault(`address_in(args.v, ['${entry}'])`)).toMatch(
      /^column 1: `address_in`: an address is written/,
    );
  });
});

describe("in_request(value)", () => {
  const REQUEST =
    'Pay 250 EUR to "ACME", (see https://acme.example/x?y=1). Mail ann@acme.example! And .env, ‘quoted’;\nlast.';

  it.each<[unknown, string]>([
    ["250", "match"],
    [250, "match"],
    ["ACME", "match"],
    ["https://acme.example/x?y=1", "match"],
    ["ann@acme.example", "match"],
    [".env", "match"],
    ["quoted", "match"],
    ["last", "match"],
    ["Pay", "match"],
    ["pay", "no_match"],
    [25, "no_match"],
    [2500, "no_match"],
    ["AC", "no_match"],
    ["CME", "no_match"],
    ["acme.example", "no_match"],
    ["https://acme.example/", "no_match"],
    ["env", "no_match"],
    ["last.", "no_match"],
    ['"ACME"', "no_match"],
    ["ann", "no_match"],
    [".", "no_match"],
    ["250 EUR", "error"],
    [250.0001, "error"],
    ["to\u200b", "error"],
  ])("judges %j: %s", (value, kind) => {
    expect(asked("in_request(args.v)", value, REQUEST)).toBe(kind);
  });

  it("errors where the session was opened without words", () => {
    expect(verdictOf("in_request(args.v)", '{"v":"x"}')).toMatchObject({
      why: expect.stringContaining("without a request"),
    });
    expect(asked("in_request(args.v)", "x", "")).toBe("no_match");
  });

  it("finds a word behind a look-alike that is not one", () => {
    expect(asked("in_request(args.v)", "ann", "annie (ann")).toBe("match");
    expect(asked("in_request(args.v)", "aa", "aaa aa")).toBe("match");
  });
});
