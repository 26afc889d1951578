import { describe, expect, it } from "vitest";
import {
  isGrantId,
  isRoleName,
  isSessionId,
  isSessionPattern,
  isToolName,
  isToolPattern,
} from "../../src/base/ids.ts";

const GRAMMARS = [
  ["role's name", isRoleName],
  ["tool's name", isToolName],
  ["grant's id", isGrantId],
  ["session's id", isSessionId],
  ["pattern of tools", isToolPattern],
  ["pattern of sessions", isSessionPattern],
] as const;

/** From where on Unicode has: all that is common, letters drawn in other ways, and tags that nobody sees. */
const PLANES = [
  [0x00, 0x20],
  [0x7f, 0x3000],
  [0xd800, 0x10000],
  [0x1d400, 0x1f300],
  [0xe0000, 0xe0200],
] as const;

/** What is not seen, turns the direction of what is, is drawn as another letter, or ends a line. */
const DECEIVING = PLANES.flatMap(([first, end]) =>
  Array.from({ length: end - first }, (_, i) => String.fromCodePoint(first + i)),
);

describe.each(GRAMMARS)("a %s", (_, isOne) => {
  it("that is plain is one", () => {
    expect(isOne("agent")).toBe(true);
  });

  it("has no character that could hide in it or pass for another, wherever in it that stands", () => {
    const taken = DECEIVING.filter(
      (character) => isOne(`agent${character}`) || isOne(`a${character}gent`) || isOne(`${character}agent`),
    );
    expect(taken).toEqual([]);
  });

  it.each([
    ["a zero-width space", "ag\u200bent"],
    ["an override of the direction", "\u202etnega"],
    ["an isolate of the direction", "agent\u2066"],
    ["a Cyrillic letter", "\u0430gent"],
    ["a full-width letter", "\uff41gent"],
    ["an accent of its own", "age\u0301nt"],
    ["a line feed at its end", "agent\n"],
    ["a line separator at its end", "agent\u2028"],
    ["a NUL at its end", "agent\0"],
    ["a byte order mark before it", "\ufeffagent"],
    ["half of a character", "agent\ud83d"],
    ["a space", "agent "],
    ["nothing", ""],
  ])("is refused with %s", (__, text) => {
    expect(isOne(text)).toBe(false);
  });
});
