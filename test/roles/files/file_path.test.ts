import { describe, expect, it } from "vitest";
import { namesBeneath, parsePath, plainJson } from "../../../src/roles/files/file_path.ts";

const accepted: readonly [string, readonly string[]][] = [
  ["/", []],
  ["/srv/docs", ["srv", "docs"]],
  ["/srv/..hidden/a b:c,d", ["srv", "..hidden", "a b:c,d"]],
  ["/srv/%2e%2e", ["srv", "%2e%2e"]],
  ["/srv/a\\b", ["srv", "a\\b"]],
  ["/srv/äöü/日本", ["srv", "äöü", "日本"]],
];

const refused: readonly [string, string][] = [
  ["empty", ""],
  ["relative", "srv/docs"],
  ["home", "~/docs"],
  ["a dot", "/srv/./docs"],
  ["two dots", "/srv/../etc"],
  ["two dots at the end", "/srv/.."],
  ["two slashes", "/srv//docs"],
  ["two slashes in front", "//srv"],
  ["a slash at the end", "/srv/docs/"],
  ["NUL", "/srv/a\0b"],
  ["a newline", "/srv/a\nb"],
  ["DEL", "/srv/a\x7f"],
  ["a C1 control", "/srv/a\u0085"],
  ["right-to-left override", "/srv/a\u202etxt"],
  ["zero-width space", "/srv/a\u200b"],
  ["a byte order mark", "/srv/\ufeffa"],
  ["a line separator", "/srv/a\u2028"],
  ["an invisible tag character", "/srv/a\u{e0041}"],
  ["a variation selector", "/srv/a\ufe0f"],
  ["a lone surrogate", "/srv/a\ud800"],
  ["a name of 256 bytes", `/srv/${"a".repeat(256)}`],
  ["a path of 4096 bytes", "/abcdefg".repeat(512)],
];

describe("a path", () => {
  it.each(accepted)("%s is accepted as it is written", (path, names) => {
    expect(parsePath(path)).toEqual({ ok: true, value: names });
  });

  it.each(refused)("with %s is refused, because a condition could misjudge it", (_what, path) => {
    expect(parsePath(path)).toEqual({ ok: false, fault: "bad_path" });
  });

  it("lies beneath a directory by whole names only", () => {
    expect(namesBeneath(["etc"], ["etc", "passwd"])).toEqual(["passwd"]);
    expect(namesBeneath(["etc"], ["etcetera"])).toBeUndefined();
    expect(namesBeneath(["etc", "ssl"], ["etc"])).toBeUndefined();
    expect(namesBeneath([], ["etc"])).toEqual(["etc"]);
  });
});

describe("names in JSON", () => {
  it("show controls, bidirectional and invisible characters as escapes, and mean the same", () => {
    const odd = "a\u202eb\x1b\x7f\u2028\u{e0041}\ud800";
    const json = plainJson({ name: odd });
    expect(json).toBe('{"name":"a\\u202eb\\u001b\\u007f\\u2028\\udb40\\udc41\\ud800"}');
    expect(JSON.parse(json)).toEqual({ name: odd });
  });
});
