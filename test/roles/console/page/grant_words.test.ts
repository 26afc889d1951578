import { describe, expect, it } from "vitest";
import type { GrantLine } from "../../../../src/client/answers.ts";
import {
  forgetCheckpoint,
  isCheckpoint,
  noteCheckpoint,
  notedCheckpoint,
} from "../../../../src/roles/console/page/checkpoints.ts";
import {
  fieldOf,
  type GrantTerms,
  grantSentence,
  originOf,
  rememberedWords,
  termsOf,
} from "../../../../src/roles/console/page/grant_words.ts";

const TERMS: GrantTerms = {
  role: "chat",
  effect: "allow",
  tools: ["read_file"],
  sessions: [],
  when: undefined,
  taintMax: "internal",
  taintUntrusted: false,
  aboveTaint: "deny",
  lastsMs: 3_600_000,
  maxCalls: undefined,
  perMs: undefined,
};

const LINE: GrantLine = {
  id: "g",
  role: "chat",
  effect: "allow",
  tools: ["pay"],
  sessions: ["*"],
  when: null,
  taint_max: "public",
  taint_untrusted: true,
  above_taint: "ask",
  expires_at_ms: 5000,
  expired: false,
  reason: null,
};

describe("a grant's sentence", () => {
  it.each<[Partial<GrantTerms>, string]>([
    [
      {},
      "Allows chat to call read_file in any session, as long as its taint is at most internal, and nothing untrusted was read; it ends in 1 h.",
    ],
    [
      { tools: ["*"], sessions: ["a-*"], when: "args.n < 3", taintUntrusted: true, aboveTaint: "ask" },
      "Allows chat to call every tool in session a-* where args.n < 3, as long as its taint is at most internal, also after it has read something untrusted (above that a person is asked); it ends in 1 h.",
    ],
    [
      { effect: "ask", tools: ["mail.*"], maxCalls: 1, lastsMs: undefined },
      "Asks a person each time before it lets chat to call every tool that begins with mail. in any session, as long as its taint is at most internal, and nothing untrusted was read, for 1 call in all.",
    ],
    [
      { effect: "deny" },
      "Never allows chat to call read_file in any session, at any taint, whatever other grants say, until it is revoked.",
    ],
    [
      { maxCalls: 5, perMs: 60_000, lastsMs: 0 },
      "Allows chat to call read_file in any session, as long as its taint is at most internal, and nothing untrusted was read, for 5 calls in every 1 min; it has ended.",
    ],
  ])("of %j", (terms, sentence) => {
    expect(grantSentence({ ...TERMS, ...terms })).toBe(sentence);
  });

  it("is the same of a grant that is there already", () => {
    expect(termsOf(LINE, 2000)).toMatchObject({ taintMax: "public", taintUntrusted: true, lastsMs: 3000 });
    expect(termsOf({ ...LINE, expires_at_ms: 1000 }, 2000).lastsMs).toBe(0);
  });

  it("of a remembered answer says what it stands in for", () => {
    const remembered = { ...LINE, runtime: true, remembers: "asks", exact_arguments: true, sessions: ["s"] };
    expect(rememberedWords(remembered)).toMatch(
      /question of grant asks only: for calls with exactly the arguments that were approved of pay in session s\./,
    );
    expect([LINE, { ...LINE, runtime: true }, remembered].map(originOf)).toEqual([
      "config",
      "added",
      "remembered",
    ]);
  });
});

describe("a refusal of the broker's", () => {
  it.each([
    ["The condition does not compile: `tools` is unknown", "when"],
    ["`reason` must say why, in at most 1024 characters", "reason"],
    ["The config (`gives`) does not let role `operator` give these tools to that role", "tools"],
    ["The config (`gives`) does not let role `operator` give anything to a role of that name", "role"],
    [
      "The config (`gives`) does not let role `operator` give a grant that lasts so long",
      "expires_in_seconds",
    ],
    ["The config (`gives`) does not let role `operator` give a grant up to that taint", "taint_max"],
    ["Nobody adds a grant for their own role or user", "role"],
    ["There is no tool `nosuch` in service", "tools"],
    ["There is a grant `runtime.a` already; ids are unique", "id"],
    ["Role `chat` has 64 runtime grants, and no more fit; revoke some first", undefined],
    ["The broker can't be reached now", undefined],
  ])("%s: shown at %s", (refusal, field) => {
    expect(fieldOf(refusal)).toBe(field);
  });
});

describe("the checkpoint that the browser keeps", () => {
  class Shelf extends Map<string, string> {
    getItem(name: string): string | null {
      return this.get(name) ?? null;
    }
    setItem(name: string, value: string): void {
      this.set(name, value);
    }
    removeItem(name: string): void {
      this.delete(name);
    }
  }
  const TEXT = `12:${"a".repeat(64)}`;

  it("is there until it is forgotten", () => {
    const shelf = new Shelf();
    expect(notedCheckpoint(shelf)).toBeUndefined();
    expect(noteCheckpoint(shelf, { text: TEXT, notedAtMs: 5 })).toBe(true);
    expect(notedCheckpoint(shelf)).toEqual({ text: TEXT, notedAtMs: 5 });
    forgetCheckpoint(shelf);
    expect(notedCheckpoint(shelf)).toBeUndefined();
  });

  it("is none where the browser holds something else, or nothing at all", () => {
    const shelf = new Shelf();
    for (const odd of ["{", "5", '{"text":"x","notedAtMs":1}', `{"text":"${TEXT}"}`]) {
      shelf.setItem("callgate-checkpoint", odd);
      expect(notedCheckpoint(shelf)).toBeUndefined();
    }
    const refusing = {
      getItem: () => {
        throw new Error("no");
      },
      setItem: () => {
        throw new Error("no");
      },
      removeItem: () => {
        throw new Error("no");
      },
    };
    expect([notedCheckpoint(refusing), noteCheckpoint(refusing, { text: TEXT, notedAtMs: 5 })]).toEqual([
      undefined,
      false,
    ]);
    forgetCheckpoint(refusing);
  });

  it.each(["", "1", "1:abc", `01:${"a".repeat(64)}`, `1:${"A".repeat(64)}`, `-1:${"a".repeat(64)}`])(
    "is none of the form %j",
    (text) => {
      expect(isCheckpoint(text)).toBe(false);
    },
  );
});
