import { describe, expect, it } from "vitest";
import { kindOf, loadFault, verdictOf } from "./condition_fixture.ts";

describe("values of the wrong type", () => {
  it.each<[string, string]>([
    ["args.a > 100", '{"a":"1000"}'],
    ["args.a > 100", '{"a":null}'],
    ["args.a > 100", '{"a":true}'],
    ["args.a > 100", '{"a":[101]}'],
    ["args.a > 100", "{}"],
    ["args.a > 100", '{"A":1000}'],
    ["args.a > 'x'", '{"a":1}'],
    ["args.a == 'w'", '{"a":1}'],
    ["args.a == 'w'", '{"a":["w"]}'],
    ["args.a == 'w'", '{"a":null}'],
    ["args.a != 'w'", '{"a":["w"]}'],
    ["args.a == true", '{"a":"true"}'],
    ["args.a == 1", '{"a":"1"}'],
    ["args.a == ['x']", '{"a":[1]}'],
    ["args.a in ['x', 'y']", '{"a":1}'],
    ["args.a in ['x', 'y']", '{"a":["x"]}'],
    ["'admin' in args.a", '{"a":["user",1]}'],
    ["'admin' in args.a", '{"a":"admin"}'],
    ["1 in args.a", '{"a":{"1":1}}'],
    ["args.a", '{"a":"true"}'],
    ["args.a", '{"a":1}'],
    ["!args.a", '{"a":"false"}'],
    ["args.a && true", '{"a":1}'],
    ["true && args.a", '{"a":"true"}'],
    ["args.a ? true : true", '{"a":1}'],
    ["args.a.b == 1", '{"a":[1]}'],
    ["args.a.b == 1", '{"a":null}'],
    ["args.a[0] == 1", '{"a":{"0":1}}'],
    ["args.a['b'] == 1", '{"a":[1]}'],
    ["args.a[1.0] == 1", '{"a":[1,1]}'],
    ["args.a[1] == 1", '{"a":[1]}'],
    ["args.a[-1] == 1", '{"a":[1]}'],
    ["has(args.a.b)", '{"a":"x"}'],
    ["has(args.a.b)", "{}"],
    ["args.a + 1 > 0", '{"a":"1"}'],
    ["args.a + 1 > 0", '{"a":1.5}'],
    ["-args.a < 0", '{"a":"1"}'],
    ["size(args.a) > 0", '{"a":1}'],
    ["args.a.startsWith('/')", '{"a":["/"]}'],
    ["args.a.contains('x')", '{"a":["x"]}'],
    ["args.a.matches('x')", '{"a":["x"]}'],
    ["args.a.all(x, x)", '{"a":"xx"}'],
    ["args.a.all(x, x)", '{"a":[true,1]}'],
    ["args.a.exists(x, x == 1)", '{"a":["x",1]}'],
    ["args.a.exists_one(x, x == 1)", '{"a":[1,"x"]}'],
    ["args.a.filter(x, x > 1) == [2]", '{"a":[2,"x"]}'],
    ["args.a.map(x, x + 1) == [2]", '{"a":["x"]}'],
    ["int(args.a) > 1", '{"a":""}'],
    ["int(args.a) > 1", '{"a":"0x10"}'],
    ["int(args.a) > 1", '{"a":" 5 "}'],
    ["int(args.a) > 1", '{"a":"9223372036854775808"}'],
    ["int(args.a) > 100", '{"a":100.9}'],
    ["double(args.a) > 1.0", '{"a":"abc"}'],
    ["double(args.a) > 1.0", '{"a":""}'],
    ["double(args.a) > 1.0", '{"a":"Infinity"}'],
    ["double(args.a) > 1.0", '{"a":"1e999"}'],
  ])("makes %s an error on %s", (source, args) => {
    expect(kindOf(source, args)).toBe("error");
  });

  it.each([
    ["args.a == null", '{"a":null}', "match"],
    ["args.a == null", '{"a":"x"}', "no_match"],
    ["args.a != null", '{"a":"x"}', "match"],
    ["null == args.a", '{"a":[]}', "no_match"],
    ["type(args.a) == string && args.a == 'x'", '{"a":1}', "no_match"],
    ["type(args.a) == int", '{"a":1}', "match"],
    ["type(args.a) == double", '{"a":1.0}', "match"],
    ["type(args.a) == list || type(args.a) == map", '{"a":{}}', "match"],
    ["type(args.a) == null_type", '{"a":null}', "match"],
  ])("lets %s be asked of %s: %s", (source, args, kind) => {
    expect(kindOf(source, args)).toBe(kind);
  });
});

describe("members", () => {
  it.each([
    ["has(args.a)", '{"a":1}', "match"],
    ["has(args.a)", "{}", "no_match"],
    ["has(args.a)", '{"a":null}', "match"],
    ["'a' in args", '{"a":null}', "match"],
    ["has(args.a) && has(args.a.b) && args.a.b > 1", '{"a":{"b":2}}', "match"],
    ["has(args.a) && has(args.a.b) && args.a.b > 1", '{"a":{}}', "no_match"],
    ["args.a.b.c[1].d == 'x'", '{"a":{"b":{"c":[0,{"d":"x"}]}}}', "match"],
    ["args['a b'] == 1", '{"a b":1}', "match"],
    ["args.all(name, name in ['path', 'mode'])", '{"path":"x","mode":"r"}', "match"],
    ["args.all(name, name in ['path', 'mode'])", '{"path":"x","force":true}', "no_match"],
    ["size(args) == 2", '{"a":1,"b":2}', "match"],
    ["args.__proto__ == 'x'", '{"__proto__":"x"}', "match"],
    ["has(args.__proto__)", "{}", "no_match"],
    ["has(args.constructor)", "{}", "no_match"],
    ["has(args.toString)", "{}", "no_match"],
    ["'hasOwnProperty' in args", "{}", "no_match"],
    ["args.constructor.name == 'Map'", "{}", "error"],
    ["args.size == 1", '{"size":1}', "match"],
    ["args.get == 1", "{}", "error"],
  ])("reads %s over %s: %s", (source, args, kind) => {
    expect(kindOf(source, args)).toBe(kind);
  });

  it("names the missing member that the owner wrote, never a value", () => {
    expect(verdictOf("args.amount > 1")).toStrictEqual({
      kind: "error",
      why: "column 5: there is no member `amount`",
    });
    for (const source of [
      "args.a > 1",
      "under(args.a, '/x')",
      "host_in(args.a, ['x.test'])",
      "in_request(args.a)",
      "args.a",
      "args[args.a] == 1",
      "int(args.a) == 1",
      "address_in(args.a, ['@x.test'])",
    ])
      expect(JSON.stringify(verdictOf(source, '{"a":"sesame"}'))).not.toContain("sesame");
  });
});

describe("numbers", () => {
  it.each([
    ["args.a > 100", '{"a":100.5}', "match"],
    ["args.a > 100", '{"a":1e2}', "no_match"],
    ["args.a > 100.5", '{"a":101}', "match"],
    ["args.a == 1", '{"a":1.0}', "match"],
    ["args.a == 0", '{"a":-0.0}', "match"],
    ["args.a in [1, 2]", '{"a":2.0}', "match"],
    ["args.a > 9007199254740992.0", '{"a":9007199254740993}', "match"],
    ["args.a == 9007199254740992.0", '{"a":9007199254740993}', "no_match"],
    ["args.a == 9223372036854775807", '{"a":9223372036854775807}', "match"],
    ["args.a < 0", '{"a":-9223372036854775808}', "match"],
    ["args.a + 1 > 0", '{"a":9223372036854775807}', "error"],
    ["args.a - 1 < 0", '{"a":-9223372036854775808}', "error"],
    ["args.a * 2 > 0", '{"a":9223372036854775807}', "error"],
    ["-args.a > 0", '{"a":-9223372036854775808}', "error"],
    ["args.a / 0 == 1", '{"a":1}', "error"],
    ["args.a % 0 == 1", '{"a":1}', "error"],
    ["args.a / 0.0 > 1.0", '{"a":1.0}', "error"],
    ["args.a * 10.0 > 1.0", '{"a":1e308}', "error"],
    ["args.a / 2 == 3 && args.a % 2 == 1", '{"a":7}', "match"],
  ])("computes %s over %s: %s", (source, args, kind) => {
    expect(kindOf(source, args)).toBe(kind);
  });

  it.each(["9223372036854775808", "-9223372036854775809", "18446744073709551616", "9".repeat(300)])(
    "errors on the integer %s wherever the condition looks at arguments, short-circuited or not",
    (digits) => {
      for (const args of [`{"a":${digits},"b":"x"}`, `{"a":1,"b":"x","c":[{"d":[${digits}]}]}`]) {
        expect(kindOf("args.a > 100", args)).toBe("error");
        expect(kindOf("args.b == 'y' && args.a > 100", args)).toBe("error");
        expect(kindOf("args.b == 'x' || args.a > 100", args)).toBe("error");
        expect(kindOf("has(args.z)", args)).toBe("error");
        expect(kindOf("session == 'mm-1'", args)).toBe("match");
      }
    },
  );
});

describe("an error that `&&` and `||` have met", () => {
  it.each([
    ["under(args.p, '/etc') && args.m == 'w'", "error"],
    ["under(args.p, '/etc') || args.m == 'r'", "error"],
    ["args.m == 'r' || under(args.p, '/etc')", "match"],
    ["args.m == 'w' && under(args.p, '/etc')", "no_match"],
    ["args.m == 'r' && under(args.p, '/etc')", "error"],
    ["!(under(args.p, '/etc') && args.m == 'w')", "error"],
    ["args.m == 'r' ? under(args.p, '/etc') : true", "error"],
    ["under(args.p, '/etc') ? true : true", "error"],
    ["[args.p, '/etc/x'].exists(p, under(p, '/etc'))", "error"],
    ["['/srv', args.p].all(p, under(p, '/etc'))", "no_match"],
    ["[args.p, '/srv'].all(p, under(p, '/etc'))", "error"],
    ["[args.p, '/etc/x'].exists_one(p, under(p, '/etc'))", "error"],
    ["size([args.p, '/etc/x'].filter(p, under(p, '/etc'))) == 1", "error"],
  ])("is the verdict of %s: %s", (source, kind) => {
    expect(kindOf(source, '{"p":"relative","m":"r"}')).toBe(kind);
  });

  it("keeps the deny and loses the allow for a path or a host that can't be judged", () => {
    for (const path of ["etc/shadow", "", "/etc\u0000", "/srv/../etc"])
      expect(kindOf('under(args.path, "/etc")', JSON.stringify({ path }))).toBe("error");
    for (const url of ["bank.example", "", "https://bank.example/\u0000"])
      expect(kindOf('!host_in(args.url, ["bank.example"])', JSON.stringify({ url }))).toBe("error");
  });
});

describe("what else a condition sees", () => {
  it("is session, role and tool as strings", () => {
    expect(kindOf("session == 'mm-1' && role == 'agent' && tool == 'pay'")).toBe("match");
    expect(kindOf("session.startsWith('mm-') && tool in ['pay', 'read']")).toBe("match");
  });

  it("is a target only where the call has one", () => {
    const target = { role: "agent", session: "mm-1" };
    expect(kindOf("target.role == 'agent'", "{}", { target })).toBe("match");
    expect(kindOf("has(target.tool)", "{}", { target })).toBe("no_match");
    expect(kindOf("target.tool == 'x'", "{}", { target })).toBe("error");
    expect(kindOf("target.role == 'agent'")).toBe("error");
    expect(kindOf("has(target.role)")).toBe("error");
    expect(kindOf("target.role != 'admin'", '{"target":{"role":"agent"}}')).toBe("error");
  });
});

describe("text", () => {
  it.each([
    ["args.s.matches('^a+$')", '{"s":"aaa"}', "match"],
    ["matches(args.s, 'b')", '{"s":"abc"}', "match"],
    ["args.s.matches('^b')", '{"s":"abc"}', "no_match"],
    ["size(args.s) == 2", '{"s":"a😀"}', "match"],
    ["args.s < '\\U0001F600'", '{"s":"\uffee"}', "match"],
    ["args.s + 'x' == 'ax'", '{"s":"a"}', "match"],
    ["string(args.s) == '5'", '{"s":5}', "match"],
    ["int(args.s) == -5", '{"s":"-5"}', "match"],
    ["double(args.s) == 2.5", '{"s":"2.5"}', "match"],
    ["(args.s + args.s).all(x, x == 'a')", '{"s":["a"]}', "match"],
  ])("judges %s over %s: %s", (source, args, kind) => {
    expect(kindOf(source, args)).toBe(kind);
  });
});

describe("loading", () => {
  it.each([
    ["", "column 1: the expression ends too early"],
    ["args.x ==", "column 8: not understood from `==` on"],
    ["true &&\n  foo", "line 2, column 3: there is no `foo`; there are args, session, role, tool, target"],
    ["argz.amount > 1", "column 1: there is no `argz`; there are args, session, role, tool, target"],
    ["args.p.startswith('/')", /^column 7: there is no function `startswith`; there are under, host_in/],
    ["taint == 'public'", /^column 1: there is no `taint`/],
    ["request == 'x'", /^column 1: there is no `request`/],
    ["target.user == 'x'", "column 7: `target` has no `user`; it has role, tool, session"],
    ["under(args.p)", "column 1: `under` is written as `under(path, '/dir')`"],
    ["args.p.under('/etc')", "column 7: `under` is written as `under(path, '/dir')`"],
    ["startsWith(args.p, '/')", "column 1: `startsWith` is written as `text.startsWith(part)`"],
    ["args.p.matches('(')", /^column 7: `matches`: the pattern/],
    ["args.p.matches('a{1000}{1000}')", /^column 7: `matches`: the pattern/],
    ["args.p.matches('(?=a)')", /^column 7: `matches`: the pattern/],
    ["args.p.matches(args.q)", "column 7: `matches`: the pattern must be written down in the condition"],
    [
      "args.p.matches('a' + args.q)",
      "column 7: `matches`: the pattern must be written down in the condition",
    ],
    ["args.a.all(x, args.a.all(y, args.a.all(z, true)))", /macros are nested more than 2 deep$/],
    ["args.a.all(args, true)", "column 7: the name `args` is taken"],
    ["args.a.all(x, args.b.all(x, true))", /the name `x` is taken$/],
    ["args.a.map(x, true, x) == []", /unknown kind of loop|there is no function/],
    ["size(args.a)", "column 1: the condition is neither true nor false"],
    ["'true'", "column 1: the condition is neither true nor false"],
    ["args", "column 1: the condition is neither true nor false"],
    ["args.a == 9223372036854775808", "column 11: an integer outside the range of int64"],
    ["args.a == 1e999", "column 11: a number that is too large"],
    ["args.a == 1u", /^column 11: bytes and unsigned integers/],
    ["args == {'a': 1}", /^column 9: maps and messages/],
    ["google.protobuf.Value{} == args.a", /maps and messages/],
    ["timestamp('2020-01-01T00:00:00Z') < args.t", /there is no function `timestamp`/],
    ["dyn(args.a)", /there is no function `dyn`/],
    ["constructor(args.a)", /there is no function `constructor`/],
    ["args.a.__proto__()", /there is no function `__proto__`/],
    ["__proto__ == 1", /there is no `__proto__`/],
    ["args.a == '\\ud800'", /surrogate/],
    [`${"(".repeat(3000)}true`, "too deeply nested"],
    [`args.a == ${"1 + ".repeat(150)}1`, /too deeply nested$/],
    [`args.a == '${"x".repeat(5000)}'`, "longer than 4096 characters"],
  ])("refuses %j in the owner's terms", (source, told) => {
    expect(loadFault(source)).toMatch(
      typeof told === "string" ? new RegExp(`^${told.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`) : told,
    );
  });

  it("takes comments and line breaks", () => {
    expect(kindOf("// the owner's words\nargs.a == 1 &&\n  args.b == 2 // both", '{"a":1,"b":2}')).toBe(
      "match",
    );
  });
});
