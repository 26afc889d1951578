// Questions as the built-in tools tell of them, for tests of how they are shown and answered.

import type { Question, WholeQuestion } from "../../src/client/answers.ts";
import { NOW_MS } from "./desk.ts";

export const ID = "9f3ac2417be05d6819ce44aa0b7d2f31";

export function question(given: Partial<Question> = {}): Question {
  return {
    approval: ID,
    role: "agent",
    uid: 0,
    pid: 4242,
    session: "one",
    call: "123456789",
    tool: "send_mail",
    effect: "send",
    state: "pending",
    asked_at_ms: NOW_MS - 30_000,
    expires_at_ms: NOW_MS + 870_000,
    row: "ask",
    grants: ["mail-asks"],
    destinations: { to: "bob@example.org" },
    decided_by: null,
    decided_at_ms: null,
    ...given,
  };
}

export function wholeQuestionOf(given: Partial<WholeQuestion> = {}): WholeQuestion {
  return {
    ...question(),
    digest: "d".repeat(64),
    arguments: '{"subject":"Hello","to":"bob@example.org","n":9007199254740993,"x":1.0}',
    taint: { class: "internal", untrusted: true },
    asked_taint: { class: "public", untrusted: false },
    raised_by: { role: "agent", session: "one", call: "77" },
    definition: null,
    policy: "e".repeat(64),
    asks: [
      { grant: "mail-asks", reason: "Mail leaves the house.", when: 'args.to != "me@x"', remember: true },
    ],
    doubt: null,
    store_changes: [],
    remember: {
      allowed: true,
      number_needed: false,
      arguments: { covers: "send_mail with exactly these arguments" },
      tool: { covers: "every send_mail of session one" },
      expires_max_ms: null,
    },
    ...given,
  };
}
