import { describe, expect, it } from "vitest";
import type { Status } from "../../src/client/answers.ts";
import { NOTHING_YET } from "../../src/roles/console/page/live.ts";
import { noticesOf } from "../../src/roles/console/page/notices.ts";
import type { Live } from "../../src/roles/console/page/page.ts";
import { changesBetween } from "../../src/roles/console/page/question_changes.ts";
import { addressOf, routeOf } from "../../src/roles/console/page/route.ts";
import { wishOf } from "../../src/roles/console/page/wish.ts";
import { wholeQuestionOf } from "../cli/questions.ts";

// What the page makes of what it is told, without a browser.

describe("the page's addresses", () => {
  it("bring every word back, whatever a session is called", () => {
    for (const words of [[], ["agent", "one"], ["a/b", "c#d?e", "%2F", " ", "\u202e", "%"]])
      expect(routeOf(addressOf("calls", ...words))).toEqual({ page: "calls", words });
  });

  it("take broken escapes as they stand, and nothing for the first page", () => {
    expect(routeOf("#/calls/%E0%A4%A/x")).toEqual({ page: "calls", words: ["%E0%A4%A", "x"] });
    expect(routeOf("")).toEqual({ page: "", words: [] });
    expect(routeOf("#/")).toEqual({ page: "", words: [] });
  });
});

describe("what has changed of a question since it was shown", () => {
  const shown = wholeQuestionOf();

  it("is nothing where nothing is different, though its remembering ends later by now", () => {
    const later = { ...shown, remember: { ...shown.remember, expires_max_ms: 5 } };
    expect(changesBetween(shown, later)).toEqual({ sentences: [], isOther: false });
  });

  it("is said in words for each thing that an approver decides by", () => {
    const now = wholeQuestionOf({
      digest: "e".repeat(64),
      taint: { class: "restricted", untrusted: true },
      asks: [{ grant: "another", reason: "It is late.", when: null, remember: true }],
      doubt: { session: "old", call: "5", code: "timeout", ended_at_ms: null },
      store_changes: [{ role: "agent", session: "s", call: "9", tool: "write_file", at_ms: 1 }],
      now: { verdict: "waits", why: "Nobody serves it." },
      arguments: "{}",
      definition: "d",
      effect: "execute",
      policy: "f",
    });
    const { sentences, isOther } = changesBetween(shown, now);
    expect(isOther).toBe(true);
    expect(sentences).toEqual([
      "The taint is now restricted, untrusted; it was internal, untrusted (raised by session one, call 77).",
      "Grant another asks now: It is late.",
      "Grant mail-asks no longer asks.",
      "It may have run already: session old, call 5 was equal, and its outcome is unknown.",
      "1 more call changed the same store, or may have: write_file.",
      "Approving would not run it now: Nobody serves it.",
      "The arguments are others.",
      "The tool's definition is another.",
      "The tool's effect is now execute; it was send.",
      "The policy is another.",
    ]);
  });

  it("is never silent where the digest is another", () => {
    const { sentences, isOther } = changesBetween(shown, { ...shown, digest: "e".repeat(64) });
    expect(isOther).toBe(true);
    expect(sentences).toHaveLength(1);
  });

  it("stops nobody where only calls beside it have changed the store", () => {
    const store_changes = [{ role: "a", session: "s", call: "9", tool: "write_file", at_ms: 1 }];
    expect(changesBetween(shown, { ...shown, store_changes }).isOther).toBe(false);
  });

  it("does not matter any more once it has ended", () => {
    const ended = wholeQuestionOf({ state: "refused", digest: "" });
    expect(changesBetween(shown, ended)).toEqual({ sentences: [], isOther: false });
  });
});

describe("how an approval is to be remembered", () => {
  const free = { number_needed: false };

  it("is read as the broker takes it", () => {
    const written = { what: "tool", length: " 2h ", calls: " 10 " } as const;
    expect(wishOf(written, free)).toEqual({ wish: { what: "tool", seconds: 7200, calls: 10 } });
    expect(wishOf({ ...written, calls: "" }, free)).toEqual({ wish: { what: "tool", seconds: 7200 } });
  });

  it("is told what is wrong with each part", () => {
    const wrong = wishOf({ what: undefined, length: "soon", calls: "" }, { number_needed: true });
    expect(wrong).toEqual({
      problems: {
        what: "Choose what it is to cover.",
        length: "A length of time: 15m, 1h, 7d.",
        calls: "Say for how many calls.",
      },
    });
    expect(wishOf({ what: "tool", length: "31d", calls: "" }, free)).toEqual({
      problems: { length: "30 days at most." },
    });
    for (const calls of ["0", "-1", "1.5", "1e3", "0x10", "many", "1 000"])
      expect(wishOf({ what: "tool", length: "1h", calls }, free)).toEqual({
        problems: { calls: "A whole number from 1." },
      });
  });
});

describe("the notices above the page", () => {
  const STATUS: Status = {
    role: "boss",
    draining: false,
    policy: "1",
    policy_stale: false,
    uptime_ms: 1,
    warning: null,
    store: { condition: "ok" },
    unknown_calls: 0,
    roles: [],
  };
  const titles = (live: Partial<Live>, status: Partial<Status> = {}) => {
    const whole = { ...NOTHING_YET, connection: "open", status: { ...STATUS, ...status }, ...live } as Live;
    return noticesOf(whole).map(({ tone, title, text }) => `${tone} ${title} ${text}`);
  };

  it("are none while all is well", () => {
    expect(titles({})).toEqual([]);
  });

  it("tell each thing that must not be overlooked, the worst first, peers' and files' words escaped", () => {
    const role = { connections: 0, asking: 0, serving: 0, taint: { class: "public", untrusted: false } };
    const all = titles(
      { broker: { connected: false, why: "hung\u202eup" } },
      {
        store: { condition: "failing" },
        policy_stale: true,
        policy_stale_because: "line 3:\n\u001b[31m",
        draining: true,
        roles: [
          { ...role, role: "agent", frozen: true },
          { ...role, role: "files", frozen: false },
        ],
        unknown_calls: 2,
        warning: "allow_same_user: careful",
      },
    );
    expect(all).toEqual([
      "bad The broker is lost. hung\\u{202e}up What is shown may be old, and nothing can be answered.",
      "bad The store can't write (failing). No new call runs until it can; reading goes on.",
      "bad The policy in force is older than its file. The file was refused, so the last good policy stays. line 3:\\n\\u{1b}[31m",
      "warn The broker is ending. It takes no new calls.",
      "warn A role is frozen: agent",
      "warn 2 calls of unknown outcome. The broker stopped before it heard how they ended: they may have run.",
      "warn Not for production: allow_same_user: careful",
    ]);
  });

  it("speak of the console rather than of the broker behind it while that is lost", () => {
    const lost = titles({ connection: "lost", broker: { connected: false, why: null } });
    expect(lost).toHaveLength(1);
    expect(lost[0]).toContain("The console does not answer.");
  });
});
