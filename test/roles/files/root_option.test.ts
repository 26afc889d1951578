import { describe, expect, it } from "vitest";
import { parseRootOption } from "../../../src/roles/files/root_option.ts";

describe("a root on the command line", () => {
  it("is internal, untrusted and read-only unless it says otherwise", () => {
    expect(parseRootOption("/srv/docs")).toEqual({
      ok: true,
      value: { path: "/srv/docs", class: "internal", untrusted: true, writable: false },
    });
  });

  it("takes its options before the first slash, so that a path may hold colons and commas", () => {
    expect(parseRootOption("confidential,trusted,rw:/srv/a:b,rw:/c")).toEqual({
      ok: true,
      value: { path: "/srv/a:b,rw:/c", class: "confidential", untrusted: false, writable: true },
    });
  });

  it.each([
    "",
    "srv/docs",
    "rw",
    "rw/srv",
    ":/srv",
    "RW:/srv",
    "rw,:/srv",
    "secret:/srv",
    "rw,ro:/srv",
    "rw,rw:/srv",
    "public,internal:/srv",
    "constructor:/srv",
    "rw:trusted:/srv",
  ])("written %j is refused", (option) => {
    expect(parseRootOption(option).ok).toBe(false);
  });
});
