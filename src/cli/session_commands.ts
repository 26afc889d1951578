// The rows of `callgate sessions …`.

import { secondsOf } from "../base/time_text.ts";
import { type CommandRow, LIMIT_OPTION, type OptionRow, ROLE_OPTION, WANTS_LENGTH } from "./command_row.ts";

export const CLASS_OPTION: OptionRow = {
  flags: "--class <class>",
  about: "how secret",
  choices: ["public", "internal", "confidential", "restricted"],
};
export const TRUSTED_OPTION: OptionRow = {
  flags: "--trusted",
  about: "nobody else could have written what it is about",
};
export const UNTRUSTED_OPTION: OptionRow = { flags: "--untrusted", about: "somebody else could have" };

const STORE_OPTION: OptionRow = { flags: "--store <store>", about: "a store, instead of a session" };
const ITEM_OPTION: OptionRow = { flags: "--item <key>", about: "one item of that store" };

function versionOf(text: string): number | undefined {
  const version = Number(text);
  return /^[0-9]{1,16}$/.test(text) && Number.isSafeInteger(version) ? version : undefined;
}

export const SESSION_ROWS: readonly CommandRow[] = [
  {
    words: "sessions list",
    about: "Sessions, with their taint and what runs in them.",
    tool: "callgate.sessions.list",
    args: (_, flags) => ({ role: flags["role"], limit: flags["limit"] }),
    view: async () => (await import("./session_views.ts")).sessionTable,
    options: [ROLE_OPTION, LIMIT_OPTION],
    examples: [
      "callgate sessions list --socket run/operator.sock",
      "callgate sessions list --role agent --json | jq -r .sessions[].session",
    ],
  },
  {
    words: "sessions open <role> <id>",
    about: "Opens a session for a role.",
    tool: "callgate.sessions.open",
    args: ([role, session], flags) => ({
      role,
      session,
      request: flags["request"],
      expires_in_seconds: flags["expires"],
    }),
    view: async () => (await import("./session_views.ts")).openedText,
    options: [
      { flags: "--request <text>", about: "the user's own words" },
      {
        flags: "--expires <time>",
        about: "how long it lives: 90s, 15m, 1h",
        parse: secondsOf,
        wants: WANTS_LENGTH,
        fallback: { value: 3600, shown: "1h" },
      },
    ],
    examples: ["callgate sessions open bot chat-17 --request 'Summarise my mail' --expires 1h"],
  },
  {
    words: "sessions show [id]",
    about: "A session's state, its taint and what raised it; or what was put into a store.",
    tool: "callgate.sessions.show",
    args: ([session], flags) => ({
      session,
      role: flags["role"],
      store: flags["store"],
      item: flags["item"],
    }),
    view: async () => (await import("./session_views.ts")).wholeSession,
    options: [ROLE_OPTION, STORE_OPTION, ITEM_OPTION],
    examples: [
      "callgate sessions show chat-17 --role agent",
      "callgate sessions show --role files --store mail --item inbox/7",
    ],
  },
  {
    words: "sessions endorse [id]",
    about: "Lowers a taint after a person has looked at what raised it.",
    run: async () => (await import("./endorse.ts")).endorse,
    options: [
      { flags: "--role <role>", about: "whose session, or which role serves the store", required: true },
      { ...CLASS_OPTION, required: true },
      TRUSTED_OPTION,
      UNTRUSTED_OPTION,
      { flags: "--reason <text>", about: "why it may be lowered, for the audit", required: true },
      {
        flags: "--version <version>",
        about: "the version that was seen; without it you are shown it and asked",
        parse: versionOf,
        wants: "It must be the whole number that sessions show shows.",
      },
      STORE_OPTION,
      ITEM_OPTION,
    ],
    examples: [
      "callgate sessions endorse chat-17 --role agent --class internal --trusted --reason 'I wrote that page'",
    ],
  },
  {
    words: "sessions close <id>",
    about: "Ends a session for good.",
    tool: "callgate.sessions.close",
    args: ([session], flags) => ({ session, role: flags["role"] }),
    view: async () => (await import("./session_views.ts")).closedText,
    options: [ROLE_OPTION],
    examples: ["callgate sessions close chat-17 --role bot"],
  },
];
